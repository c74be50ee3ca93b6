//! Resizes of pods, which the node of a pod must be able to carry out.

use klient_core::{Quantity, StatusCause};
use serde_json::Value;

use super::{BuiltIn, is_core};
use crate::{
    Result,
    admission::{Attributes, Operation, Stage},
    builtin, metadata,
    registry::Resource,
    server::Core,
};

/// Refuses resizes that need features which the node of the pod does not declare.
pub(crate) struct NodeDeclaredFeatureValidator;

/// Refuses resizes to more than the node of the pod has.
pub(crate) struct PodResizeValidator;

impl BuiltIn for NodeDeclaredFeatureValidator {
    const NAME: &'static str = "NodeDeclaredFeatureValidator";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "pods")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        is_resize(stage, request)
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let Some((pod, old)) = resized(request) else { return Ok(()) };
        let mut needed = Vec::new();
        if pod["spec"].get("resources") != old["spec"].get("resources") {
            needed.push("InPlacePodLevelResourcesVerticalScaling");
        }
        let initial = |pod: &Value| {
            let all = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
            let ending = all.into_iter().filter(|container| container["restartPolicy"] != "Always");
            ending.map(|mut container| container["resources"].take()).collect::<Vec<_>>()
        };
        if initial(pod) != initial(old) {
            needed.push("InPlacePodVerticalScalingInitContainers");
        }
        if needed.is_empty() {
            return Ok(());
        }
        let node = node_of(core, request, pod)?;
        let declared = node["status"]["declaredFeatures"].as_array().map_or(&[][..], Vec::as_slice);
        needed.retain(|name| !declared.iter().any(|declared| declared == name));
        if needed.is_empty() {
            return Ok(());
        }
        let (features, name) = (needed.join(", "), metadata::text(&node, "name"));
        let why = format!("pod update requires features {features} which are not available on node {name:?}");
        Err(request.forbidden(why))
    }
}

impl BuiltIn for PodResizeValidator {
    const NAME: &'static str = "PodResizeValidator";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "pods")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        is_resize(stage, request)
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let Some((pod, _)) = resized(request) else { return Ok(()) };
        let node = node_of(core, request, pod)?;
        let refused = |why: String, reason: &str| {
            let mut status = request.forbidden(why);
            status.details.get_or_insert_default().causes.push(StatusCause::new(reason, "", ""));
            Err(status)
        };
        if let Some(system) = node["metadata"]["labels"]["kubernetes.io/os"].as_str().filter(|name| *name != "linux") {
            let name = metadata::text(&node, "name");
            let why = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
            return refused(why, "UnsupportedPlatform");
        }
        let parsed = |amount: &Value| amount.as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        let mut missing = Vec::new();
        for (name, shown) in [("cpu", Quantity::milli_value as fn(&Quantity) -> i64), ("memory", Quantity::value)] {
            let (requested, allocatable) =
                (requested(&pod["spec"], name), parsed(&node["status"]["allocatable"][name]));
            if requested > allocatable {
                let (requested, allocatable) = (shown(&requested), shown(&allocatable));
                missing.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!("node didn't have enough allocatable resources: {}", missing.join("; "));
        refused(why, "NodeCapacity")
    }
}

fn is_resize(stage: Stage, request: &Attributes<'_>) -> bool {
    stage == Stage::Validating && request.subresource == "resize" && request.operation == Operation::Update
}

/// Returns a pod on a node and its last state, if the request changes its resources.
fn resized<'a>(request: &'a Attributes<'_>) -> Option<(&'a Value, &'a Value)> {
    let (pod, old) = (request.object.as_ref()?, request.old?);
    let is_scheduled = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let is_changed = pod["metadata"]["generation"] != old["metadata"]["generation"];
    (is_scheduled && is_changed).then_some((pod, old))
}

/// Returns the node of a pod.
fn node_of(core: &Core, request: &Attributes<'_>, pod: &Value) -> Result<Value> {
    let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let found = core.store.get("nodes", name);
    found.map(|node| node.value()).ok_or_else(|| request.forbidden(format!("node {name:?} not found")))
}

/// Returns what a pod requests with its overhead. Requests of the pod itself replace those of its containers.
fn requested(spec: &Value, name: &str) -> Quantity {
    let parsed = |amount: &Value| amount.as_str().and_then(|text| text.parse().ok());
    let own = parsed(&spec["resources"]["requests"][name]).or_else(|| builtin::aggregate(spec, "requests", name));
    own.unwrap_or_default() + parsed(&spec["overhead"][name]).unwrap_or_default()
}
