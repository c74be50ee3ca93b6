//! The plugins of the real server that are part of it: each fills in or refuses what its name says, with the real server's messages.
//!
//! None of them waits for anything but the store, so that they are plain functions ([`BuiltIn`]). `quota` alone writes.

mod accounts;
mod classes;
mod limits;
mod owners;
mod pods;
mod priority;
pub(crate) mod quota;
mod resizes;
mod runtime_classes;
mod volumes;

pub(super) use self::{
    accounts::ServiceAccount,
    classes::{DefaultIngressClass, DefaultStorageClass},
    limits::LimitRanger,
    owners::OwnerReferencesPermissionEnforcement,
    pods::{DefaultTolerationSeconds, TaintNodesByCondition},
    priority::Priority,
    quota::ResourceQuota,
    resizes::{NodeDeclaredFeatureValidator, PodResizeValidator},
    runtime_classes::RuntimeClass,
    volumes::{PersistentVolumeClaimResize, StorageObjectInUseProtection},
};

use std::sync::Arc;

use super::{Attributes, Operation, Passes, Plugin, Stage, Verdict};
use crate::{Result, registry::Resource, server::Core};

/// A plugin that needs no time.
pub(super) trait BuiltIn: Send + Sync {
    const NAME: &'static str;
    /// Whether the plugin is enabled unless it is disabled.
    const IS_DEFAULT: bool = true;

    /// Returns whether the plugin is about a resource.
    fn is_about(&self, core: &Core, resource: &Resource) -> bool;

    /// Returns whether the plugin has something to do for a request about such a resource.
    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool;

    /// Changes or refuses a request.
    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let _ = (core, request);
        Ok(())
    }

    /// Refuses a request that is invalid.
    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let _ = (core, request);
        Ok(())
    }
}

impl<T: BuiltIn> Plugin for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn is_default(&self) -> bool {
        T::IS_DEFAULT
    }

    fn is_active(&self, core: &Core, resource: &Resource) -> bool {
        self.is_about(core, resource)
    }

    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool {
        self.is_about(core, request.resource) && BuiltIn::handles(self, stage, request)
    }

    fn admit<'a>(&'a self, core: &'a Arc<Core>, request: &'a mut Attributes<'_>, _: &'a mut Passes) -> Verdict<'a> {
        Box::pin(std::future::ready(BuiltIn::admit(self, core, request)))
    }

    fn validate<'a>(&'a self, core: &'a Arc<Core>, request: &'a Attributes<'_>) -> Verdict<'a> {
        Box::pin(std::future::ready(BuiltIn::validate(self, core, request)))
    }
}

/// Returns whether a resource is one of the core group.
fn is_core(resource: &Resource, plural: &str) -> bool {
    resource.group.is_empty() && resource.plural == plural
}

/// Returns whether a request creates or updates an object itself, and not a subresource.
fn is_write(request: &Attributes<'_>) -> bool {
    request.subresource.is_empty() && matches!(request.operation, Operation::Create | Operation::Update)
}

/// Returns whether a request creates an object.
fn is_create(request: &Attributes<'_>) -> bool {
    request.subresource.is_empty() && request.operation == Operation::Create
}
