//! Match conditions of webhooks.

use std::sync::Arc;

use klient_core::Status;

use super::hook::Hook;
use crate::{
    Result,
    admission::{
        Attributes,
        expressions::{self, Condition},
    },
    server::Core,
};

/// Returns whether all match conditions of a hook hold. One that is false decides, even if others fail.
pub(super) fn hold(core: &Arc<Core>, hook: &Hook, request: &Attributes<'_>) -> Result<bool> {
    let variables = expressions::variables(core, request, request.object.as_ref(), request.old);
    match expressions::conditions_hold(&hook.conditions, &variables) {
        Condition::Holds => Ok(true),
        Condition::DoesNotHold => Ok(false),
        Condition::Fails(_) if hook.fails_open => Ok(false),
        Condition::Fails(why) => {
            Err(Box::new(Status::forbidden(&request.resource.group_resource(), &request.name, why)))
        }
    }
}
