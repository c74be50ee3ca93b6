//! A finalizer: what has to be done before an object may go.
//!
//! What must hold: cleanup runs only on objects that are being deleted, its finalizer is removed only after it succeeded, and
//! no write undoes somebody else's: each is for the version that was read.

use klient_core::{Patch, Resource};
use serde_json::json;

use crate::{
    Error, ErrorKind,
    client::Api,
    retry::{Backoff, retry_on_conflict},
};

/// One name in the `finalizers` of objects, and what stands behind it.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::Api;
/// use klient::finalizer::Finalizer;
///
/// # async fn reconcile(maps: Api<ConfigMap>, map: ConfigMap) -> Result<(), klient::Error> {
/// let finalizer = Finalizer::new("shop.example.com/bucket")?;
/// finalizer
///     .run(
///         &maps,
///         &map,
///         async |map| Ok::<_, klient::Error>(()), // Make the bucket.
///         async |map| Ok(()),                     // Remove it. May run again if it fails, or if nobody heard of its success.
///     )
///     .await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "AddFinalizer")]
#[doc(alias = "RemoveFinalizer")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finalizer {
    name: String,
}

impl Finalizer {
    /// A finalizer of that name: a domain, a slash and a word.
    ///
    /// # Errors
    ///
    /// If it is none: servers refuse such names on objects.
    pub fn new(name: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        match name.split_once('/') {
            Some((domain, word)) if !domain.is_empty() && !word.is_empty() && !word.contains('/') => Ok(Self { name }),
            _ => Err(Error::new(ErrorKind::Config, format!("\"{name}\" is no name of a finalizer: domain/word"))),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an object has it.
    #[doc(alias = "ContainsFinalizer")]
    pub fn is_on<K: Resource>(&self, object: &K) -> bool {
        object.metadata().finalizers.iter().flatten().any(|name| *name == self.name)
    }

    /// Does what is to be done with an object: `apply`, with the finalizer on it, or `cleanup` if it is being deleted, and
    /// then the finalizer is taken off. Gives what `apply` gave; nothing after a cleanup, or if there was none to do.
    ///
    /// # Errors
    ///
    /// Those of both, and those of writing the object.
    pub async fn run<K, T, E>(
        &self,
        api: &Api<K>,
        object: &K,
        apply: impl AsyncFnOnce(K) -> Result<T, E>,
        cleanup: impl AsyncFnOnce(K) -> Result<(), E>,
    ) -> Result<Option<T>, E>
    where
        K: Resource,
        E: From<Error>,
    {
        if object.metadata().deletion_timestamp.is_none() {
            return match self.add(api, object).await? {
                Some(object) => apply(object).await.map(Some),
                None => Ok(None),
            };
        }
        if self.is_on(object) {
            cleanup(object.clone()).await?;
            self.remove(api, object).await?;
        }
        Ok(None)
    }

    /// Puts the finalizer on an object, unless it is there; gives the object as it is then, and nothing if it is gone or
    /// going.
    ///
    /// # Errors
    ///
    /// If it could not be written.
    pub async fn add<K: Resource>(&self, api: &Api<K>, object: &K) -> Result<Option<K>, Error> {
        self.write(api, object, |object| {
            let is_going = object.metadata().deletion_timestamp.is_some();
            let mut names = object.metadata().finalizers.clone().unwrap_or_default();
            names.push(self.name.clone());
            // Servers take no new finalizers on what is being deleted.
            if is_going {
                Change::Leave
            } else if self.is_on(object) {
                Change::None
            } else {
                Change::To(names)
            }
        })
        .await
    }

    /// Takes the finalizer off an object; gives the object as it is then, and nothing if it is gone.
    ///
    /// # Errors
    ///
    /// If it could not be written.
    pub async fn remove<K: Resource>(&self, api: &Api<K>, object: &K) -> Result<Option<K>, Error> {
        self.write(api, object, |object| {
            let mut names = object.metadata().finalizers.clone().unwrap_or_default();
            names.retain(|name| *name != self.name);
            if self.is_on(object) { Change::To(names) } else { Change::None }
        })
        .await
    }

    /// Writes for the version at hand first, and for the one that is there if that was too old.
    async fn write<K: Resource>(
        &self,
        api: &Api<K>,
        object: &K,
        change: impl Fn(&K) -> Change,
    ) -> Result<Option<K>, Error> {
        let (name, uid) = (object.metadata().name.clone().unwrap_or_default(), object.metadata().uid.clone());
        let mut at_hand = Some(object.clone());
        let outcome = retry_on_conflict(Backoff::default(), async || {
            let current = match at_hand.take() {
                Some(object) => object,
                None => api.get(&name).await?,
            };
            if current.metadata().uid != uid {
                // Another object of that name is none of our business.
                return Ok(None);
            }
            let finalizers = match change(&current) {
                Change::None => return Ok(Some(current)),
                Change::Leave => return Ok(None),
                Change::To(finalizers) => finalizers,
            };
            let version = &current.metadata().resource_version;
            let patch = json!({"metadata": {"resourceVersion": version, "uid": uid, "finalizers": finalizers}});
            api.patch(&name, Patch::merge(patch)).await.map(Some)
        });
        match outcome.await {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome,
        }
    }
}

enum Change {
    /// It is as it should be.
    None,
    /// It is not to be touched.
    Leave,
    /// These are its finalizers from now on.
    To(Vec<String>),
}
