//! The plugin that calls validating webhooks, all of them at the same time.

use std::sync::Arc;

use klient_core::Status;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    Failure,
    hook::Hook,
    matching::{self, Match},
    response,
    review::{Objects, Review, matched},
};
use crate::{
    Result,
    admission::{Attributes, Plugin, Stage, Verdict},
    registry::Resource,
    server::Core,
};

/// The plugin that calls validating webhooks.
pub(crate) struct ValidatingWebhooks;

impl Plugin for ValidatingWebhooks {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn is_active(&self, core: &Core, _: &Resource) -> bool {
        core.webhooks.has_any(Stage::Validating)
    }

    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool {
        core.webhooks.apply_to(stage, request)
    }

    fn validate<'a>(&'a self, core: &'a Arc<Core>, request: &'a Attributes<'_>) -> Verdict<'a> {
        Box::pin(validate(core, request))
    }
}

async fn validate(core: &Arc<Core>, request: &Attributes<'_>) -> Result<()> {
    let hooks = core.webhooks.of(Stage::Validating).all();
    let mut relevant = Vec::new();
    for (index, hook) in hooks.iter().enumerate() {
        if let Some(found) = matching::of_hook(core, hook, request)? {
            relevant.push((index, hook, found));
        }
    }
    match relevant.as_slice() {
        [] => Ok(()),
        // One call needs no task.
        [(index, hook, found)] => {
            let outcome = call(core, hook, found, request).await;
            judge(hook, *index, request, outcome)
        }
        several => call_all(core, several, request).await,
    }
}

/// Calls several hooks at the same time. The first error to arrive wins.
async fn call_all(core: &Arc<Core>, hooks: &[(usize, &Hook, Match)], request: &Attributes<'_>) -> Result<()> {
    let mut calls = JoinSet::new();
    let mut reviews = Vec::new();
    let mut first = None;
    for (position, (index, hook, found)) in hooks.iter().enumerate() {
        let prepared = prepare(core, hook, found, request).await;
        let (Ok(review), Some(location)) = (&prepared, &hook.location) else {
            let outcome = prepared.and_then(|_| Err(no_location(hook)));
            first = first.or(judge(hook, *index, request, outcome).err());
            reviews.push(None);
            continue;
        };
        let (core, location, body, timeout) = (Arc::clone(core), location.clone(), review.body.clone(), hook.timeout);
        calls.spawn(async move { (position, core.post_review(&location, AGENT, timeout, body).await) });
        reviews.push(prepared.ok());
    }
    while let Some(joined) = calls.join_next().await {
        let Ok((position, answered)) = joined else { continue };
        let ((index, hook, _), Some(Some(review))) = (&hooks[position], reviews.get(position)) else { continue };
        let outcome = match answered {
            Ok(body) => response::read(hook, Stage::Validating, review, request, &body).map(drop),
            Err(error) => Err(failed(hook, &error)),
        };
        first = first.or(judge(hook, *index, request, outcome).err());
    }
    first.map_or(Ok(()), Err)
}

async fn call(
    core: &Arc<Core>,
    hook: &Hook,
    found: &Match,
    request: &Attributes<'_>,
) -> std::result::Result<(), Failure> {
    let review = prepare(core, hook, found, request).await?;
    let body = post(core, hook, &review).await?;
    response::read(hook, Stage::Validating, &review, request, &body).map(drop)
}

async fn prepare(
    core: &Arc<Core>,
    hook: &Hook,
    found: &Match,
    request: &Attributes<'_>,
) -> std::result::Result<Review, Failure> {
    check_dry_run(hook, request)?;
    let resource = matched(found, request);
    let Match::Equivalent(other) = found else {
        let objects = Objects { resource, object: request.object.as_ref(), old: request.old };
        return Review::new(core, hook, request, &objects);
    };
    let object = converted(core, other, request.object.as_ref()).await?;
    let old = converted(core, other, request.old).await?;
    Review::new(core, hook, request, &Objects { resource, object: object.as_ref(), old: old.as_ref() })
}

/// Returns an object in another version.
pub(super) async fn converted(
    core: &Arc<Core>,
    resource: &Arc<crate::registry::Resource>,
    object: Option<&Value>,
) -> std::result::Result<Option<Value>, Failure> {
    let Some(object) = object else { return Ok(None) };
    let converted = core.present(resource, object.clone()).await;
    converted.map(Some).map_err(|status| Failure::Refused(Box::new(Status::internal_error(&status.message))))
}

/// Posts a review, and returns the body of the response.
pub(super) async fn post(core: &Core, hook: &Hook, review: &Review) -> std::result::Result<bytes::Bytes, Failure> {
    let location = hook.location.as_ref().ok_or_else(|| no_location(hook))?;
    let posted = core.post_review(location, AGENT, hook.timeout, review.body.clone()).await;
    posted.map_err(|error| failed(hook, &error))
}

fn failed(hook: &Hook, error: &crate::peers::CallError) -> Failure {
    match error {
        crate::peers::CallError::Client(_) => Failure::calling(hook, error),
        crate::peers::CallError::Call(why) => Failure::calling(hook, format!("failed to call webhook: {why}")),
    }
}

fn no_location(hook: &Hook) -> Failure {
    Failure::calling(hook, "could not get REST client: webhook configuration must have either service or URL")
}

/// Refuses a dry run, unless the hook says that it has no side effects then.
pub(super) fn check_dry_run(hook: &Hook, request: &Attributes<'_>) -> std::result::Result<(), Failure> {
    if !request.dry_run || hook.allows_dry_run {
        return Ok(());
    }
    let message = format!("admission webhook \"{}\" does not support dry run", hook.name);
    Err(Failure::Refused(Box::new(Status::bad_request(message))))
}

/// Applies the failure policy to the outcome of a call.
fn judge(hook: &Hook, index: usize, request: &Attributes<'_>, outcome: std::result::Result<(), Failure>) -> Result<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Refused(status)) => Err(status),
        Err(Failure::Calling(why)) if hook.fails_open => {
            tracing::warn!(webhook = hook.name, why, "webhook failed, and is ignored");
            let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
            request.notes().annotate(key, hook.name.clone());
            Ok(())
        }
        Err(Failure::Calling(why)) => Err(Box::new(Status::internal_error(why))),
    }
}

/// The user agent of reviews.
const AGENT: &str = "kube-apiserver-admission";
