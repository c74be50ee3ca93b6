//! The subresources `binding` and `eviction` of pods.

use std::sync::{Arc, LazyLock};

use http::{Response, StatusCode};
use klient_core::{GroupResource, Status, StatusCause, StatusReason};
use klient_proto::Envelope;
use serde_json::{Map, Value, json};

use super::{
    Target,
    create::{check_namespace, commit_failed},
    delete::DeleteOptions,
};
use crate::{
    Result,
    admission::Origin,
    body::ResponseBody,
    builtin,
    call::Call,
    decode, metadata,
    negotiate::Encoding,
    registry::{self, Resource},
    response,
    server::Core,
    store::{CommitError, Expected, Write},
};

impl Core {
    /// Binds a pod to a node.
    pub(super) async fn bind(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let options = call.write_options("CreateOptions")?;
        let bindings = self.registry.find("", "v1", "bindings").ok_or_else(super::not_served)?;
        let decoded = decode::object(&bindings, Encoding::of_body(&call.headers)?, &call.body)?;
        call.notes.warn_of_fields(decode::enforce(&bindings, options.field_validation, &decoded.problems)?);
        self.bind_by(call, target, decoded.object, options.dry_run).await
    }

    async fn bind_by(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        mut binding: Value,
        dry_run: bool,
    ) -> Result<Response<ResponseBody>> {
        check_namespace(target, &mut binding)?;
        if metadata::text(&binding, "name") != target.name() {
            return Err(Box::new(Status::bad_request("name in URL does not match name in Binding object")));
        }
        let binding = self.admit_posted(call, target, binding, dry_run).await?;
        check_binding(&binding)?;
        let refused =
            |why: String| Box::new(Status::conflict(&GroupResource::new("", "pods/binding"), target.name(), why));
        let pod = target.whole();
        let now = metadata::time(self.clock.now());
        let bind = |current: &Value| {
            check_preconditions(target, &binding, current, dry_run)?;
            let name = target.name();
            let node = current["spec"]["nodeName"].as_str().unwrap_or_default();
            if metadata::is_deleting(current) {
                return Err(refused(format!("pod {name} is being deleted, cannot be assigned to a host")));
            }
            if !node.is_empty() {
                return Err(refused(format!("pod {name} is already assigned to node {node:?}")));
            }
            if current["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
                return Err(refused(format!("pod {name} has non-empty .spec.schedulingGates")));
            }
            let mut new = current.clone();
            new["spec"]["nodeName"] = binding["target"]["name"].clone();
            for field in ["annotations", "labels"] {
                merge(&mut new, field, &binding["metadata"][field]);
            }
            let condition = json!({"type": "PodScheduled", "status": "True"});
            set_condition(&mut new, condition, &now);
            Ok(new)
        };
        self.rewrite(&pod, dry_run, bind).await?;
        done(call, target)
    }

    /// Binds the pod that a posted `Binding` names.
    pub(super) async fn bind_named(self: &Arc<Self>, call: &Call, bindings: &Target) -> Result<Response<ResponseBody>> {
        let options = call.write_options("CreateOptions")?;
        let resource = &bindings.resource;
        let decoded = decode::object(resource, Encoding::of_body(&call.headers)?, &call.body)?;
        call.notes.warn_of_fields(decode::enforce(resource, options.field_validation, &decoded.problems)?);
        let mut binding = decoded.object;
        let pod = Target {
            resource: self.registry.find("", "v1", "pods").ok_or_else(super::not_served)?,
            namespace: bindings.namespace.clone(),
            name: Some(metadata::text(&binding, "name").to_owned()),
            subresource: Some("binding".to_owned()),
        };
        if pod.name().is_empty() {
            return Err(Box::new(Status::bad_request("Name parameter required.")));
        }
        metadata::wipe_identity(&mut binding);
        self.bind_by(call, &pod, binding, options.dry_run).await
    }

    /// Evicts a pod, if its disruption budget allows it.
    pub(super) async fn evict(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let options = call.write_options("CreateOptions")?;
        let encoding = Encoding::of_body(&call.headers)?;
        let evictions = evictions(call, encoding);
        let decoded = decode::object(evictions, encoding, &call.body)?;
        call.notes.warn_of_fields(decode::enforce(evictions, options.field_validation, &decoded.problems)?);
        self.evict_by(call, target, decoded.object, options.dry_run).await
    }

    async fn evict_by(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        mut eviction: Value,
        dry_run: bool,
    ) -> Result<Response<ResponseBody>> {
        let pod = target.whole();
        check_namespace(target, &mut eviction)?;
        if metadata::text(&eviction, "name") != target.name() {
            return Err(Box::new(Status::bad_request("name in URL does not match name in Eviction object")));
        }
        let eviction = self.admit_posted(call, target, eviction, dry_run).await?;
        let mut options = DeleteOptions::read(&eviction["deleteOptions"], call)?;
        let stored = self.store.get(&pod.resource.table, &pod.key()).ok_or_else(|| target.not_found())?;
        let current = stored.value();
        let phase = current["status"]["phase"].as_str().unwrap_or_default();
        // A pod that does not run needs no disruption budget.
        if !matches!(phase, "Succeeded" | "Failed" | "Pending") && !metadata::is_deleting(&current) {
            self.disrupt(&pod, &current, options.dry_run).await?;
        }
        if !options.dry_run {
            let now = metadata::time(self.clock.now());
            let mark = |current: &Value| {
                options.check(&pod, current)?;
                let mut new = current.clone();
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True",
                    "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
                });
                set_condition(&mut new, condition, &now);
                Ok(new)
            };
            let marked = self.rewrite(&pod, false, mark).await?;
            if options.version.is_some() {
                // The server itself changed the version by adding the condition.
                options.version = Some(metadata::text(&marked, "resourceVersion").to_owned());
            }
        }
        // The eviction was admitted, and the real server admits no delete for it.
        self.delete_object(&pod, &options, Origin::Server).await?;
        done(call, target)
    }

    /// Subtracts a disruption from the budget of a pod.
    async fn disrupt(self: &Arc<Self>, pod: &Target, current: &Value, dry_run: bool) -> Result<()> {
        let selects = |budget: &Value| {
            let selector = serde_json::from_value(budget["spec"]["selector"].clone()).ok().flatten();
            let selector = klient_core::LabelSelector::from_api(selector.as_ref());
            let labels = &current["metadata"]["labels"];
            selector.is_ok_and(|selector| selector.matches(|key| labels.get(key)?.as_str()))
        };
        let prefix = format!("{}/", pod.namespace);
        let budgets = self.store.list("poddisruptionbudgets.policy", &prefix).objects;
        let budgets: Vec<Value> = budgets.iter().map(|stored| stored.value()).filter(selects).collect();
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Box::new(Status::failure(StatusReason::Unknown, 500, message)));
            }
        };
        if !is_ready(current) && budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" {
            return Ok(());
        }
        let (healthy, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
        if !is_ready(current) && healthy >= desired && desired > 0 {
            return Ok(());
        }
        let resource = self.registry.find("policy", "v1", "poddisruptionbudgets").ok_or_else(super::not_served)?;
        let target = Target {
            resource,
            namespace: pod.namespace.clone(),
            name: Some(metadata::text(budget, "name").to_owned()),
            subresource: None,
        };
        let now = metadata::time(self.clock.now());
        let change = |budget: &Value| {
            let mut new = spend(budget, pod.name(), &now)?;
            builtin::record_status(self, "policy", "poddisruptionbudgets", &mut budget.clone(), &mut new);
            Ok(new)
        };
        self.rewrite(&target, dry_run, change).await.map(drop)
    }

    /// Writes an object on behalf of the server, without the rules for clients.
    async fn rewrite(
        self: &Arc<Self>,
        target: &Target,
        dry_run: bool,
        change: impl Fn(&Value) -> Result<Value>,
    ) -> Result<Value> {
        let (table, key) = (&target.resource.table, target.key());
        loop {
            let stored = self.store.get(table, &key).ok_or_else(|| target.not_found())?;
            let current = stored.value();
            let new = change(&current)?;
            if dry_run || new == current {
                return Ok(new);
            }
            match self.store.commit(table, &key, Expected::Revision(stored.revision), Write::Put(new)).await {
                Ok(committed) => {
                    self.after_change(&target.resource, &committed).await;
                    return Ok(committed.object);
                }
                Err(CommitError::Changed(_)) => {}
                Err(error) => return Err(commit_failed(&error)),
            }
        }
    }
}

fn done(call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
    let mut status = Status::success();
    status.code = 201;
    Ok(response::status(StatusCode::CREATED, &status, call.response_format(&target.resource)?))
}

/// Returns the kind of an eviction, which clients still send in its first version, too.
fn evictions(call: &Call, encoding: Encoding) -> &'static Resource {
    static EVICTIONS: LazyLock<Resource> =
        LazyLock::new(|| registry::part("io.k8s.api.policy.v1.Eviction", "policy", "v1", "Eviction", "evictions"));
    static OLD: LazyLock<Resource> = LazyLock::new(|| {
        let part = registry::part("io.k8s.api.policy.v1.Eviction", "policy", "v1", "Eviction", "evictions");
        Resource { version: "v1beta1".to_owned(), ..part }
    });
    let old = OLD.api_version();
    let is_old = match encoding {
        Encoding::Protobuf => Envelope::open(&call.body).is_ok_and(|envelope| envelope.api_version == old),
        Encoding::Json | Encoding::Yaml => {
            decode::parse_response(&call.body).is_ok_and(|eviction| eviction["apiVersion"] == old)
        }
    };
    if is_old { &OLD } else { &EVICTIONS }
}

fn check_binding(binding: &Value) -> Result<()> {
    let target = &binding["target"];
    let mut causes = Vec::new();
    if let Some(kind) = target["kind"].as_str().filter(|kind| !matches!(*kind, "" | "Node")) {
        causes.push(StatusCause::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if target["name"].as_str().unwrap_or_default().is_empty() {
        causes.push(StatusCause::required("target.name", ""));
    }
    // The real server puts these causes into one message.
    let told: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    match told.as_slice() {
        [] => Ok(()),
        [one] => Err(Box::new(Status::failure(StatusReason::Unknown, 500, one.clone()))),
        many => Err(Box::new(Status::failure(StatusReason::Unknown, 500, format!("[{}]", many.join(", "))))),
    }
}

/// Checks the UID and resource version of a binding.
fn check_preconditions(target: &Target, binding: &Value, current: &Value, dry_run: bool) -> Result<()> {
    let root = if dry_run { "" } else { "/registry" };
    for (field, name) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (asked, found) = (metadata::text(binding, field), metadata::text(current, field));
        if !asked.is_empty() && asked != found {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {root}/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {name} in precondition: {asked}, {name} in object meta: {found}",
                target.key()
            );
            return Err(Box::new(Status::conflict(&target.resource.group_resource(), target.name(), why)));
        }
    }
    Ok(())
}

/// Adds labels or annotations.
fn merge(object: &mut Value, field: &str, added: &Value) {
    let Value::Object(added) = added else { return };
    let entry = metadata::of(object).entry(field).or_insert_with(|| json!({}));
    if let Value::Object(entry) = entry {
        entry.extend(added.clone());
    }
}

/// Returns a budget with one disruption less, or an error if it allows none.
fn spend(budget: &Value, pod: &str, now: &str) -> Result<Value> {
    let name = metadata::text(budget, "name");
    let refused = |message: String, retry_after: i32| {
        let why = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut status = Status::too_many_requests(why, retry_after);
        status.details.get_or_insert_default().causes.push(StatusCause::new("DisruptionBudget", "", message));
        Err(Box::new(status))
    };
    if number(budget, "observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or_default() {
        return refused(format!("The disruption budget {name} is still being processed by the server."), 10);
    }
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        let resource = GroupResource::new("policy", "poddisruptionbudget");
        return Err(Box::new(Status::forbidden(&resource, name, "pdb disruptions allowed is negative")));
    }
    if allowed == 0 {
        return refused(why_not(budget), 0);
    }
    let mut new = budget.clone();
    new["status"]["disruptionsAllowed"] = json!(allowed - 1);
    if allowed == 1 {
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": budget["status"]["observedGeneration"],
        });
        set_condition(&mut new, condition, now);
    }
    new["status"]["disruptedPods"][pod] = json!(now);
    Ok(new)
}

/// Returns the reason why a budget allows no disruption.
fn why_not(budget: &Value) -> String {
    let name = metadata::text(budget, "name");
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions
        .filter(|condition| condition["type"] == "DisruptionAllowed" && condition["status"] == "False")
        .find(|condition| condition["message"].as_str().is_some_and(|message| !message.is_empty()));
    let text = |name: &str| condition.and_then(|condition| condition[name].as_str()).unwrap_or_default();
    let (healthy, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    if text("reason") == "SyncFailed" {
        let message = text("message");
        format!("The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}")
    } else if healthy <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    } else if condition.is_some() {
        let (reason, message) = (text("reason"), text("message"));
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn number(object: &Value, name: &str) -> i64 {
    object["status"][name].as_i64().unwrap_or_default()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Sets a condition. Its transition time changes only if its status changes.
fn set_condition(object: &mut Value, condition: Value, now: &str) {
    let Value::Object(mut condition) = condition else { return };
    if condition["type"] != "DisruptionAllowed" {
        condition.insert("lastProbeTime".to_owned(), Value::Null);
    }
    let status = &mut object["status"];
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    let conditions = &mut status["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let entry = conditions.iter_mut().find(|known| known["type"] == condition["type"]);
    let same = entry.as_ref().filter(|known| known["status"] == condition["status"]);
    let time = same.map_or_else(|| json!(now), |known| known["lastTransitionTime"].clone());
    condition.insert("lastTransitionTime".to_owned(), time);
    match entry {
        Some(entry) => *entry = Value::Object(condition),
        None => conditions.push(Value::Object(condition)),
    }
}
