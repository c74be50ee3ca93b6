//! Runtime classes: a pod takes over their overhead, and the nodes on which it can run.

use serde_json::{Value, json};

use super::{BuiltIn, is_core, is_create};
use crate::{
    Result,
    admission::{Attributes, Stage},
    registry::Resource,
    server::Core,
};

/// Sets the overhead, node selector and tolerations of a pod by its runtime class.
pub(crate) struct RuntimeClass;

impl BuiltIn for RuntimeClass {
    const NAME: &'static str = "RuntimeClass";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "pods")
    }

    fn handles(&self, _: Stage, request: &Attributes<'_>) -> bool {
        let spec = request.object.as_ref().map(|pod| &pod["spec"]);
        let is_set = |name: &str| spec.is_some_and(|spec| spec.get(name).is_some_and(|value| !value.is_null()));
        is_create(request) && (is_set("runtimeClassName") || is_set("overhead"))
    }

    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let class = class_of(core, request)?;
        let Some(mut pod) = request.object.take() else { return Ok(()) };
        let outcome = set(&class, &mut pod["spec"]);
        request.object = Some(pod);
        outcome.map_err(|why| request.forbidden(why))
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let class = class_of(core, request)?;
        let own = request.object.as_ref().map(|pod| &pod["spec"]["overhead"]).unwrap_or(&Value::Null);
        match &class["overhead"]["podFixed"] {
            Value::Null if own.is_null() => Ok(()),
            Value::Null => {
                Err(request
                    .forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
            }
            fixed if fixed == own => Ok(()),
            _ => Err(request.forbidden(OTHER_OVERHEAD)),
        }
    }
}

/// Returns the runtime class of a pod, or null.
fn class_of(core: &Core, request: &Attributes<'_>) -> Result<Value> {
    let name = request.object.as_ref().and_then(|pod| pod["spec"]["runtimeClassName"].as_str());
    let Some(name) = name else { return Ok(Value::Null) };
    match core.store.get("runtimeclasses.node.k8s.io", name) {
        Some(class) => Ok(class.value()),
        None => Err(request.forbidden(format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}

fn set(class: &Value, spec: &mut Value) -> std::result::Result<(), String> {
    if let Some(fixed) = class["overhead"].get("podFixed") {
        let own = &spec["overhead"];
        if own.as_object().is_some_and(|own| !own.is_empty()) && own != fixed {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        spec["overhead"] = fixed.clone();
    }
    let Some(scheduling) = class.get("scheduling").filter(|scheduling| scheduling.is_object()) else { return Ok(()) };
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let own = &mut spec["nodeSelector"];
        if own.is_null() {
            *own = json!({});
        }
        let (given, wanted) = (own[key].as_str().map(str::to_owned), value.as_str().unwrap_or_default());
        if let Some(given) = given.filter(|given| given != wanted) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        own[key] = value.clone();
    }
    let tolerations = scheduling["tolerations"].as_array().cloned().unwrap_or_default();
    let mut own = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for toleration in tolerations {
        if !own.contains(&toleration) {
            own.push(toleration);
        }
    }
    if !own.is_empty() {
        spec["tolerations"] = json!(own);
    }
    Ok(())
}

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
