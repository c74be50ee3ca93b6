//! The warnings and audit annotations of a request.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Stage;

/// The warnings and audit annotations of one request.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The texts of all warnings so far.
    seen: HashSet<String>,
    /// The number of characters of the warnings to send, and whether they are cut.
    length: usize,
    is_cut: bool,
    /// The warnings of each source, in the order in which they are sent.
    warnings: [Vec<String>; 4],
    annotations: BTreeMap<String, String>,
    of_request: BTreeMap<String, String>,
}

/// The source of a warning. The real server sends warnings in the order of the variants.
#[derive(Clone, Copy, Debug)]
enum Source {
    Version,
    Fields,
    Mutating,
    Validating,
}

impl Notes {
    /// Adds a warning about the requested version of a kind.
    pub(crate) fn warn_of_version(&self, text: &str) {
        self.warn_of(Source::Version, text.to_owned());
    }

    /// Adds warnings about unknown and duplicate fields of a request.
    pub(crate) fn warn_of_fields(&self, texts: impl IntoIterator<Item = impl Into<String>>) {
        texts.into_iter().for_each(|text| self.warn_of(Source::Fields, text.into()));
    }

    /// Adds a warning of a stage.
    pub(crate) fn warn(&self, stage: Stage, text: impl Into<String>) {
        let source = match stage {
            Stage::Mutating => Source::Mutating,
            Stage::Validating => Source::Validating,
        };
        self.warn_of(source, text.into());
    }

    /// Adds a warning.
    ///
    /// Empty texts, repeated ones and those with control characters are dropped. After 4096 characters in total, texts are cut, as on
    /// the real server.
    fn warn_of(&self, source: Source, mut text: String) {
        let mut inner = self.lock();
        if inner.is_full() || text.is_empty() || text.contains(char::is_control) || inner.seen.contains(&text) {
            return;
        }
        inner.seen.insert(text.clone());
        let length = text.chars().count();
        if !inner.is_cut && inner.length + length > MAX_WARNINGS {
            inner.is_cut = true;
            inner.warnings.iter_mut().flatten().for_each(cut);
            inner.length = inner.warnings.iter().flatten().map(|text| text.chars().count()).sum();
        }
        if inner.is_cut {
            cut(&mut text);
        }
        inner.length += text.chars().count();
        inner.warnings[source as usize].push(text);
    }

    /// Adds several warnings of a stage.
    pub(crate) fn warn_all(&self, stage: Stage, texts: &[String]) {
        texts.iter().for_each(|text| self.warn(stage, text.as_str()));
    }

    /// Adds an audit annotation. The first value of a key stays, as in the real server's log.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.lock().annotations.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Adds an audit annotation that only logs of whole requests have.
    pub(crate) fn annotate_request(&self, key: impl Into<String>, value: impl Into<String>) {
        self.lock().of_request.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Removes and returns all warnings.
    pub(crate) fn take_warnings(&self) -> impl Iterator<Item = String> {
        std::mem::take(&mut self.lock().warnings).into_iter().flatten()
    }

    /// Returns the audit annotations. Those of whole requests are included if `of_request` is set.
    pub(crate) fn annotations(&self, of_request: bool) -> BTreeMap<String, String> {
        let inner = self.lock();
        let mut all = inner.annotations.clone();
        if of_request {
            all.extend(inner.of_request.clone());
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Returns whether there is no room for another warning.
    fn is_full(&self) -> bool {
        self.is_cut && self.length >= MAX_WARNINGS
    }
}

/// Cuts a warning to the length that all have once there are too many.
fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(CUT) {
        text.truncate(at);
    }
}

/// The number of characters of all warnings before they are cut.
pub(crate) const MAX_WARNINGS: usize = 4096;
/// The number of characters of a warning that is cut.
pub(crate) const CUT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_cut_and_then_dropped() {
        let notes = Notes::default();
        for number in 0..30 {
            notes.warn(Stage::Validating, format!("{number:03}{}", "x".repeat(400)));
        }
        let warnings: Vec<String> = notes.take_warnings().collect();
        assert_eq!(warnings.len(), MAX_WARNINGS / CUT);
        assert!(warnings.iter().all(|warning| warning.len() == CUT));
    }

    #[test]
    fn last_warning_may_exceed_the_limit() {
        let notes = Notes::default();
        for number in 0..30 {
            notes.warn(Stage::Mutating, format!("{number:03}{}", "x".repeat(197)));
        }
        assert_eq!(notes.take_warnings().count(), MAX_WARNINGS / 200 + 1);
    }

    #[test]
    fn empty_and_repeated_warnings_are_dropped() {
        let notes = Notes::default();
        for text in ["a", "", "a", "b\n", "c"] {
            notes.warn(Stage::Mutating, text);
        }
        assert!(notes.take_warnings().eq(["a", "c"]));
    }

    #[test]
    fn warnings_of_all_sources_share_the_limit() {
        let notes = Notes::default();
        notes.warn(Stage::Validating, "v".repeat(3000));
        notes.warn(Stage::Mutating, "again");
        notes.warn_of_fields(["again".to_owned(), "f".repeat(3000)]);
        notes.warn_of_version("old");
        let warnings: Vec<String> = notes.take_warnings().collect();
        assert_eq!(warnings, ["old".to_owned(), "f".repeat(CUT), "again".to_owned(), "v".repeat(CUT)]);
    }
}
