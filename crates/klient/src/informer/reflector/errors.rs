//! Failures of lists and watches: the state that each one means, and the next step.

use std::time::Duration;

use super::{ListWatch, Reflector, ReflectorStore, RelistReason, Retry, Step};
use crate::{Error, ErrorKind};

/// The number of consecutive watches without an event after which the whole state is read again.
const MAX_EMPTY_WATCHES: u32 = 5;
/// The longest delay for a kind that is not served: it may be installed at any moment.
const MAX_DELAY_NOT_SERVED: Duration = Duration::from_secs(10);

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Returns the next step after a failed list.
    pub(super) fn after_list_error<W>(&mut self, error: &Error, reason: RelistReason) -> Step<W> {
        if is_version_unavailable(error) && !self.version_unavailable && !self.version.is_empty() {
            tracing::debug!(
                resource = self.source.describe(),
                version = %self.version,
                "resource version unavailable, listing the most recent one"
            );
            self.version_unavailable = true;
            return Step::Begin(reason);
        }
        self.report(error);
        let reason = match reason {
            RelistReason::Initial | RelistReason::VersionWentBack => reason,
            _ => RelistReason::Unavailable,
        };
        Step::Wait(self.delay(error), Retry::Begin(reason))
    }

    /// Returns the next step after a watch that could not be opened or ended with an error.
    pub(super) fn after_watch_error<W>(&mut self, error: &Error) -> Step<W> {
        if is_version_unavailable(error) {
            tracing::debug!(resource = self.source.describe(), version = %self.version, "watch expired, relisting");
            return Step::Begin(RelistReason::Expired);
        }
        self.report(error);
        self.empty_watches += 1;
        let delay = self.delay(error);
        match error.kind() {
            // Only a list shows whether the kind is back, and a new kind may have nothing in common with the old one.
            ErrorKind::NotFound | ErrorKind::Forbidden | ErrorKind::Unauthorized | ErrorKind::Invalid => {
                Step::Wait(delay, Retry::Begin(RelistReason::Unavailable))
            }
            // The server is overloaded or unreachable, but still has all events after the last version.
            ErrorKind::TooManyRequests | ErrorKind::Transport | ErrorKind::Untrusted | ErrorKind::Auth => {
                Step::Wait(delay, Retry::Watch)
            }
            _ => Step::Wait(delay, self.watch_or_relist()),
        }
    }

    /// Returns the next step after a watch that ended at once without an event.
    pub(super) fn after_empty_watch<W>(&mut self) -> Step<W> {
        self.empty_watches += 1;
        let delay = self.backoff.delay(None);
        Step::Wait(delay, self.watch_or_relist())
    }

    fn watch_or_relist(&mut self) -> Retry {
        if self.empty_watches < MAX_EMPTY_WATCHES {
            return Retry::Watch;
        }
        self.empty_watches = 0;
        Retry::Begin(RelistReason::NoProgress)
    }

    /// Records a failure that is retried.
    pub(super) fn report(&mut self, error: &Error) {
        tracing::warn!(resource = self.source.describe(), %error, "list or watch failed, retrying");
        self.reconnecting |= error.kind() == ErrorKind::Transport;
        self.board.failed(error);
        self.call_error_handler(error);
    }

    /// Records an object or event that cannot be read. The others are not affected.
    pub(super) fn report_unreadable(&self, error: &Error) {
        tracing::error!(resource = self.source.describe(), %error, "object cannot be read, skipping it");
        self.board.unreadable(error);
        self.call_error_handler(error);
    }

    fn call_error_handler(&self, error: &Error) {
        if let Some(handler) = &self.options.on_error {
            handler(error);
        }
    }

    fn delay(&mut self, error: &Error) -> Duration {
        let delay = self.backoff.delay(error.retry_after());
        if error.is_not_found() { delay.min(MAX_DELAY_NOT_SERVED) } else { delay }
    }
}

/// Returns whether the server no longer has the version, or does not have it yet.
pub(super) fn is_version_unavailable(error: &Error) -> bool {
    error.is_gone() || error.status().is_some_and(klient_core::Status::is_version_too_large)
}
