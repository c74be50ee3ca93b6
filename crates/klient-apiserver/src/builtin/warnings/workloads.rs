//! Warnings about pods and the kinds that create them.

use serde_json::Value;

use super::{Told, addresses, pod_spec, storage, warn};
use crate::{
    builtin::{rules::Field, workloads::TEMPLATE_GENERATION},
    metadata::{self, formats},
};

/// Adds warnings about a new pod. Updates of pods are frequent, and the real server does not warn about them.
pub(in crate::builtin) fn pod(object: &Value, old: Option<&Value>, told: &mut Told) {
    if old.is_none() {
        name(object, "the Pod's hostname", told);
        pod_spec::pod(&Field::of(object, "metadata"), &Field::of(object, "spec"), false, told);
    }
}

/// Adds warnings about the addresses in the status of a pod.
pub(in crate::builtin) fn pod_status(object: &Value, _: Option<&Value>, told: &mut Told) {
    let status = Field::of(object, "status");
    for list in ["podIPs", "hostIPs"] {
        status.field(list).items().for_each(|item| addresses::address(&item.field("ip"), told));
    }
}

/// Adds warnings about a pod template.
pub(in crate::builtin) fn pod_template(object: &Value, old: Option<&Value>, told: &mut Told) {
    if is_changed(object, old) {
        template(&Field::of(object, "template"), told);
    }
}

/// Adds warnings about a deployment or a replica set.
pub(in crate::builtin) fn replicated(object: &Value, old: Option<&Value>, told: &mut Told) {
    new_name(object, old, told);
    if is_changed(object, old) {
        template(&Field::of(object, "spec").field("template"), told);
    }
}

/// Adds warnings about a replication controller. Those about an update are about the stored template, as on the real server.
pub(in crate::builtin) fn replication_controller(object: &Value, old: Option<&Value>, told: &mut Told) {
    new_name(object, old, told);
    if is_changed(object, old) {
        template(&Field::of(old.unwrap_or(object), "spec").field("template"), told);
    }
}

/// Adds warnings about a daemon set.
pub(in crate::builtin) fn daemon_set(object: &Value, old: Option<&Value>, told: &mut Told) {
    let generation = |object: &Value| object["metadata"]["annotations"][TEMPLATE_GENERATION].clone();
    if old.is_none_or(|old| generation(old) != generation(object)) {
        template(&Field::of(object, "spec").field("template"), told);
    }
}

/// Adds warnings about a stateful set.
pub(in crate::builtin) fn stateful_set(object: &Value, old: Option<&Value>, told: &mut Told) {
    let spec = Field::of(object, "spec");
    if is_changed(object, old) {
        template(&spec.field("template"), told);
    }
    for claim in spec.field("volumeClaimTemplates").items() {
        // The paths of the real server are not those of the fields.
        match old {
            None => storage::claim_spec(&claim.with(&claim.value["spec"]), told),
            Some(_) => storage::claim_spec(&claim.named("spec", "Spec"), told),
        }
    }
    let limit = spec.field("revisionHistoryLimit");
    if limit.number() < 0 {
        warn(&limit, "a negative value retains all historical revisions; a value >= 0 is recommended", told);
    }
}

/// Adds warnings about a job.
pub(in crate::builtin) fn job(object: &Value, old: Option<&Value>, told: &mut Told) {
    new_name(object, old, told);
    if is_changed(object, old) {
        job_spec(&Field::of(object, "spec"), told);
    }
}

/// Adds warnings about a cron job.
pub(in crate::builtin) fn cron_job(object: &Value, old: Option<&Value>, told: &mut Told) {
    new_name(object, old, told);
    let spec = Field::of(object, "spec");
    if is_changed(object, old) {
        job_spec(&spec.field("jobTemplate").field("spec"), told);
    }
    if old.is_some() && spec.field("schedule").text().contains("TZ") {
        let path = "spec.spec.schedule";
        let guide = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
        told.push(format!("cannot use TZ or CRON_TZ in {path}, use timeZone instead, see {guide} for more details"));
    }
}

fn job_spec(spec: &Field<'_, '_>, told: &mut Told) {
    let number = |name: &str| spec.field(name).number();
    let is_indexed = spec.field("completionMode").text() == "Indexed";
    if is_indexed && number("completions") > 100_000 && number("parallelism") > 10_000 {
        let why = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        warn(spec, why, told);
    }
    template(&spec.field("template"), told);
}

fn template(template: &Field<'_, '_>, told: &mut Told) {
    pod_spec::pod(&template.field("metadata"), &template.field("spec"), true, told);
}

/// Returns whether an object is new, or its desired state has changed.
fn is_changed(object: &Value, old: Option<&Value>) -> bool {
    old.is_none_or(|old| old["metadata"]["generation"] != object["metadata"]["generation"])
}

/// Adds a warning about the name of a new object whose pods are named after it.
fn new_name(object: &Value, old: Option<&Value>, told: &mut Told) {
    if old.is_none() {
        name(object, "Pod names and hostnames", told);
    }
}

fn name(object: &Value, usage: &str, told: &mut Told) {
    let problems = formats::label_problems(metadata::text(object, "name"));
    if !problems.is_empty() {
        told.push(format!(
            "metadata.name: this is used in {usage}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            problems.join(" ")
        ));
    }
}
