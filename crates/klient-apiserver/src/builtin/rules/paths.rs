//! Validation of paths in file systems.

use super::field::{Causes, Field};

impl Field<'_, '_> {
    /// Validates that a path does not go up.
    pub(super) fn no_backsteps(&self, causes: &mut Causes) {
        if has_backsteps(self.text()) {
            self.invalid("must not contain '..'", causes);
        }
    }

    /// Validates a relative path that stays below its start.
    pub(super) fn descending_path(&self, causes: &mut Causes) {
        if self.text().starts_with('/') {
            self.invalid("must be a relative path", causes);
        }
        self.no_backsteps(causes);
    }

    /// Validates a relative path that is not reserved.
    pub(super) fn local_path(&self, causes: &mut Causes) {
        self.descending_path(causes);
        if self.text().starts_with("..") && !self.text().starts_with("../") {
            self.invalid("must not start with '..'", causes);
        }
    }

    /// Validates the mode of a file.
    pub(super) fn file_mode(&self, causes: &mut Causes) {
        if !(0..=0o777).contains(&self.number()) {
            self.invalid("must be a number between 0 and 0777 (octal), both inclusive", causes);
        }
    }
}

/// Returns whether a path goes up.
pub(super) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}
