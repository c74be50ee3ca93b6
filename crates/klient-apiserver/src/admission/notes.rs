//! The warnings and audit annotations that admission adds to a request.

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
    /// The texts of all warnings so far, and the number of their characters.
    seen: HashSet<String>,
    length: usize,
    admitted: Vec<String>,
    validated: Vec<String>,
    annotations: BTreeMap<String, String>,
    of_request: BTreeMap<String, String>,
}

impl Notes {
    /// Adds a warning of a stage.
    ///
    /// Empty texts, repeated ones and those with control characters are dropped. After 4096 characters in total, texts are cut, as on
    /// the real server.
    pub(crate) fn warn(&self, stage: Stage, text: impl Into<String>) {
        let mut inner = self.lock();
        let mut text = text.into();
        if text.is_empty() || text.contains(char::is_control) || inner.seen.contains(&text) {
            return;
        }
        inner.seen.insert(text.clone());
        inner.length += text.chars().count();
        if inner.length > MAX_WARNINGS {
            inner.admitted.iter_mut().for_each(cut);
            inner.validated.iter_mut().for_each(cut);
            cut(&mut text);
            let shown = |texts: &[String]| texts.iter().map(|text| text.chars().count()).sum::<usize>();
            if shown(&inner.admitted) + shown(&inner.validated) + text.chars().count() > MAX_WARNINGS {
                return;
            }
        }
        match stage {
            Stage::Mutating => inner.admitted.push(text),
            Stage::Validating => inner.validated.push(text),
        }
    }

    /// Adds an audit annotation. The first value of a key stays, as in the real server's log.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.lock().annotations.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Adds an audit annotation that only logs of whole requests have.
    pub(crate) fn annotate_request(&self, key: impl Into<String>, value: impl Into<String>) {
        self.lock().of_request.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Removes and returns the warnings of a stage.
    pub(crate) fn take_warnings(&self, stage: Stage) -> Vec<String> {
        let mut inner = self.lock();
        match stage {
            Stage::Mutating => std::mem::take(&mut inner.admitted),
            Stage::Validating => std::mem::take(&mut inner.validated),
        }
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

/// Cuts a warning to the length that all have once there are too many.
fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(CUT) {
        text.truncate(at);
    }
}

/// The number of characters of all warnings before they are cut.
const MAX_WARNINGS: usize = 4096;
/// The number of characters of a warning that is cut.
const CUT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_cut_and_then_dropped() {
        let notes = Notes::default();
        for number in 0..30 {
            notes.warn(Stage::Validating, format!("{number:03}{}", "x".repeat(400)));
        }
        let warnings = notes.take_warnings(Stage::Validating);
        assert_eq!(warnings.len(), MAX_WARNINGS / CUT);
        assert!(warnings.iter().all(|warning| warning.len() == CUT));
    }

    #[test]
    fn empty_and_repeated_warnings_are_dropped() {
        let notes = Notes::default();
        for text in ["a", "", "a", "b\n", "c"] {
            notes.warn(Stage::Mutating, text);
        }
        assert_eq!(notes.take_warnings(Stage::Mutating), ["a", "c"]);
    }
}
