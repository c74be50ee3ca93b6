//! Finalizers: cleanup that must happen before an object is deleted.
//!
//! Invariant: cleanup runs only for objects that are being deleted, its finalizer is removed only after cleanup
//! succeeded, and no write overwrites another client's: each one names the version that was read.

use std::future::Future;

use klient_core::{Patch, Resource, validate_label_key};
use serde_json::json;

use crate::{
    Error, ErrorKind,
    client::Api,
    retry::{Backoff, retry_on_conflict},
};

/// A name in the `metadata.finalizers` of objects.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::{Api, finalizer::Finalizer};
///
/// # async fn create_bucket(map: &ConfigMap) -> Result<(), klient::Error> { Ok(()) }
/// # async fn delete_bucket(map: &ConfigMap) -> Result<(), klient::Error> { Ok(()) }
/// # async fn reconcile(maps: Api<ConfigMap>, map: ConfigMap) -> Result<(), klient::Error> {
/// let finalizer = Finalizer::new("shop.example.com/bucket")?;
/// finalizer
///     .run(
///         &maps,
///         &map,
///         |map| async move { create_bucket(&map).await },
///         // Must be safe to repeat: it runs again if it fails, or if the finalizer could not be removed afterwards.
///         |map| async move { delete_bucket(&map).await },
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
    /// Creates a finalizer with this name: a qualified name such as `shop.example.com/bucket`.
    ///
    /// The prefix before the slash is optional for custom resources, so that `documents.kube.rs` is valid there. Built-in
    /// kinds reject names without a prefix, except Kubernetes' own.
    ///
    /// # Errors
    ///
    /// Returns a [`Config`](ErrorKind::Config) error if no API server would accept the name: the part after the slash has 1
    /// to 63 letters, digits, `-`, `_` and `.`, and the prefix is a DNS subdomain.
    #[doc(alias = "ValidateFinalizerName")]
    pub fn new(name: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        // Label keys and finalizers follow the same rule: both are qualified names.
        match validate_label_key(&name) {
            Ok(()) => Ok(Self { name }),
            Err(error) => {
                let message = format!("invalid finalizer name {name:?}: use a qualified name like example.com/cleanup");
                Err(Error::new(ErrorKind::Config, message).with_source(error))
            }
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether an object has this finalizer.
    #[doc(alias = "ContainsFinalizer")]
    pub fn is_on<K: Resource>(&self, object: &K) -> bool {
        object.metadata().finalizers.iter().flatten().any(|name| *name == self.name)
    }

    /// Runs `apply` or `cleanup`, depending on whether the object is being deleted.
    ///
    /// - Otherwise, the finalizer is added first, and then `apply` runs. Its output is returned.
    /// - If the object is being deleted and has the finalizer, `cleanup` runs, and then the finalizer is removed. The output
    ///   is `None`.
    /// - If the object is being deleted without the finalizer, or has been deleted already, nothing runs.
    ///
    /// # Errors
    ///
    /// Returns the error of `apply` or `cleanup`, or the error of writing the object.
    #[doc(alias = "finalizer")]
    pub async fn run<K, T, E, A, C>(
        &self,
        api: &Api<K>,
        object: &K,
        apply: impl FnOnce(K) -> A,
        cleanup: impl FnOnce(K) -> C,
    ) -> Result<Option<T>, E>
    where
        K: Resource,
        E: From<Error>,
        A: Future<Output = Result<T, E>>,
        C: Future<Output = Result<(), E>>,
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

    /// Adds the finalizer to an object that lacks it. Returns the object with the finalizer, or `None` if the object is
    /// deleted or being deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the object could not be written.
    pub async fn add<K: Resource>(&self, api: &Api<K>, object: &K) -> Result<Option<K>, Error> {
        self.write(api, object, Change::Add).await
    }

    /// Removes the finalizer from an object. Returns the object without the finalizer, or `None` if the object is deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the object could not be written.
    pub async fn remove<K: Resource>(&self, api: &Api<K>, object: &K) -> Result<Option<K>, Error> {
        self.write(api, object, Change::Remove).await
    }

    /// Patches the given version first, and after a conflict the version on the server.
    async fn write<K: Resource>(&self, api: &Api<K>, object: &K, change: Change) -> Result<Option<K>, Error> {
        let name = object.metadata().name.as_deref().unwrap_or_default();
        let uid = &object.metadata().uid;
        let mut given = Some(object.clone());
        let written = retry_on_conflict(Backoff::default(), || {
            let given = given.take();
            async move {
                let current = match given {
                    Some(object) => object,
                    None => api.get(name).await?,
                };
                if current.metadata().uid != *uid {
                    // The object was deleted, and another one has its name.
                    return Ok(None);
                }
                let finalizers = match self.changed(&current, change) {
                    Finalizers::Unchanged => return Ok(Some(current)),
                    Finalizers::Refused => return Ok(None),
                    Finalizers::Changed(finalizers) => finalizers,
                };
                let version = &current.metadata().resource_version;
                let patch = json!({"metadata": {"resourceVersion": version, "uid": uid, "finalizers": finalizers}});
                api.patch(name, Patch::merge(patch)).await.map(Some)
            }
        });
        match written.await {
            Err(error) if error.is_not_found() => Ok(None),
            written => written,
        }
    }

    fn changed<K: Resource>(&self, object: &K, change: Change) -> Finalizers {
        let mut names = object.metadata().finalizers.clone().unwrap_or_default();
        match change {
            // Servers reject new finalizers on objects that are being deleted.
            Change::Add if object.metadata().deletion_timestamp.is_some() => return Finalizers::Refused,
            Change::Add if self.is_on(object) => return Finalizers::Unchanged,
            Change::Add => names.push(self.name.clone()),
            Change::Remove if !self.is_on(object) => return Finalizers::Unchanged,
            Change::Remove => names.retain(|name| *name != self.name),
        }
        Finalizers::Changed(names)
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Add,
    Remove,
}

/// The finalizers of an object after a change.
enum Finalizers {
    Unchanged,
    /// The server would reject the change.
    Refused,
    Changed(Vec<String>),
}
