//! What users write: from a request to an outcome.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use klient_core::{ApiResource, ObjectKey, Resource, StaticScope};

use super::reason::Reasons;
use crate::{
    BoxError, Error,
    informer::{CachedObject, Lister},
    writes::{Left, Write, WriteLog},
};

/// Makes the world as an object says it should be.
///
/// It is called for one key at a time, by any number of workers for different keys. It has to work from the state it finds, not
/// from what happened: events are merged, repeated and late. Any function from a [`Request`] to a future is one.
pub trait Reconciler<K: Resource>: Send + Sync + 'static {
    /// Why it could not. With a [`Terminal`] in it, it is not tried again.
    type Error: Into<BoxError> + Send;

    /// Does it.
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

/// What is left to do after a reconcile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing, until something changes.
    #[default]
    Done,
    /// The same key again after this time, or earlier if something changes.
    RequeueAfter(Duration),
}

/// An error that another try would not mend: the key waits until something changes.
///
/// ```
/// use klient::controller::Terminal;
///
/// fn check(replicas: i32) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     if replicas < 0 {
///         return Err(Terminal::new("there cannot be fewer than no replicas").into());
///     }
///     Ok(())
/// }
/// assert!(check(-1).unwrap_err().is::<Terminal>());
/// ```
#[derive(Debug)]
pub struct Terminal {
    source: BoxError,
}

impl Terminal {
    /// An error that is terminal for this reason.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self { source: error.into() }
    }

    /// Whether an error is terminal, or due to one that is.
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
        // Its text is this one's text.
        self.source.source()
    }
}

/// One key to reconcile, why, and the cache.
pub struct Request<K: Resource> {
    turn: Turn,
    lister: Lister<K>,
    log: WriteLog,
}

/// What a request says of its key.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) key: ObjectKey,
    pub(super) reasons: Reasons,
    pub(super) failures: u32,
    #[cfg(feature = "client")]
    pub(super) permit: super::permit::Permit,
}

impl<K: Resource> Request<K> {
    pub(super) fn new(turn: Turn, lister: Lister<K>, log: WriteLog) -> Self {
        Self { turn, lister, log }
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.turn.key
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.turn.key.name()
    }

    /// The namespace; empty if the object lives in none.
    pub fn namespace(&self) -> &str {
        self.turn.key.namespace().unwrap_or_default()
    }

    /// Why it is reconciled.
    pub fn reasons(&self) -> &Reasons {
        &self.turn.reasons
    }

    /// How often it has failed since it last succeeded.
    pub fn failures(&self) -> u32 {
        self.turn.failures
    }

    /// The object, as the cache has it now; nothing if it is gone.
    pub fn cached(&self) -> Option<CachedObject<K>> {
        self.lister.get(&self.turn.key)
    }

    /// The object, decoded; nothing if it is gone.
    ///
    /// # Errors
    ///
    /// If it is not what its kind says: terminal until it is changed, so wrap the error in [`Terminal`] if you like.
    pub fn object(&self) -> Result<Option<Arc<K>>, Error> {
        self.cached().map(|object| object.decode()).transpose()
    }

    /// Reads the cache.
    pub fn lister(&self) -> &Lister<K> {
        &self.lister
    }

    /// The leadership under which this runs, if leaders are elected: what it [is called](crate::election::Leadership::token) can be
    /// written along, and it says when to stop.
    #[cfg(feature = "client")]
    pub fn leadership(&self) -> Option<&crate::election::Leadership> {
        self.turn.permit.leadership()
    }

    /// Notes a write of this reconcile, so that the next one of this key waits until the cache shows it.
    ///
    /// Writes through a [`Client`](crate::client::Client) are noted by themselves; this is for those of tasks that the reconciler spawned.
    pub fn wrote<O: Resource<Scope: StaticScope>>(&self, object: &O) {
        let version = object.metadata().resource_version.as_deref().unwrap_or_default();
        let resource = ApiResource::of::<O>().group_resource();
        self.log.push(Write { resource, key: ObjectKey::of(object), left: Left::Version(version.into()) });
    }

    /// Notes a deletion of this reconcile, as [`wrote`](Self::wrote) does a write.
    pub fn deleted<O: Resource<Scope: StaticScope>>(&self, object: &O) {
        let left = Left::Nothing { uid: object.metadata().uid.clone() };
        self.log.push(Write { resource: ApiResource::of::<O>().group_resource(), key: ObjectKey::of(object), left });
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
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_terminal_error_is_found_below_others_and_shows_its_text_once() {
        let inner = Terminal::new("the image is not a name");
        let outer = Error::new(ErrorKind::Invalid, "shop/web").with_source(inner);
        assert!(Terminal::is_in(&outer));
        assert!(!Terminal::is_in(&Error::new(ErrorKind::Invalid, "shop/web")));
        let terminal = Terminal::new(Error::new(ErrorKind::Timeout, "slow"));
        assert_eq!(terminal.to_string(), Error::new(ErrorKind::Timeout, "slow").to_string());
        assert!(std::error::Error::source(&terminal).is_none());
    }
}
