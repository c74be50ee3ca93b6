//! Admission: plugins that change or refuse a write after it is decoded and before it is stored.
//!
//! A write passes a mutating stage, then the rules of its kind, then a validating stage, as on the real server. The mutating stage
//! runs after the owners of fields are recorded, so that what it changes has no owner. If a webhook or policy changed the object,
//! the mutating plugins run once more.
//!
//! Plugins stand in `chain`, in the real server's order. A server on which no plugin is active skips both stages by one branch.

mod attributes;
mod chain;
mod expressions;
mod notes;
mod passes;
pub(crate) mod plugins;
mod policies;
mod webhooks;

use std::{pin::Pin, sync::Arc};

use serde_json::Value;

pub(crate) use self::{
    attributes::{Attributes, KindName, Operation, Origin},
    chain::Admission,
    notes::{CUT, MAX_WARNINGS, Notes},
    passes::Passes,
    policies::Policies,
    webhooks::Webhooks,
};
use crate::{Result, registry::Resource, server::Core};

/// The future of a plugin's verdict.
pub(crate) type Verdict<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A stage of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Mutating,
    Validating,
}

/// A part of admission.
///
/// A plugin refuses a request by an error. It adds warnings and audit annotations through [`Attributes::notes`].
pub(crate) trait Plugin: Send + Sync {
    /// Returns the name by which the real server enables and disables the plugin.
    fn name(&self) -> &'static str;

    /// Returns whether the plugin is enabled unless it is disabled.
    fn is_default(&self) -> bool {
        true
    }

    /// Returns whether the plugin can have something to do for a resource at all. If no plugin has, both stages are skipped.
    fn is_active(&self, core: &Core, resource: &Resource) -> bool {
        let _ = (core, resource);
        true
    }

    /// Returns whether the plugin has something to do for a request. It is called for each request, and must be cheap.
    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool;

    /// Changes or refuses a request. A plugin whose changes let other plugins run again reports them to `passes`.
    fn admit<'a>(
        &'a self,
        core: &'a Arc<Core>,
        request: &'a mut Attributes<'_>,
        passes: &'a mut Passes,
    ) -> Verdict<'a> {
        let _ = (core, request, passes);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Refuses a request that is invalid.
    fn validate<'a>(&'a self, core: &'a Arc<Core>, request: &'a Attributes<'_>) -> Verdict<'a> {
        let _ = (core, request);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Core {
    /// Returns whether no plugin has anything to do for a resource, so that both stages can be skipped.
    pub(crate) fn is_admission_idle(&self, resource: &Resource) -> bool {
        let mut all = self.admission.mutating().iter().chain(self.admission.validating());
        !all.any(|plugin| plugin.is_active(self, resource))
    }

    /// Runs the mutating stage. The object of the request may be another one afterwards.
    pub(crate) async fn admit(self: &Arc<Self>, request: &mut Attributes<'_>) -> Result<()> {
        let mut passes = Passes::default();
        loop {
            for plugin in self.admission.mutating() {
                if plugin.handles(self, Stage::Mutating, request) {
                    plugin.admit(self, request, &mut passes).await?;
                }
            }
            if !passes.begin_second() {
                return Ok(());
            }
        }
    }

    /// Runs the validating stage.
    pub(crate) async fn check_admission(self: &Arc<Self>, request: &Attributes<'_>) -> Result<()> {
        for plugin in self.admission.validating() {
            if plugin.handles(self, Stage::Validating, request) {
                plugin.validate(self, request).await?;
            }
        }
        Ok(())
    }

    /// Runs both stages for a request that stores no object of its own: a delete, a connection, a review, a binding or an eviction.
    /// Returns the object of the request as admission left it.
    pub(crate) async fn admit_wholly(self: &Arc<Self>, mut request: Attributes<'_>) -> Result<Option<Value>> {
        self.admit(&mut request).await?;
        self.check_admission(&request).await?;
        Ok(request.object)
    }
}
