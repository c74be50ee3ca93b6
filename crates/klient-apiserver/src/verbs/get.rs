//! Reads of single objects.

use http::{Response, StatusCode};
use klient_core::{GroupResource, Status, StatusReason};

use super::Target;
use crate::{Result, body::ResponseBody, call::Call, metadata, response, server::Core};

impl Core {
    pub(super) async fn get(&self, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let wanted = call.response_format(&target.resource)?;
        if let Some(version) = call.param("resourceVersion") {
            self.wait_for(parse_version(version).map_err(|status| blameless(&status))?).await?;
        }
        if let Some(computed) = target.resource.hooks.computed {
            let found = computed().into_iter().find(|object| metadata::text(object, "name") == target.name());
            // The real server names the resource by its singular here.
            let kind = GroupResource::new(target.resource.group.clone(), target.resource.singular.clone());
            let object = found.ok_or_else(|| Box::new(Status::not_found(&kind, target.name())))?;
            return response::object(StatusCode::OK, &target.resource, &object, wanted);
        }
        let stored = self.store.get(&target.resource.table, &target.key()).ok_or_else(|| target.not_found())?;
        let stored = self.stored_in(&target.resource, stored).await?;
        response::stored(StatusCode::OK, &target.resource, &stored, wanted)
    }

    /// Waits until the store has a revision.
    pub(super) async fn wait_for(&self, revision: u64) -> Result<()> {
        let deadline = tokio::time::Instant::now() + FRESHNESS;
        loop {
            let current = self.store.revision();
            if current >= revision {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(Box::new(Status::version_too_large(revision, current, 1)));
            }
            // Clients rarely request a version from the future, and the wait is bounded.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

/// Parses a resource version. Only the server may interpret it as a number.
pub(super) fn parse_version(text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        let message = format!("Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax");
        Box::new(Status::bad_request(format!("invalid resource version: resourceVersion: {message}")))
    })
}

/// Returns the real server's error for an invalid version in a get or watch, which is a 500 and not a 400.
pub(super) fn blameless(status: &Status) -> Box<Status> {
    let message = status.message.trim_start_matches("invalid resource version: ").to_owned();
    Box::new(Status::failure(StatusReason::Unknown, 500, message))
}

const FRESHNESS: std::time::Duration = std::time::Duration::from_secs(3);
