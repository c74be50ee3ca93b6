//! One problem of a configuration: the file, the field and the reason.
//!
//! A problem never quotes a value that may be a secret.

use std::{fmt, path::Path, sync::Arc};

use crate::{BoxError, Error, ErrorKind};

/// A problem and its location.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) file: Option<Arc<Path>>,
    pub(crate) field: String,
    pub(crate) why: String,
    pub(crate) source: Option<BoxError>,
}

impl Problem {
    pub(crate) fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { file: None, field: field.into(), why: why.into(), source: None }
    }

    pub(crate) fn in_file(mut self, file: Option<Arc<Path>>) -> Self {
        self.file = file;
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        match (self.field.is_empty(), &self.file) {
            (false, _) => write!(f, "{}: {}", self.field, self.why),
            (true, Some(_)) => f.write_str(&self.why),
            (true, None) => write!(f, "kubeconfig {}", self.why),
        }
    }
}

impl From<Problem> for Error {
    fn from(mut problem: Problem) -> Self {
        let source = problem.source.take();
        let error = Self::new(ErrorKind::Config, problem.to_string());
        match source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

/// Returns one error for all problems, so that a user can fix them all at once.
pub(crate) fn error_for(mut problems: Vec<Problem>) -> Option<Error> {
    if problems.len() > 1 {
        let all: Vec<String> = problems
            .iter()
            // The causes are part of the message, because an error has only one source.
            .map(|problem| match &problem.source {
                Some(source) => format!("{problem}: {source}"),
                None => problem.to_string(),
            })
            .collect();
        return Some(Error::new(ErrorKind::Config, all.join("; ")));
    }
    problems.pop().map(Error::from)
}
