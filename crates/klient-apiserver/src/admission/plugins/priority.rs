//! Priorities of pods, from their classes.

use serde_json::{Value, json};

use super::{BuiltIn, is_core, is_write};
use crate::{
    Result,
    admission::{Attributes, Operation, Stage},
    metadata,
    registry::Resource,
    server::Core,
};

/// Sets the priority of a pod by its class, and refuses a second default class.
pub(crate) struct Priority;

impl BuiltIn for Priority {
    const NAME: &'static str = "Priority";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "pods") || (resource.group == "scheduling.k8s.io" && resource.plural == "priorityclasses")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        let is_pod = request.resource.plural == "pods";
        is_write(request) && is_pod == (stage == Stage::Mutating)
    }

    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let Some(Value::Object(mut spec)) = request.object.as_mut().map(|pod| pod["spec"].take()) else {
            return Ok(());
        };
        let outcome = match (request.operation, request.old) {
            (Operation::Update, Some(old)) => {
                for name in ["priority", "preemptionPolicy"] {
                    if let (None, Some(value)) = (spec.get(name), old["spec"].get(name)) {
                        spec.insert(name.to_owned(), value.clone());
                    }
                }
                Ok(())
            }
            _ => set(core, &mut spec),
        };
        if let Some(pod) = &mut request.object {
            pod["spec"] = Value::Object(spec);
        }
        outcome.map_err(|why| request.forbidden(why))
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let Some(class) = request.object.as_ref().filter(|class| class["globalDefault"] == true) else { return Ok(()) };
        let Some(default) = default_class(core) else { return Ok(()) };
        let name = metadata::text(&default, "name");
        if request.operation == Operation::Update && name == metadata::text(class, "name") {
            return Ok(());
        }
        Err(request.forbidden(format!("PriorityClass {name} is already marked as default. Only one default can exist")))
    }
}

/// Sets the priority of a new pod. The error is a message.
fn set(core: &Core, spec: &mut serde_json::Map<String, Value>) -> std::result::Result<(), String> {
    let name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let class = match name.as_str() {
        "" => default_class(core),
        name => {
            let found = core.store.get(CLASSES, name).map(|stored| stored.value());
            Some(found.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
        }
    };
    let (priority, policy) = match &class {
        Some(class) => {
            spec.insert("priorityClassName".to_owned(), json!(metadata::text(class, "name")));
            (class["value"].as_i64().unwrap_or_default(), class["preemptionPolicy"].as_str().map(str::to_owned))
        }
        None => (0, Some("PreemptLowerPriority".to_owned())),
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), json!(priority));
    let Some(policy) = policy else { return Ok(()) };
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| *given != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

/// Returns the class of pods that name none. If there are several, it is the lowest.
fn default_class(core: &Core) -> Option<Value> {
    let classes = core.store.list(CLASSES, "").objects;
    let defaults = classes.iter().map(|stored| stored.value()).filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class["value"].as_i64())
}

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
