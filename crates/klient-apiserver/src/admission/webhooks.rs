//! The plugins that call admission webhooks.
//!
//! Mutating webhooks are called one after the other, each with what the last one returned. Validating ones are called at the same
//! time. The hooks of all configurations are parsed when a configuration changes, and not per request.

mod conditions;
pub(super) mod hook;
pub(super) mod matching;
mod mutating;
mod response;
mod review;
mod validating;

use std::sync::{Arc, PoisonError, RwLock, atomic::AtomicUsize, atomic::Ordering};

use klient_core::Status;

use self::hook::Hook;
pub(super) use self::{mutating::MutatingWebhooks, validating::ValidatingWebhooks};
use super::{Attributes, Stage};
use crate::{server::Core, store::Store};

/// The hooks of all configurations, in the order in which they are called.
#[derive(Default)]
pub(crate) struct Webhooks {
    mutating: Hooks,
    validating: Hooks,
}

#[derive(Default)]
struct Hooks {
    hooks: RwLock<Arc<Vec<Hook>>>,
    /// The number of hooks, which is read for each request.
    count: AtomicUsize,
}

/// A call that did not admit the request.
#[derive(Debug)]
enum Failure {
    /// The webhook could not be called, or its response is invalid. The failure policy decides.
    Calling(String),
    /// The request is refused, whatever the failure policy is.
    Refused(Box<Status>),
}

impl Webhooks {
    /// Parses the stored configurations again.
    pub(crate) fn reload(&self, store: &Store) {
        self.mutating.replace(Hook::all(store, MUTATING));
        self.validating.replace(Hook::all(store, VALIDATING));
    }

    fn of(&self, stage: Stage) -> &Hooks {
        match stage {
            Stage::Mutating => &self.mutating,
            Stage::Validating => &self.validating,
        }
    }

    /// Returns whether there are webhooks of a stage.
    fn has_any(&self, stage: Stage) -> bool {
        self.of(stage).count.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a request can have to be sent to a webhook.
    fn apply_to(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        self.has_any(stage) && !is_exempt(request)
    }
}

impl Hooks {
    fn replace(&self, hooks: Vec<Hook>) {
        let mut current = self.hooks.write().unwrap_or_else(PoisonError::into_inner);
        self.count.store(hooks.len(), Ordering::Relaxed);
        *current = Arc::new(hooks);
    }

    fn all(&self) -> Arc<Vec<Hook>> {
        Arc::clone(&self.hooks.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns whether a request is about the configuration of admission, which no webhook can block.
pub(super) fn is_exempt(request: &Attributes<'_>) -> bool {
    request.resource.group == "admissionregistration.k8s.io"
        && matches!(
            request.resource.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

impl Core {
    /// Reads the configurations of webhooks, after one of them changed.
    pub(crate) fn reload_webhooks(&self) {
        self.webhooks.reload(&self.store);
    }
}

impl Failure {
    fn calling(hook: &Hook, why: impl std::fmt::Display) -> Self {
        Self::Calling(format!("failed calling webhook \"{}\": {why}", hook.name))
    }
}

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";
