//! The plugin that calls mutating webhooks, one after the other.

use std::sync::Arc;

use klient_core::Status;
use serde_json::{Value, json};

use super::{
    Failure,
    hook::Hook,
    matching::{self, Match},
    response,
    review::{Objects, Review, matched},
    validating::{check_dry_run, converted, post},
};
use crate::{
    Result,
    admission::{Attributes, Passes, Plugin, Stage, Verdict},
    builtin, decode, managed,
    patch::Patch,
    registry::Resource,
    server::Core,
};

/// The plugin that calls mutating webhooks.
pub(crate) struct MutatingWebhooks;

impl Plugin for MutatingWebhooks {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_active(&self, core: &Core, _: &Resource) -> bool {
        core.webhooks.has_any(Stage::Mutating)
    }

    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool {
        core.webhooks.apply_to(stage, request)
    }

    fn admit<'a>(
        &'a self,
        core: &'a Arc<Core>,
        request: &'a mut Attributes<'_>,
        passes: &'a mut Passes,
    ) -> Verdict<'a> {
        Box::pin(async move {
            if passes.is_second() {
                passes.of_plugin(NAME).resume(request.object.as_ref());
            }
            let outcome = admit(core, request, passes).await;
            passes.of_plugin(NAME).finish(request.object.as_ref());
            outcome
        })
    }
}

async fn admit(core: &Arc<Core>, request: &mut Attributes<'_>, passes: &mut Passes) -> Result<()> {
    let hooks = core.webhooks.of(Stage::Mutating).all();
    let round = usize::from(passes.is_second());
    for (index, hook) in hooks.iter().enumerate() {
        let Some(found) = matching::of_hook(core, hook, request)? else { continue };
        // A hook that was not called in the first pass is not called in the second.
        if passes.is_second() && !passes.of_plugin(NAME).runs_again(&hook.id) {
            continue;
        }
        let outcome = call(core, hook, &found, request, [round, index]).await;
        let changed = matches!(outcome, Ok(true));
        let place = format!("round_{round}_index_{index}");
        let noted = json!({"configuration": hook.configuration, "webhook": hook.name, "mutated": changed});
        request.notes().annotate(format!("mutation.webhook.admission.k8s.io/{place}"), noted.to_string());
        if changed {
            passes.of_plugin(NAME).changed();
            passes.request_second();
        }
        if hook.is_called_again {
            passes.of_plugin(NAME).invoked(&hook.id);
        }
        match outcome {
            Ok(_) => {}
            Err(Failure::Refused(status)) => return Err(status),
            Err(Failure::Calling(why)) if hook.fails_open => {
                tracing::warn!(webhook = hook.name, why, "webhook failed, and is ignored");
                let key = format!("failed-open.mutation.webhook.admission.k8s.io/{place}");
                request.notes().annotate(key, hook.name.clone());
            }
            Err(Failure::Calling(why)) => return Err(Box::new(Status::internal_error(why))),
        }
    }
    Ok(())
}

/// Calls a hook, and returns whether it changed the object.
async fn call(
    core: &Arc<Core>,
    hook: &Hook,
    found: &Match,
    request: &mut Attributes<'_>,
    [round, index]: [usize; 2],
) -> std::result::Result<bool, Failure> {
    check_dry_run(hook, request)?;
    let resource = matched(found, request);
    let (object, old) = match found {
        Match::Requested => (None, None),
        Match::Equivalent(other) => {
            (converted(core, other, request.object.as_ref()).await?, converted(core, other, request.old).await?)
        }
    };
    let objects =
        Objects { resource, object: object.as_ref().or(request.object.as_ref()), old: old.as_ref().or(request.old) };
    let review = Review::new(core, hook, request, &objects)?;
    let body = post(core, hook, &review).await?;
    let answer = response::read(hook, Stage::Mutating, &review, request, &body)?;
    if answer.patch.is_empty() {
        return Ok(false);
    }
    let patch = Patch::of_review(&answer.patch)
        .map_err(|why| Failure::calling(hook, format!("received undecodable patch in webhook response: {why}")))?;
    if patch.is_empty() {
        return Ok(false);
    }
    let Some(before) = objects.object else {
        let why = format!(
            "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
            hook.name
        );
        return Err(refused(why));
    };
    if answer.patch_type != "JSONPatch" {
        return Err(Failure::calling(hook, format!("unsupported patch type {:?}", answer.patch_type)));
    }
    let after = patch.apply_reviewed(before).map_err(refused)?;
    check_kind(resource, before, &after)?;
    let after = admissible(resource, request, before, after).map_err(refused)?;
    let changed = after != *before;
    let key = format!("patch.webhook.admission.k8s.io/round_{round}_index_{index}");
    let patch: Value = serde_json::from_slice(&answer.patch).unwrap_or_default();
    let noted = json!({"configuration": hook.configuration, "webhook": hook.name, "patch": patch,
        "patchType": "JSONPatch"});
    request.notes().annotate_request(key, noted.to_string());
    let after = match found {
        Match::Requested => after,
        Match::Equivalent(_) => {
            let back = core.present(request.resource, after).await;
            back.map_err(|status| refused(&status.message))?
        }
    };
    request.object = Some(completed(request, after));
    Ok(changed)
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::Refused(Box::new(Status::internal_error(why)))
}

/// Refuses a patch that makes another kind of an object.
fn check_kind(resource: &Resource, before: &Value, after: &Value) -> std::result::Result<(), Failure> {
    if after["kind"] == before["kind"] && after["apiVersion"] == before["apiVersion"] {
        return Ok(());
    }
    let text = |name: &str| after[name].as_str().unwrap_or_default();
    let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
    let group = if resource.group.is_empty() { "core" } else { &resource.group };
    let why = format!("converting ({version}.{}) to ({group}.{}): unknown conversion", text("kind"), resource.kind);
    Err(Failure::Refused(Box::new(Status::failure(klient_core::StatusReason::Unknown, 500, why))))
}

/// Returns a patched object in the form of its kind, with the owners of its fields as they were if the patch spoilt them.
fn admissible(
    resource: &Resource,
    request: &Attributes<'_>,
    before: &Value,
    mut after: Value,
) -> std::result::Result<Value, String> {
    // An empty list of managers removes them all.
    if after["metadata"].get("managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        managed::set_entries(&mut after, None);
    }
    // The objects of subresources have no schema here.
    if request.kind().kind == resource.kind {
        decode::shape(resource, &mut after).map_err(|status| {
            let why = status.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
            why.map_or(status.message.as_str(), |(_, why)| why).to_owned()
        })?;
    }
    managed::text::fold(&mut after);
    if !managed::is_valid(&after) {
        managed::set_entries(&mut after, before["metadata"].get("managedFields").cloned());
    }
    Ok(after)
}

/// Returns an object with its defaults.
fn completed(request: &Attributes<'_>, mut object: Value) -> Value {
    if request.kind().kind == request.resource.kind {
        builtin::complete(request.resource, &mut object);
    }
    object
}

const NAME: &str = "MutatingAdmissionWebhook";
