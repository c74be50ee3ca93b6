//! The plugins of a server, in the real server's order.

use std::collections::HashSet;

use super::{
    Plugin,
    plugins::{
        DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds, LimitRanger, NodeDeclaredFeatureValidator,
        OwnerReferencesPermissionEnforcement, PersistentVolumeClaimResize, PodResizeValidator, Priority, ResourceQuota,
        RuntimeClass, ServiceAccount, StorageObjectInUseProtection, TaintNodesByCondition,
    },
    policies::{MutatingPolicies, ValidatingPolicies},
    webhooks::{MutatingWebhooks, ValidatingWebhooks},
};

/// The active plugins of a server.
pub(crate) struct Admission {
    mutating: Vec<&'static dyn Plugin>,
    validating: Vec<&'static dyn Plugin>,
    /// Whether namespaces must exist and not be terminating. The creates themselves check it.
    pub(crate) checks_namespaces: bool,
}

/// The plugins of the mutating stage, in the real server's order.
const MUTATING: &[&dyn Plugin] = &[
    &LimitRanger,
    &ServiceAccount,
    &TaintNodesByCondition,
    &Priority,
    &DefaultTolerationSeconds,
    &DefaultStorageClass,
    &StorageObjectInUseProtection,
    &RuntimeClass,
    &DefaultIngressClass,
    &MutatingPolicies,
    &MutatingWebhooks,
];

/// The plugins of the validating stage, in the real server's order.
const VALIDATING: &[&dyn Plugin] = &[
    &LimitRanger,
    &Priority,
    &OwnerReferencesPermissionEnforcement,
    &PersistentVolumeClaimResize,
    &RuntimeClass,
    &NodeDeclaredFeatureValidator,
    &PodResizeValidator,
    &ValidatingPolicies,
    &ValidatingWebhooks,
    &ResourceQuota,
];

impl Admission {
    /// Returns the chain of the real server's default plugins, with those that are enabled and without those that are disabled.
    pub(crate) fn new(enabled: &HashSet<String>, disabled: &HashSet<String>) -> Self {
        let is_active = |plugin: &&&'static dyn Plugin| {
            let name = plugin.name();
            (plugin.is_default() || enabled.contains(name)) && !disabled.contains(name)
        };
        let chosen = |all: &[&'static dyn Plugin]| all.iter().filter(is_active).copied().collect();
        Self {
            mutating: chosen(MUTATING),
            validating: chosen(VALIDATING),
            checks_namespaces: !disabled.contains("NamespaceLifecycle"),
        }
    }

    pub(super) fn mutating(&self) -> &[&'static dyn Plugin] {
        &self.mutating
    }

    pub(super) fn validating(&self) -> &[&'static dyn Plugin] {
        &self.validating
    }
}
