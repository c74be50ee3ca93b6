//! Versions that go back: a server that was restored from a backup, or restarted without its data.
//!
//! Such a server accepts a watch from a version that it does not have yet, and sends nothing until it gets there. An informer
//! that only waits would stay stale in silence. So a version below the one that a watch was opened from is evidence; and where
//! a watch brings nothing, the current version of the server is read and compared with the last one seen.

use std::time::Duration;

use klient_core::ResourceVersion;
use tokio::time::Instant;

use super::{ListWatch, Reflector, ReflectorStore, RelistReason, Retry, Step};
use crate::{Error, ErrorKind, informer::list_watch::ListItems as _};

/// The shortest time between two reads of the server's current version.
const CHECK_EVERY: Duration = Duration::from_secs(60);
/// The time after which a read of the current version is given up. The watch that follows reports what is wrong.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Returns whether enough time has passed since the server's version was last read.
    pub(super) fn may_check_version(&self) -> bool {
        self.version_checked.is_none_or(|checked| checked.elapsed() >= CHECK_EVERY)
    }

    /// Reads the server's current version, and relists if it is older than the last one seen.
    pub(super) async fn check_version(&mut self) -> Step<L::Watch> {
        self.version_checked = Some(Instant::now());
        let version = tokio::time::timeout(CHECK_TIMEOUT, self.current_version()).await;
        self.reconnecting = false;
        match version {
            Ok(Some(version)) if self.version.is_newer_than(&version) => self.after_version_went_back(&version),
            _ => Step::Watch,
        }
    }

    /// Reads the version of a list of one object.
    async fn current_version(&self) -> Option<ResourceVersion> {
        let options = self.list_options().limit(1);
        let mut list = self.source.list(options, self.options.managed_fields).await.ok()?;
        while list.next().await.is_some() {}
        Some(list.end()?.metadata.resource_version?.into())
    }

    /// Relists after a delay, and trusts no cached object because of its version.
    pub(super) fn after_version_went_back(&mut self, found: &ResourceVersion) -> Step<L::Watch> {
        let message = format!(
            "the server's resource version went back from {} to {found}: it was restored from a backup or lost its data; relisting",
            self.version
        );
        self.report(&Error::new(ErrorKind::Gone, message));
        self.version_unavailable = true;
        self.version_went_back = true;
        self.reconnecting = false;
        Step::Wait(self.backoff.delay(None), Retry::Begin(RelistReason::VersionWentBack))
    }

    /// Notes the version of a complete list before it replaces the last one seen.
    pub(super) fn note_listed(&mut self, version: &ResourceVersion) {
        if std::mem::take(&mut self.version_went_back) && !self.version.is_newer_than(version) {
            tracing::info!(
                resource = self.source.describe(),
                last_seen = %self.version,
                listed = %version,
                "resource versions of events are not ordered, ignoring them as a sign of lost data"
            );
            self.events_unordered = true;
        }
    }
}
