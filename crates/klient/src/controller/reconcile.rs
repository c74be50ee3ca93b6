//! The user's part of a controller: a function from a request to an outcome.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use klient_core::{ApiResource, ObjectKey, Resource, StaticScope};

use super::reason::Reasons;
use crate::{
    BoxError, Error, ErrorKind,
    informer::{CachedObject, Lister},
    writes::{StoredState, Write, WriteEffect, WriteLog},
};

/// A function that brings the world to the state that an object describes.
///
/// It is called for one key at a time, and by several workers for different keys. It has to work from the current state and not
/// from events: events are merged, repeated and late. Any function from a [`Request`] to a future is a reconciler; so is a
/// type that implements this trait:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::controller::{Outcome, Reconciler, Request};
///
/// struct Counter {
///     limit: usize,
/// }
///
/// impl Reconciler<ConfigMap> for Counter {
///     type Error = klient::Error;
///
///     async fn reconcile(&self, request: Request<ConfigMap>) -> Result<Outcome, klient::Error> {
///         let entries = request.object()?.and_then(|map| map.data.as_ref().map(|data| data.len())).unwrap_or(0);
///         if entries > self.limit {
///             println!("{} has {entries} entries", request.key());
///         }
///         Ok(Outcome::Done)
///     }
/// }
/// ```
pub trait Reconciler<K: Resource>: Send + Sync + 'static {
    /// The error of a failed reconcile. If it is or contains a [`Terminal`] error, the key is not retried.
    type Error: Into<BoxError> + Send;

    /// Reconciles one key.
    fn reconcile(&self, request: Request<K>) -> impl Future<Output = Result<Outcome, Self::Error>> + Send;
}

impl<K, F, R, E> Reconciler<K> for F
where
    K: Resource,
    F: Fn(Request<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, E>> + Send,
    E: Into<BoxError> + Send,
{
    type Error = E;

    fn reconcile(&self, request: Request<K>) -> impl Future<Output = Result<Outcome, E>> + Send {
        self(request)
    }
}

/// The outcome of a successful reconcile: when to reconcile the key again.
///
/// ```
/// use std::time::Duration;
/// use klient::controller::Outcome;
///
/// assert_eq!(Outcome::Done, Outcome::Done);
/// assert_eq!(Outcome::RequeueAfter(Duration::from_secs(60)), Outcome::RequeueAfter(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "Action")]
#[doc(alias = "Result")]
pub enum Outcome {
    /// When something changes.
    #[default]
    #[doc(alias = "await_change")]
    Done,
    /// After this time, or earlier if something changes.
    #[doc(alias = "requeue")]
    RequeueAfter(Duration),
}

/// The decision when to retry a key whose reconcile failed; see [`on_error`](super::ControllerBuilder::on_error).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "error_policy")]
pub enum Retry {
    /// After the delay of the [rate limiter](super::ControllerBuilder::rate_limiter): longer with each failure.
    #[default]
    Backoff,
    /// After this time.
    After(Duration),
    /// Not before something changes, as after a [`Terminal`] error.
    Never,
}

/// An error that a retry would not fix: the key waits until something changes.
///
/// ```
/// use klient::controller::Terminal;
///
/// fn check(replicas: i32) -> Result<(), klient::Error> {
///     if replicas < 0 {
///         return Err(Terminal::new("spec.replicas must not be negative").into());
///     }
///     Ok(())
/// }
/// assert!(Terminal::is_in(&check(-1).unwrap_err()));
/// ```
#[derive(Debug)]
#[doc(alias = "TerminalError")]
pub struct Terminal {
    source: BoxError,
}

impl Terminal {
    /// Creates a terminal error from another error or a message.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self { source: error.into() }
    }

    /// Returns whether an error is terminal, or one of its sources is.
    pub fn is_in(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Self>)
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl std::error::Error for Terminal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The text of the wrapped error is already this error's text.
        self.source.source()
    }
}

/// Wraps a terminal error, so that `?` works in functions that return a [`klient::Error`](Error). The error stays terminal.
impl From<Terminal> for Error {
    fn from(terminal: Terminal) -> Self {
        let kind = terminal.source.downcast_ref::<Self>().map_or(ErrorKind::Invalid, Self::kind);
        Self::new(kind, terminal.to_string()).with_source(terminal)
    }
}

/// A request to reconcile one key: the key, the reasons, and the cache.
pub struct Request<K: Resource> {
    turn: Turn,
    lister: Lister<K>,
    log: WriteLog,
}

/// The part of a request that does not depend on the kind.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) key: ObjectKey,
    pub(super) reasons: Reasons,
    pub(super) failures: u32,
    pub(super) cluster: Option<Arc<str>>,
    #[cfg(feature = "client")]
    pub(super) permit: super::permit::Permit,
}

impl<K: Resource> Request<K> {
    pub(super) fn new(turn: Turn, lister: Lister<K>, log: WriteLog) -> Self {
        Self { turn, lister, log }
    }

    /// Creates a request for a unit test of a reconciler. Its cache has exactly these objects.
    ///
    /// The request has no reasons, no failures and no leadership; see [`with_reason`](Self::with_reason) and
    /// [`with_failures`](Self::with_failures).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{ObjectKey, controller::{Outcome, Request}};
    ///
    /// async fn reconcile(request: Request<ConfigMap>) -> Result<Outcome, klient::Error> {
    ///     let Some(map) = request.object()? else { return Ok(Outcome::Done) };
    ///     assert!(map.data.is_none());
    ///     Ok(Outcome::Done)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut map = ConfigMap::default();
    /// map.metadata.name = Some("web".to_owned());
    /// map.metadata.namespace = Some("shop".to_owned());
    /// let request = Request::for_test(ObjectKey::of(&map), [map]);
    /// assert_eq!(reconcile(request).await.unwrap(), Outcome::Done);
    /// # }
    /// ```
    pub fn for_test(key: ObjectKey, objects: impl IntoIterator<Item = K>) -> Self {
        let turn = Turn {
            key,
            reasons: Reasons::default(),
            failures: 0,
            cluster: None,
            #[cfg(feature = "client")]
            permit: super::permit::Permit::default(),
        };
        Self::new(turn, super::test_cache::lister_of(objects), WriteLog::default())
    }

    /// Adds a reason, for tests.
    #[must_use]
    pub fn with_reason(mut self, reason: super::Reason) -> Self {
        self.turn.reasons.add(reason);
        self
    }

    /// Sets the number of failures, for tests.
    #[must_use]
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.turn.failures = failures;
        self
    }

    /// Returns the key: namespace and name.
    #[doc(alias = "NamespacedName")]
    pub fn key(&self) -> &ObjectKey {
        &self.turn.key
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.turn.key.name()
    }

    /// Returns the namespace. Empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.turn.key.namespace().unwrap_or_default()
    }

    /// Returns the name of the cluster, if the controller has [one](super::ControllerBuilder::cluster). Empty otherwise. Two objects of
    /// different clusters may have the same [key](Self::key).
    #[doc(alias = "ClusterName")]
    pub fn cluster(&self) -> &str {
        self.turn.cluster.as_deref().unwrap_or_default()
    }

    /// Returns the reasons for this reconcile.
    pub fn reasons(&self) -> &Reasons {
        &self.turn.reasons
    }

    /// Returns the number of failures of this key since its last success.
    pub fn failures(&self) -> u32 {
        self.turn.failures
    }

    /// Returns the object as it is in the cache now, without decoding it. `None` if it was deleted.
    pub fn cached(&self) -> Option<CachedObject<K>> {
        self.lister.get(&self.turn.key)
    }

    /// Returns the object as it is in the cache now. `None` if it was deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the object cannot be decoded as its kind. A retry does not help until the object is changed: wrap the
    /// error in [`Terminal`] to avoid retries.
    pub fn object(&self) -> Result<Option<Arc<K>>, Error> {
        self.cached().map(|object| object.decode()).transpose()
    }

    /// Returns the cache of the controller's own kind.
    pub fn lister(&self) -> &Lister<K> {
        &self.lister
    }

    /// Returns the leadership under which this reconcile runs, if leaders are elected. Its
    /// [token](crate::election::Leadership::token) can be written along with changes, and it says when to stop.
    #[cfg(feature = "client")]
    pub fn leadership(&self) -> Option<&crate::election::Leadership> {
        self.turn.permit.leadership()
    }

    /// Returns the right to the slot of this key, if the controller is [sharded](super::ControllerBuilder::sharded).
    #[cfg(feature = "client")]
    pub fn grant(&self) -> Option<crate::shard::Grant> {
        self.turn.permit.grant()
    }

    /// Notes a write of this reconcile, so that the next reconcile of this key waits until the cache shows it.
    ///
    /// Writes through a [`Client`](crate::Client) are noted automatically, except those of tasks that the reconciler spawned.
    pub fn wrote<O: Resource<Scope: StaticScope>>(&self, object: &O) {
        if let Some(state) = StoredState::of(object, &ApiResource::of::<O>().group_resource()) {
            self.note_write(object, WriteEffect::Stored(state));
        }
    }

    /// Notes a deletion of this reconcile, as [`wrote`](Self::wrote) notes a write.
    pub fn deleted<O: Resource<Scope: StaticScope>>(&self, object: &O) {
        self.note_write(object, WriteEffect::Deleted { uid: object.metadata().uid.clone() });
    }

    fn note_write<O: Resource<Scope: StaticScope>>(&self, object: &O, effect: WriteEffect) {
        let resource = ApiResource::of::<O>().group_resource();
        self.log.push(Write { resource, key: ObjectKey::of(object), effect });
    }
}

impl<K: Resource> fmt::Debug for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.turn.key)
            .field("reasons", &format_args!("{}", self.turn.reasons))
            .field("failures", &self.turn.failures)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::controller::{Reason, ReasonKind};

    #[test]
    fn terminal_error_is_found_below_other_errors() {
        let inner = Terminal::new("invalid image name");
        let outer = Error::new(ErrorKind::Invalid, "shop/web").with_source(inner);
        assert!(Terminal::is_in(&outer));
        assert!(!Terminal::is_in(&Error::new(ErrorKind::Invalid, "shop/web")));
        let terminal = Terminal::new(Error::new(ErrorKind::Timeout, "slow"));
        assert_eq!(terminal.to_string(), Error::new(ErrorKind::Timeout, "slow").to_string());
        assert!(std::error::Error::source(&terminal).is_none());
    }

    #[test]
    fn terminal_error_stays_terminal_as_klient_error() {
        let error = Error::from(Terminal::new(Error::new(ErrorKind::Timeout, "slow")));
        assert!(Terminal::is_in(&error));
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Timeout, "slow"));
        assert_eq!(Error::from(Terminal::new("no image")).kind(), ErrorKind::Invalid);
    }

    #[test]
    fn test_request_has_the_given_objects_and_reasons() {
        let map = |name: &str| {
            let mut map = ConfigMap::default();
            (map.metadata.namespace, map.metadata.name) = (Some("shop".to_owned()), Some(name.to_owned()));
            map
        };
        let request = Request::for_test(ObjectKey::namespaced("shop", "b"), [map("a"), map("b")])
            .with_reason(Reason::new(ReasonKind::Retry))
            .with_failures(2);
        assert_eq!((request.lister().len(), request.failures()), (2, 2));
        assert_eq!(request.object().unwrap().unwrap().metadata.name.as_deref(), Some("b"));
        assert_eq!(request.reasons().to_string(), "retry");
        let deleted = Request::for_test(ObjectKey::namespaced("shop", "c"), [map("a")]);
        assert!(deleted.object().unwrap().is_none());
    }
}
