//! Options of deleting an object. They are sent in the body, because not all of them fit in a query.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::whole_seconds;
use crate::{InvalidOptionError, ResourceVersion};

/// Options of deleting an object.
///
/// ```
/// use klient_core::{DeleteOptions, PropagationPolicy};
///
/// let options = DeleteOptions::default().propagation_policy(PropagationPolicy::Foreground).uid("1234");
/// let body = serde_json::to_value(options.to_openapi()?).unwrap();
/// assert_eq!(body, serde_json::json!({
///     "apiVersion": "v1", "kind": "DeleteOptions",
///     "preconditions": {"uid": "1234"}, "propagationPolicy": "Foreground",
/// }));
/// # Ok::<(), klient_core::InvalidOptionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// The conditions under which the object is deleted.
    pub preconditions: Preconditions,
    /// How dependent objects are deleted; by default, the object's finalizers and its kind decide.
    pub propagation_policy: Option<PropagationPolicy>,
    /// How long the object has to stop; zero for immediately, unset for the object's own grace period.
    pub grace_period: Option<Duration>,
    /// Whether the server does everything but delete.
    pub dry_run: bool,
    /// The deprecated form of the policy: `true` is `Orphan`. Cannot be set together with it.
    pub orphan_dependents: Option<bool>,
    /// Whether to delete an object that cannot be read from the store, without running finalizers. It can break a
    /// cluster.
    #[doc(alias = "IgnoreStoreReadErrorWithClusterBreakingPotential")]
    pub ignore_store_read_error: bool,
}

/// The conditions of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preconditions {
    /// The UID that the object must have, so that another object of the same name is not deleted.
    pub uid: Option<String>,
    /// The version that the object must have, so that a changed object is not deleted.
    pub resource_version: Option<ResourceVersion>,
}

/// How the dependents of a deleted object are treated.
#[doc(alias = "DeletionPropagation")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PropagationPolicy {
    /// Dependents are not deleted, and lose their owner.
    Orphan,
    /// Dependents are deleted afterwards.
    Background,
    /// Dependents that block the owner are deleted first.
    Foreground,
}

impl PropagationPolicy {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

impl DeleteOptions {
    /// Deletes only the object with this UID.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.uid = Some(uid.into());
        self
    }

    /// Deletes only this version of the object.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<ResourceVersion>) -> Self {
        self.preconditions.resource_version = Some(version.into());
        self
    }

    /// Sets how dependents are treated.
    #[must_use]
    pub fn propagation_policy(mut self, policy: PropagationPolicy) -> Self {
        self.propagation_policy = Some(policy);
        self
    }

    /// Sets how long the object has to stop, rounded up to whole seconds.
    #[must_use]
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.grace_period = Some(period);
        self
    }

    /// Requests a dry run: the server does everything but delete.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Sets the deprecated form of the policy.
    #[must_use]
    pub fn orphan_dependents(mut self, orphan: bool) -> Self {
        self.orphan_dependents = Some(orphan);
        self
    }

    /// Sets whether to delete an object that cannot be read from the store.
    #[must_use]
    pub fn ignore_store_read_error(mut self, ignore: bool) -> Self {
        self.ignore_store_read_error = ignore;
        self
    }

    /// Returns whether all options are default, so that no body is needed.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the body of the request, to be encoded in any format.
    ///
    /// # Errors
    ///
    /// Returns an error if options exclude each other: the policy and its deprecated form, or
    /// `ignore_store_read_error` with either of them, a grace period or preconditions. An empty precondition is an
    /// error, too.
    pub fn to_openapi(&self) -> Result<meta::DeleteOptions, InvalidOptionError> {
        self.validate()?;
        let Preconditions { uid, resource_version } = self.preconditions.clone();
        let preconditions = meta::Preconditions { uid, resource_version: resource_version.map(String::from) };
        Ok(meta::DeleteOptions {
            api_version: Some("v1".to_owned()),
            kind: Some("DeleteOptions".to_owned()),
            dry_run: self.dry_run.then(|| vec!["All".to_owned()]),
            grace_period_seconds: self.grace_period.map(whole_seconds),
            ignore_store_read_error_with_cluster_breaking_potential: self.ignore_store_read_error.then_some(true),
            orphan_dependents: self.orphan_dependents,
            preconditions: (preconditions != meta::Preconditions::default()).then_some(preconditions),
            propagation_policy: self.propagation_policy.map(|policy| policy.as_str().to_owned()),
        })
    }

    fn validate(&self) -> Result<(), InvalidOptionError> {
        let fail = |option, why| Err(InvalidOptionError::new(option, why));
        if self.orphan_dependents.is_some() && self.propagation_policy.is_some() {
            return fail("propagationPolicy", "cannot be set together with orphanDependents");
        }
        if self.preconditions.uid.as_deref() == Some("") {
            return fail("preconditions.uid", "is empty: the object was never stored");
        }
        if self.preconditions.resource_version.as_ref().is_some_and(ResourceVersion::is_empty) {
            return fail("preconditions.resourceVersion", "is empty: the object was never stored");
        }
        if self.ignore_store_read_error {
            let others = [
                (self.propagation_policy.is_some(), "cannot be set together with propagationPolicy"),
                (self.orphan_dependents.is_some(), "cannot be set together with orphanDependents"),
                (self.grace_period.is_some(), "cannot be set together with gracePeriodSeconds"),
                (self.preconditions != Preconditions::default(), "cannot be set together with preconditions"),
            ];
            if let Some((_, why)) = others.into_iter().find(|(set, _)| *set) {
                return fail("ignoreStoreReadErrorWithClusterBreakingPotential", why);
            }
        }
        Ok(())
    }
}
