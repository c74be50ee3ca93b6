//! Validation of storage classes, priority classes and runtime classes.

use std::collections::{BTreeMap, BTreeSet};

use klient_core::Status;
use serde_json::Value;

use super::{
    field::{Causes, Field, go_struct},
    resources, scheduling,
};
use crate::{
    Result,
    metadata::{self, formats},
    registry::Resource,
};

/// Validates a storage class.
pub(in crate::builtin) fn storage_class(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let field = |name| Field::of(object, name);
    let (provisioner, parameters) = (field("provisioner"), field("parameters"));
    if provisioner.not_empty(causes) {
        for problem in formats::qualified_name_problems(&provisioner.text().to_lowercase()) {
            provisioner.invalid_as(provisioner.text().to_lowercase(), &problem, causes);
        }
    }
    self::parameters(&parameters, causes);
    if !field("reclaimPolicy").text().is_empty() {
        field("reclaimPolicy").optional_one_of(&["Delete", "Retain"], causes);
    }
    field("volumeBindingMode").optional_one_of(&["Immediate", "WaitForFirstConsumer"], causes);
    topologies(&field("allowedTopologies"), causes);
    if let Some(old) = old {
        for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            field(name).immutable(&old[name], causes);
        }
    }
}

fn parameters(parameters: &Field<'_, '_>, causes: &mut Causes) {
    if parameters.entries().count() > MAX_PARAMETERS {
        return parameters.too_long(MAX_PARAMETERS, causes);
    }
    let mut size = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            parameters.invalid_as(key, "field can not be empty.", causes);
        }
        size += key.len() + value.text().len();
    }
    if size > MAX_PARAMETERS_SIZE {
        parameters.too_long(MAX_PARAMETERS_SIZE, causes);
    }
}

/// The keys of a term and their values.
type Term<'v> = BTreeMap<&'v str, BTreeSet<&'v str>>;

fn topologies(topologies: &Field<'_, '_>, causes: &mut Causes) {
    // The real server starts with as many empty terms as there are terms.
    let mut known: BTreeMap<Term<'_>, usize> = BTreeMap::from([(Term::new(), topologies.list().len())]);
    for topology in topologies.items() {
        let mut term = Term::new();
        let expressions = topology.field("matchLabelExpressions");
        for expression in expressions.items() {
            let (key, values) = (expression.field("key"), expression.field("values"));
            if values.is_empty() {
                values.required("", causes);
            }
            let mut texts = BTreeSet::new();
            for value in values.items() {
                if !texts.insert(value.text()) {
                    value.duplicate(causes);
                }
            }
            key.qualified_name(causes);
            if term.insert(key.text(), texts).is_some() {
                key.duplicate(causes);
            }
        }
        let count = known.entry(term).or_default();
        for _ in 0..*count {
            if causes.is_full() {
                return;
            }
            expressions.duplicate_as("", causes);
        }
        *count += 1;
    }
}

/// Validates a priority class.
pub(in crate::builtin) fn priority_class(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let (value, policy) = (Field::of(object, "value"), Field::of(object, "preemptionPolicy"));
    if let Some(old) = old {
        if value.number() != old["value"].as_i64().unwrap_or_default() {
            value.forbidden("may not be changed in an update.", causes);
        }
        return policy.immutable(&old["preemptionPolicy"], causes);
    }
    let name = metadata::text(object, "name");
    if name.starts_with(SYSTEM) {
        if let Some(why) = not_of_the_system(name, object) {
            let metadata = Field::of(object, "metadata");
            let detail =
                format!("priority class names with '{SYSTEM}' prefix are reserved for system use only. error: {why}");
            metadata.field("name").forbidden(&detail, causes);
        }
    } else if value.number() > HIGHEST_PRIORITY {
        value.forbidden(&format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"), causes);
    }
    if policy.is_set() {
        policy.one_of(&["PreemptLowerPriority", "Never"], causes);
    }
}

/// Refuses to delete a priority class that every cluster has.
pub(in crate::builtin) fn deleted_priority_class(resource: &Resource, object: &Value) -> Result<()> {
    let name = metadata::text(object, "name");
    if SYSTEM_CLASSES.iter().any(|(known, _)| *known == name) {
        let why = "this is a system priority class and cannot be deleted";
        return Err(Box::new(Status::forbidden(&resource.group_resource(), name, why)));
    }
    Ok(())
}

/// Returns why a priority class is none of those that every cluster has.
fn not_of_the_system(name: &str, object: &Value) -> Option<String> {
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if object["value"] != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    (object["globalDefault"] == true).then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

/// Validates a runtime class.
pub(in crate::builtin) fn runtime_class(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let handler = Field::of(object, "handler");
    if handler.not_empty(causes) {
        handler.label(causes);
    }
    let overhead = Field::of(object, "overhead");
    resources::overhead(&overhead.with(&overhead.value["podFixed"]), causes);
    let scheduling = Field::of(object, "scheduling");
    scheduling.field("nodeSelector").labels(causes);
    let tolerations = scheduling.field("tolerations");
    scheduling::tolerations(&tolerations, causes);
    let mut known = BTreeSet::new();
    for toleration in tolerations.items() {
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.field(name).text());
        if !known.insert(key) {
            let [name, operator, value, effect] = key.map(Value::from);
            let shown = go_struct(&[
                ("Key", &name),
                ("Operator", &operator),
                ("Value", &value),
                ("Effect", &effect),
                ("TolerationSeconds", &toleration.value["tolerationSeconds"]),
            ]);
            toleration.duplicate_text(&shown, causes);
        }
    }
    if let Some(old) = old {
        handler.immutable(&old["handler"], causes);
    }
}

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETERS_SIZE: usize = 256 << 10;
const SYSTEM: &str = "system-";
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
/// The highest priority of a class that is not the system's.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
