//! One failure, reported to every caller that waited for the same result.
//!
//! [`Error`] is not `Clone`, because its source need not be. Each caller gets an error with the same kind, message and
//! delay, and with the same source.

use std::{error::Error as StdError, fmt, sync::Arc};

use crate::Error;

/// Returns a copy of a shared error.
pub(in crate::client) fn copy_of(shared: &Arc<Error>) -> Error {
    let mut error = Error::new(shared.kind(), shared.to_string());
    if let Some(delay) = shared.retry_after() {
        error = error.with_retry_after(delay);
    }
    match shared.source() {
        Some(_) => error.with_source(Cause { of: Arc::clone(shared) }),
        None => error,
    }
}

/// The source of a shared error.
struct Cause {
    of: Arc<Error>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.source().map_or(Ok(()), |source| fmt::Display::fmt(source, f))
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.source().map_or(Ok(()), |source| fmt::Debug::fmt(source, f))
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.of.source()?.source()
    }
}

#[cfg(test)]
mod tests {
    use std::{io, time::Duration};

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn copy_has_kind_message_delay_and_sources() {
        let below = Error::new(ErrorKind::Config, "no route").with_source(io::Error::other("unplugged"));
        let error = Error::new(ErrorKind::Transport, "cannot connect").with_source(below);
        let shared = Arc::new(error.with_retry_after(Duration::from_secs(3)));
        for _ in 0..2 {
            let error = copy_of(&shared);
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Transport, "cannot connect"));
            assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
            let cause = error.source().unwrap();
            assert_eq!(cause.to_string(), "no route");
            assert_eq!(cause.source().unwrap().to_string(), "unplugged");
        }
        assert!(copy_of(&Arc::new(Error::new(ErrorKind::Auth, "no"))).source().is_none());
    }
}
