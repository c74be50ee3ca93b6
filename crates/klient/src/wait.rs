//! Waiting for an object to reach a state: by a list and a watch of that one object, over as many connections as it takes.
//!
//! Invariant: no change is missed, because every watch begins at the version where a list ended.
//! In client-go: `tools/watch` `UntilWithSync`; on the command line: `kubectl wait`.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use klient_core::{Resource, Target, WatchEvent};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::{Error, ErrorKind, client::Api, retry::Backoff};

/// A condition for [`wait_for`]: a predicate on an object that may not exist, with a description for errors.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::wait::Until;
///
/// let running = Until::is(|pod: &Pod| pod.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running")))
///     .described_as("phase Running");
/// let ready = running.and(Until::condition("Ready", "True"));
/// assert_eq!(ready.to_string(), "phase Running and condition Ready=True");
/// assert!(!ready.holds(None));
/// assert!(ready.or(Until::absent()).holds(None));
/// ```
#[doc(alias = "Condition")]
#[doc(alias = "ConditionFunc")]
pub struct Until<K> {
    holds: Arc<Holds<K>>,
    description: Cow<'static, str>,
}

type Holds<K> = dyn Fn(Option<&K>) -> bool + Send + Sync;

impl<K: Resource> Until<K> {
    /// Creates a condition from a function. The function receives `None` if the object does not exist.
    pub fn new(holds: impl Fn(Option<&K>) -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds), description: "the expected state".into() }
    }

    /// Creates a condition that holds if the object exists and the function returns true.
    pub fn is(holds: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |object| object.is_some_and(&holds))
    }

    /// Creates a condition that holds if the object exists.
    pub fn exists() -> Self {
        Self::is(|_| true).described_as("existence")
    }

    /// Creates a condition that holds if the object does not exist.
    #[doc(alias = "is_deleted")]
    pub fn absent() -> Self {
        Self::new(|object| object.is_none()).described_as("deletion")
    }

    /// Creates a condition that holds if the object with this UID does not exist. Another object may have its name.
    #[doc(alias = "is_deleted")]
    pub fn replaced(uid: impl Into<String>) -> Self {
        let uid = uid.into();
        let description = format!("deletion of the object with UID {uid}");
        Self::new(move |object| object.is_none_or(|object| object.metadata().uid.as_deref() != Some(&uid)))
            .described_as(description)
    }

    /// Creates a condition that holds if the object's status has a condition of this type with this status: `True`, `False`
    /// or `Unknown`.
    pub fn condition(type_: impl Into<String>, status: impl Into<String>) -> Self {
        let (type_, status) = (type_.into(), status.into());
        let description = format!("condition {type_}={status}");
        Self::is(move |object| {
            let object = serde_json::to_value(object).unwrap_or_default();
            let conditions = object["status"]["conditions"].as_array();
            conditions
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == type_ && condition["status"] == status)
        })
        .described_as(description)
    }

    /// Sets the description, for the error of a wait that times out: a noun such as `phase Running`.
    #[must_use]
    pub fn described_as(mut self, description: impl Into<Cow<'static, str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Creates a condition that holds if both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let description = format!("{self} and {other}");
        Self::new(move |object| self.holds(object) && other.holds(object)).described_as(description)
    }

    /// Creates a condition that holds if one of both holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let description = format!("{self} or {other}");
        Self::new(move |object| self.holds(object) || other.holds(object)).described_as(description)
    }

    /// Creates a condition that holds if this one does not.
    #[must_use]
    pub fn negated(self) -> Self {
        let description = format!("not {self}");
        Self::new(move |object| !self.holds(object)).described_as(description)
    }

    /// Returns whether the condition holds for an object.
    pub fn holds(&self, object: Option<&K>) -> bool {
        (self.holds)(object)
    }
}

/// Waits until a condition holds for the object with this name. Returns the object in that state, if it exists.
///
/// A kind that is not installed yet is waited for as well. Requests to servers that are busy or unreachable are retried.
///
/// ```no_run
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client, wait::{Until, wait_for}};
///
/// # async fn wait() -> Result<(), klient::Error> {
/// let deployments: Api<Deployment> = Api::namespaced(Client::infer()?, "shop");
/// wait_for(&deployments, "web", &Until::condition("Available", "True"), Duration::from_secs(60)).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns a [`Timeout`](ErrorKind::Timeout) error if the condition does not hold within `limit`. The error says which state was
/// last seen; its source is the error of the last request, if that failed. Returns the server's error if the server
/// refuses the request in a way that a retry would not change.
#[doc(alias = "await_condition")]
#[doc(alias = "UntilWithSync")]
pub async fn wait_for<K: Resource>(
    api: &Api<K>,
    name: &str,
    until: &Until<K>,
    limit: Duration,
) -> Result<Option<K>, Error> {
    let mut progress = Progress::default();
    let waiting = async {
        let backoff = Backoff::growing()
            .first(Duration::from_millis(100))
            .factor(2.0)
            .max(Duration::from_secs(5))
            .steps(u32::MAX);
        let mut delays = backoff.delays();
        loop {
            match list_and_watch(api, name, until, &mut progress).await {
                Ok(Some(object)) => return Ok(object),
                // Servers end watches from time to time.
                Ok(None) => delays = backoff.delays(),
                Err(error) if is_retriable(&error) => {
                    debug!(name, %error, "wait interrupted, retrying");
                    progress.error = Some(error);
                }
                Err(error) => return Err(error),
            }
            sleep(delays.next().unwrap_or(Duration::from_secs(5))).await;
        }
    };
    match timeout(limit, waiting).await {
        Ok(outcome) => outcome,
        Err(_) => Err(progress.timed_out(&described(api, name), until, limit)),
    }
}

/// The observations of a wait so far.
struct Progress<K> {
    /// The last state of the object: `Some(None)` if it did not exist.
    seen: Option<Option<K>>,
    /// The error of the last request, if it failed.
    error: Option<Error>,
}

impl<K: Resource> Progress<K> {
    /// Notes a state. Returns the object if the condition holds.
    fn check(&mut self, object: Option<K>, until: &Until<K>) -> Option<Option<K>> {
        self.error = None;
        if until.holds(object.as_ref()) {
            return Some(object);
        }
        self.seen = Some(object);
        None
    }

    fn timed_out(self, object: &str, until: &Until<K>, limit: Duration) -> Error {
        let seen = match &self.seen {
            None => "never seen".to_owned(),
            Some(None) => "not found".to_owned(),
            Some(Some(object)) => state_of(object),
        };
        let message = format!("timed out after {limit:?} waiting for {until} of {object}: last seen: {seen}");
        let error = Error::new(ErrorKind::Timeout, message);
        match self.error {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

impl<K> Default for Progress<K> {
    fn default() -> Self {
        Self { seen: None, error: None }
    }
}

/// Names an object: `deployments "web" in namespace "shop"`.
fn described<K: Resource>(api: &Api<K>, name: &str) -> String {
    let plural = &api.resource().plural;
    match api.target() {
        Target::Namespace(namespace) => format!("{plural} \"{name}\" in namespace \"{namespace}\""),
        _ => format!("{plural} \"{name}\""),
    }
}

/// Describes an object in one line: its version, whether it is being deleted, its phase and its conditions.
fn state_of<K: Resource>(object: &K) -> String {
    let mut parts = vec![format!("version {}", object.metadata().resource_version.as_deref().unwrap_or("unknown"))];
    if object.metadata().deletion_timestamp.is_some() {
        let finalizers = object.metadata().finalizers.clone().unwrap_or_default();
        parts.push(match finalizers.len() {
            0 => "being deleted".to_owned(),
            _ => format!("being deleted, finalizers {}", finalizers.join(", ")),
        });
    }
    let object = serde_json::to_value(object).unwrap_or_default();
    if let Some(phase) = object["status"]["phase"].as_str() {
        parts.push(format!("phase {phase}"));
    }
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        let reason = condition["reason"].as_str().filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        parts.push(format!("condition {}={}{reason}", text(&condition["type"]), text(&condition["status"])));
    }
    parts.join(", ")
}

/// Lists the object, and watches it until the condition holds or the watch ends.
async fn list_and_watch<K: Resource>(
    api: &Api<K>,
    name: &str,
    until: &Until<K>,
    progress: &mut Progress<K>,
) -> Result<Option<Option<K>>, Error> {
    let selector = format!("metadata.name={name}");
    let list = api.list().fields(&selector).await?;
    let version = list.resource_version();
    if let Some(reached) = progress.check(list.items.into_iter().next(), until) {
        return Ok(Some(reached));
    }
    let mut watch = api.watch().after(version).fields(&selector).await?;
    while let Some(event) = watch.next().await {
        let object = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
            WatchEvent::Deleted(_) => None,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(status.into()),
        };
        if let Some(reached) = progress.check(object, until) {
            return Ok(Some(reached));
        }
    }
    Ok(None)
}

/// Returns whether a retry may succeed. A kind that is not found may be installed later.
fn is_retriable(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::Forbidden | ErrorKind::Unauthorized | ErrorKind::Invalid | ErrorKind::Config | ErrorKind::Untrusted
    )
}

impl<K> Clone for Until<K> {
    fn clone(&self) -> Self {
        Self { holds: Arc::clone(&self.holds), description: self.description.clone() }
    }
}

impl<K> fmt::Display for Until<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

impl<K> fmt::Debug for Until<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Until").field("description", &self.description).finish_non_exhaustive()
    }
}
