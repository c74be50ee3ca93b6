//! Waiting for an object to be as it should: by a list and a watch of that one object, over as many connections as it takes.
//!
//! What must hold: nothing that happens between two looks is missed, because every watch begins where a list ended.
//! In client-go: `tools/watch` `UntilWithSync`; on the command line: `kubectl wait`.

use std::{fmt, sync::Arc, time::Duration};

use klient_core::{Resource, WatchEvent};
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::{Error, ErrorKind, client::Api, retry::Backoff};

/// What is waited for: any question about an object that may not exist.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::wait::Until;
///
/// let running = Until::is(|pod: &Pod| pod.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running")));
/// let ready = running.and(Until::condition("Ready", "True"));
/// assert!(!ready.holds(None));
/// assert!(ready.or(Until::absent()).holds(None));
/// ```
pub struct Until<K> {
    holds: Arc<Holds<K>>,
}

type Holds<K> = dyn Fn(Option<&K>) -> bool + Send + Sync;

impl<K: Resource> Until<K> {
    /// The answer of a function; the object is absent if it does not exist.
    pub fn new(holds: impl Fn(Option<&K>) -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds) }
    }

    /// That the object exists and a function says yes to it.
    pub fn is(holds: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |object| object.is_some_and(&holds))
    }

    /// That the object exists.
    pub fn exists() -> Self {
        Self::is(|_| true)
    }

    /// That the object does not exist.
    pub fn absent() -> Self {
        Self::new(|object| object.is_none())
    }

    /// That the object with this UID does not exist, though one of its name may.
    pub fn replaced(uid: impl Into<String>) -> Self {
        let uid = uid.into();
        Self::new(move |object| object.is_none_or(|object| object.metadata().uid.as_deref() != Some(&uid)))
    }

    /// That a condition in the object's status is `True`, `False` or `Unknown`.
    pub fn condition(type_: impl Into<String>, status: impl Into<String>) -> Self {
        let (type_, status) = (type_.into(), status.into());
        Self::is(move |object| {
            let object = serde_json::to_value(object).unwrap_or_default();
            let conditions = object["status"]["conditions"].as_array();
            conditions
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == type_ && condition["status"] == status)
        })
    }

    /// That both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |object| self.holds(object) && other.holds(object))
    }

    /// That one of both holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |object| self.holds(object) || other.holds(object))
    }

    /// That it does not hold.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::new(move |object| !self.holds(object))
    }

    /// Whether it holds for an object.
    pub fn holds(&self, object: Option<&K>) -> bool {
        (self.holds)(object)
    }
}

/// Waits until something holds for the object of that name; gives the object as it is then, if it exists.
///
/// A kind that is not installed yet is waited for, too. Servers that are busy or cannot be reached are asked again.
///
/// ```no_run
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client};
/// use klient::wait::{Until, wait_for};
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
/// If it does not hold in time, or if the server refuses: then it would do so again.
pub async fn wait_for<K: Resource>(
    api: &Api<K>,
    name: &str,
    until: &Until<K>,
    limit: Duration,
) -> Result<Option<K>, Error> {
    let waiting = async {
        let backoff = Backoff::growing()
            .first(Duration::from_millis(100))
            .factor(2.0)
            .max(Duration::from_secs(5))
            .steps(u32::MAX);
        let mut pauses = backoff.delays();
        loop {
            match look(api, name, until).await {
                Ok(Some(object)) => return Ok(object),
                // The watch ended, as watches do.
                Ok(None) => pauses = backoff.delays(),
                Err(error) if may_pass(&error) => debug!(name, %error, "waits"),
                Err(error) => return Err(error),
            }
            sleep(pauses.next().unwrap_or(Duration::from_secs(5))).await;
        }
    };
    let what = api.resource().plural.clone();
    match timeout(limit, waiting).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::new(ErrorKind::Timeout, format!("{what} \"{name}\" was not as expected in time"))),
    }
}

/// Looks, and watches until it holds or the watch ends.
async fn look<K: Resource>(api: &Api<K>, name: &str, until: &Until<K>) -> Result<Option<Option<K>>, Error> {
    let this = format!("metadata.name={name}");
    let list = api.list().fields(&this).await?;
    let version = list.resource_version();
    let object = list.items.into_iter().next();
    if until.holds(object.as_ref()) {
        return Ok(Some(object));
    }
    let mut watch = api.watch().after(version).fields(&this).await?;
    while let Some(event) = watch.next().await {
        let object = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
            WatchEvent::Deleted(_) => None,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(status.into()),
        };
        if until.holds(object.as_ref()) {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

/// Whether asking again may help. A kind that is not found may be installed.
fn may_pass(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::Forbidden | ErrorKind::Unauthorized | ErrorKind::Invalid | ErrorKind::Config | ErrorKind::Untrusted
    )
}

impl<K> Clone for Until<K> {
    fn clone(&self) -> Self {
        Self { holds: Arc::clone(&self.holds) }
    }
}

impl<K> fmt::Debug for Until<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Until").finish_non_exhaustive()
    }
}
