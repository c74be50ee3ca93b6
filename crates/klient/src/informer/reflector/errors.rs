//! Failures of lists and watches: the state that each one means, and the next step.

use std::{io, panic, time::Duration};

use klient_core::Status;

use super::{ListWatch, Reflector, ReflectorStore, RelistReason, Retry, Step};
use crate::{Error, ErrorKind};

/// The number of consecutive watches without an event after which the whole state is read again.
const MAX_EMPTY_WATCHES: u32 = 5;
/// The longest delay for a kind that is not served: it may be installed at any moment.
const MAX_DELAY_NOT_SERVED: Duration = Duration::from_secs(10);

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Returns the next step after a failed list.
    pub(super) fn after_list_error<W>(&mut self, error: &Error, reason: RelistReason) -> Step<W> {
        if self.is_selector_refused(error) {
            return Step::Begin(reason);
        }
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
            RelistReason::Initial | RelistReason::VersionWentBack | RelistReason::Resharded => reason,
            _ => RelistReason::Unavailable,
        };
        Step::Wait(self.delay(error), Retry::Begin(reason))
    }

    /// Returns the next step after a watch that could not be opened or ended with an error.
    pub(super) fn after_watch_error<W>(&mut self, error: &Error) -> Step<W> {
        if is_version_unavailable(error) {
            return self.after_expired(error);
        }
        if self.is_selector_refused(error) {
            return Step::Watch;
        }
        self.report(error);
        self.empty_watches += 1;
        let delay = self.delay(error);
        match error.kind() {
            // The events are in a part of the store that the server cannot read.
            _ if error.status().is_some_and(Status::is_store_read_error) => {
                Step::Wait(delay, Retry::Begin(RelistReason::Unavailable))
            }
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

    /// Returns the next step after a watch whose version is not available: a relist, at once the first time. A server that
    /// rejects the version of its own list as well is not asked at network speed.
    fn after_expired<W>(&mut self, error: &Error) -> Step<W> {
        if !std::mem::replace(&mut self.expired, true) {
            tracing::debug!(resource = self.source.describe(), version = %self.version, "watch expired, relisting");
            return Step::Begin(RelistReason::Expired);
        }
        self.report(error);
        Step::Wait(self.delay(error), Retry::Begin(RelistReason::Expired))
    }

    /// Returns the next step after a watch with initial events that could not be opened or failed before they were complete.
    pub(super) fn after_watch_list_error<W>(&mut self, error: &Error, reason: RelistReason) -> Step<W> {
        let list_fails_too = error.kind() == ErrorKind::TooManyRequests || is_connection_refused(error);
        if list_fails_too || is_version_unavailable(error) {
            return self.after_list_error(error, reason);
        }
        tracing::info!(resource = self.source.describe(), %error, "watch with initial events failed, listing");
        Step::List(reason)
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

    pub(super) fn call_error_handler(&self, error: &Error) {
        let Some(handler) = &self.options.on_error else { return };
        if panic::catch_unwind(panic::AssertUnwindSafe(|| handler(error))).is_err() {
            tracing::error!(resource = self.source.describe(), "error handler panicked, continuing");
        }
    }

    fn delay(&mut self, error: &Error) -> Duration {
        let delay = self.backoff.delay(error.retry_after());
        if error.is_not_found() { delay.min(MAX_DELAY_NOT_SERVED) } else { delay }
    }
}

/// Returns whether the server no longer has the version, or does not have it yet.
pub(super) fn is_version_unavailable(error: &Error) -> bool {
    error.is_gone() || error.status().is_some_and(Status::is_version_too_large)
}

fn is_connection_refused(error: &Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}
