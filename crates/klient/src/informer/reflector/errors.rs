//! What becomes of a failure: which state it means, and what is tried next.

use std::time::Duration;

use super::{ListWatch, Reflector, ReflectorStore, Relist, Step, Then};
use crate::{Error, ErrorKind};

/// How many watches in a row may bring nothing before the whole state is read again.
const FRUITLESS: u32 = 5;
/// A kind that is not there may be installed at any moment.
const LONGEST_FOR_KIND: Duration = Duration::from_secs(10);

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// A read of the whole state failed.
    pub(super) fn after_list_error<W>(&mut self, error: &Error, reason: Relist) -> Step<W> {
        if is_version_trouble(error) && !self.version_unavailable && !self.version.is_empty() {
            tracing::debug!(resource = self.source.describe(), "version {} is not to be had", self.version);
            self.version_unavailable = true;
            return Step::Begin(reason);
        }
        self.report(error);
        let reason = if matches!(reason, Relist::First) { reason } else { Relist::Unavailable };
        Step::Wait(self.delay(error), Then::Begin(reason))
    }

    /// A watch could not be started, or ended with an error.
    pub(super) fn after_watch_error<W>(&mut self, error: &Error) -> Step<W> {
        if is_version_trouble(error) {
            return Step::Begin(Relist::Expired);
        }
        self.report(error);
        self.fruitless += 1;
        let delay = self.delay(error);
        match error.kind() {
            // Only a list can tell whether the kind is back, and a new one may have nothing in common with the old.
            ErrorKind::NotFound | ErrorKind::Forbidden | ErrorKind::Unauthorized | ErrorKind::Invalid => {
                Step::Wait(delay, Then::Begin(Relist::Unavailable))
            }
            // The server asks for patience, or is away: what it has to say is all still there.
            ErrorKind::TooManyRequests | ErrorKind::Transport | ErrorKind::Untrusted | ErrorKind::Auth => {
                Step::Wait(delay, Then::Watch)
            }
            _ => Step::Wait(delay, self.again()),
        }
    }

    /// After a watch that brought nothing.
    pub(super) fn after_fruitless<W>(&mut self) -> Step<W> {
        self.fruitless += 1;
        let delay = self.pace.delay(None);
        Step::Wait(delay, self.again())
    }

    fn again(&mut self) -> Then {
        if self.fruitless < FRUITLESS {
            return Then::Watch;
        }
        self.fruitless = 0;
        Then::Begin(Relist::Fruitless)
    }

    pub(super) fn report(&self, error: &Error) {
        tracing::warn!(resource = self.source.describe(), %error, "list or watch failed; trying again");
        self.board.failed(error);
        self.tell(error);
    }

    /// One object or event that cannot be read: it is left out, and the rest goes on.
    pub(super) fn report_unreadable(&self, error: &Error) {
        tracing::error!(resource = self.source.describe(), %error, "an object cannot be read and is left out");
        self.board.unreadable(error);
        self.tell(error);
    }

    fn tell(&self, error: &Error) {
        if let Some(handler) = &self.options.on_error {
            handler(error);
        }
    }

    fn delay(&mut self, error: &Error) -> Duration {
        let delay = self.pace.delay(error.retry_after());
        if error.is_not_found() { delay.min(LONGEST_FOR_KIND) } else { delay }
    }
}

/// Whether the version is too old for the server, or too new.
pub(super) fn is_version_trouble(error: &Error) -> bool {
    error.is_gone() || error.status().is_some_and(klient_core::Status::is_version_too_large)
}
