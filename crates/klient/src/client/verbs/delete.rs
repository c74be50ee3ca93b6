//! Deleting one object.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use klient_core::{DeleteOptions, PropagationPolicy, Resource, ResourceVersion};

use super::ResponseFuture;
use crate::{
    Error,
    client::{
        Deleted,
        endpoint::{Endpoint, Shape},
    },
};

/// Writes the chain methods that every delete has. The options are in the field `options`.
macro_rules! delete_methods {
    () => {
        /// Deletes dependents first; the object stays until they are deleted.
        pub fn foreground(self) -> Self {
            self.propagation_policy(PropagationPolicy::Foreground)
        }

        /// Deletes dependents afterwards, in the background. The default of nearly all kinds.
        pub fn background(self) -> Self {
            self.propagation_policy(PropagationPolicy::Background)
        }

        /// Keeps dependents, without their owner.
        pub fn orphan(self) -> Self {
            self.propagation_policy(PropagationPolicy::Orphan)
        }

        fn propagation_policy(mut self, policy: PropagationPolicy) -> Self {
            self.options = self.options.propagation_policy(policy);
            self
        }

        /// Sets how long the object may take to shut down.
        #[doc(alias = "gracePeriodSeconds")]
        pub fn grace_period(mut self, period: Duration) -> Self {
            self.options = self.options.grace_period(period);
            self
        }

        /// Has the server do everything but delete.
        #[doc(alias = "dryRun")]
        pub fn dry_run(mut self) -> Self {
            self.options = self.options.dry_run();
            self
        }
    };
}
pub(super) use delete_methods;

/// A request to delete an object. See [`Api::delete`](crate::Api::delete).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Delete<K> {
    endpoint: Arc<Endpoint>,
    name: String,
    options: DeleteOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Delete<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, name: &str) -> Self {
        Self { endpoint, name: name.to_owned(), options: DeleteOptions::default(), kind: PhantomData }
    }

    delete_methods!();

    /// Deletes only the object with this UID, and fails with a conflict otherwise.
    #[doc(alias = "preconditions")]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.options = self.options.uid(uid);
        self
    }

    /// Deletes only this version of the object, and fails with a conflict otherwise.
    #[doc(alias = "preconditions")]
    pub fn resource_version(mut self, version: impl Into<ResourceVersion>) -> Self {
        self.options = self.options.resource_version(version);
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: DeleteOptions) -> Self {
        self.options = options;
        self
    }
}

impl<K: Resource> IntoFuture for Delete<K> {
    type Output = Result<Deleted<K>, Error>;
    type IntoFuture = ResponseFuture<'static, Deleted<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { endpoint, name, options, .. } = self;
            let request = endpoint.builder::<K>(Shape::Object).delete(&name, &options)?;
            endpoint.call(request, Some(&name)).dry_run(options.dry_run).object_or_status().await
        })
    }
}
