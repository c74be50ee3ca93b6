//! Tolerations of pods, and the taint of new nodes.

use super::{BuiltIn, is_core, is_create, is_write};
use crate::{
    Result,
    admission::{Attributes, Stage},
    builtin,
    registry::Resource,
    server::Core,
};

/// Lets pods stay for five minutes on a node that is not ready or unreachable.
pub(crate) struct DefaultTolerationSeconds;

impl BuiltIn for DefaultTolerationSeconds {
    const NAME: &'static str = "DefaultTolerationSeconds";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "pods")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Mutating && is_write(request)
    }

    fn admit(&self, _: &Core, request: &mut Attributes<'_>) -> Result<()> {
        if let Some(pod) = &mut request.object {
            builtin::tolerate(pod);
        }
        Ok(())
    }
}

/// Taints a new node until it is ready.
pub(crate) struct TaintNodesByCondition;

impl BuiltIn for TaintNodesByCondition {
    const NAME: &'static str = "TaintNodesByCondition";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "nodes")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Mutating && is_create(request)
    }

    fn admit(&self, _: &Core, request: &mut Attributes<'_>) -> Result<()> {
        if let Some(node) = &mut request.object {
            builtin::taint(node);
        }
        Ok(())
    }
}
