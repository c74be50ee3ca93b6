//! Limit ranges: defaults and bounds for the resources of containers, pods and claims.

use std::collections::BTreeMap;

use klient_core::Quantity;
use serde_json::{Map, Value, json};

use super::{BuiltIn, is_core, is_create};
use crate::{
    Result, access,
    admission::{Attributes, Operation, Stage},
    builtin, metadata,
    registry::Resource,
    server::Core,
};

/// Fills in and checks resources by the limit ranges of the namespace.
pub(crate) struct LimitRanger;

/// Amounts by the names of resources.
type Amounts = BTreeMap<String, Quantity>;

impl BuiltIn for LimitRanger {
    const NAME: &'static str = "LimitRanger";

    fn is_about(&self, core: &Core, resource: &Resource) -> bool {
        (is_core(resource, "pods") || is_core(resource, "persistentvolumeclaims"))
            && core.store.count("limitranges") > 0
    }

    fn handles(&self, _: Stage, request: &Attributes<'_>) -> bool {
        let is_update = request.operation == Operation::Update;
        let is_resize = is_update && request.subresource == "resize";
        let is_claim_update = is_update && request.subresource.is_empty() && request.resource.plural != "pods";
        let is_deleting = request.old.is_some_and(metadata::is_deleting);
        (is_create(request) || is_resize || is_claim_update) && !is_deleting
    }

    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        if request.resource.plural != "pods" {
            return Ok(());
        }
        let ranges = ranges(core, &request.namespace);
        if let Some(pod) = &mut request.object {
            ranges.iter().for_each(|range| fill_in(range, pod));
        }
        Ok(())
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let Some(object) = &request.object else { return Ok(()) };
        for range in ranges(core, &request.namespace) {
            let mut problems = Vec::new();
            for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
                match request.resource.plural.as_str() {
                    "pods" => check_pod(limit, object, &mut problems),
                    _ => check_claim(limit, object, &mut problems),
                }
            }
            if !problems.is_empty() {
                return Err(request.forbidden(access::aggregate(&problems)));
            }
        }
        Ok(())
    }
}

fn ranges(core: &Core, namespace: &str) -> Vec<Value> {
    let found = core.store.list("limitranges", &format!("{namespace}/")).objects;
    found.iter().map(|stored| stored.value()).collect()
}

/// Sets the requests and limits that containers do not have.
fn fill_in(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for limit in range["spec"]["limits"].as_array().into_iter().flatten().filter(|limit| limit["type"] == "Container") {
        requests.extend(limit["defaultRequest"].as_object().cloned().unwrap_or_default());
        limits.extend(limit["default"].as_object().cloned().unwrap_or_default());
    }
    let mut notes = Vec::new();
    for (list, sort) in [("containers", "container"), ("initContainers", "init container")] {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (field, defaults, word) in [("limits", &limits, "limit"), ("requests", &requests, "request")] {
                let mut own = container["resources"][field].as_object().cloned().unwrap_or_default();
                let missing: Vec<&String> = defaults.keys().filter(|key| !own.contains_key(*key)).collect();
                if missing.is_empty() {
                    continue;
                }
                let names: Vec<&str> = missing.iter().map(|key| key.as_str()).collect();
                let note = format!("{} {word} for {sort} {name}", names.join(", "));
                missing.iter().for_each(|key| drop(own.insert((*key).clone(), defaults[*key].clone())));
                if !container["resources"].is_object() {
                    container["resources"] = json!({});
                }
                container["resources"][field] = Value::Object(own);
                notes.push((name.clone(), word, note));
            }
        }
    }
    if notes.is_empty() {
        return;
    }
    // The real server names the requests of a container before its limits.
    let mut texts = Vec::new();
    let mut at = 0;
    while at < notes.len() {
        if let Some([first, second]) = notes.get(at..at + 2)
            && first.0 == second.0
            && (first.1, second.1) == ("limit", "request")
        {
            texts.extend([second.2.as_str(), first.2.as_str()]);
            at += 2;
        } else {
            texts.push(&notes[at].2);
            at += 1;
        }
    }
    let text = format!("LimitRanger plugin set: {}", texts.join("; "));
    let fields = metadata::of(pod);
    fields.entry("annotations").or_insert_with(|| json!({}))["kubernetes.io/limit-ranger"] = json!(text);
}

fn check_pod(limit: &Value, pod: &Value, problems: &mut Vec<String>) {
    let sort = limit["type"].as_str().unwrap_or_default();
    match sort {
        "Container" => {
            for list in ["containers", "initContainers"] {
                for container in pod["spec"][list].as_array().into_iter().flatten() {
                    let own = [&container["resources"]["requests"], &container["resources"]["limits"]].map(amounts);
                    check(sort, limit, &own, problems);
                }
            }
        }
        "Pod" => {
            let of_pod = |list: &str| -> Amounts {
                let mut names: Vec<String> = builtin::resource_names(&pod["spec"], list);
                names.extend(amounts(&pod["spec"]["resources"][list]).into_keys());
                let amount = |name: String| {
                    let own = pod["spec"]["resources"][list][&name].as_str().and_then(|text| text.parse().ok());
                    let own = own.filter(|_| matches!(name.as_str(), "cpu" | "memory"));
                    Some((name.clone(), own.or_else(|| builtin::aggregate(&pod["spec"], list, &name))?))
                };
                names.into_iter().filter_map(amount).collect()
            };
            check(sort, limit, &[of_pod("requests"), of_pod("limits")], problems);
        }
        _ => {}
    }
}

fn check_claim(limit: &Value, claim: &Value, problems: &mut Vec<String>) {
    let sort = limit["type"].as_str().unwrap_or_default();
    if sort != "PersistentVolumeClaim" {
        return;
    }
    let requests = amounts(&claim["spec"]["resources"]["requests"]);
    for (name, least) in amounts(&limit["min"]) {
        problems.extend(minimum(sort, &name, least, [requests.get(&name), None]));
    }
    for (name, most) in amounts(&limit["max"]) {
        match requests.get(&name) {
            None => problems.push(format!("maximum {name} usage per {sort} is {most}.  No request is specified")),
            Some(asked) if *asked > most => {
                problems.push(format!("maximum {name} usage per {sort} is {most}, but request is {asked}"));
            }
            Some(_) => {}
        }
    }
}

fn check(sort: &str, limit: &Value, [requests, limits]: &[Amounts; 2], problems: &mut Vec<String>) {
    for (name, least) in amounts(&limit["min"]) {
        problems.extend(minimum(sort, &name, least, [requests.get(&name), limits.get(&name)]));
    }
    for (name, most) in amounts(&limit["max"]) {
        let is = format!("maximum {name} usage per {sort} is {most}");
        match (requests.get(&name), limits.get(&name)) {
            (_, None) => problems.push(format!("{is}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => problems.push(format!("{is}, but limit is {limit}")),
            (Some(asked), _) if *asked > most => problems.push(format!("{is}, but request is {asked}")),
            _ => {}
        }
    }
    for (name, ratio) in amounts(&limit["maxLimitRequestRatio"]) {
        let is = format!("{name} max limit to request ratio per {sort} is {ratio}");
        let value = |amounts: &Amounts| amounts.get(&name).filter(|amount| !amount.is_zero()).copied();
        match (value(requests), value(limits)) {
            (None, _) => problems.push(format!("{is}, but no request is specified or request is 0")),
            (_, None) => problems.push(format!("{is}, but no limit is specified or limit is 0")),
            (Some(asked), Some(limit)) => {
                let found = limit.as_f64_approximate() / asked.as_f64_approximate();
                if found > ratio.as_f64_approximate() {
                    problems.push(format!("{is}, but provided ratio is {found:.6}"));
                }
            }
        }
    }
}

fn minimum(sort: &str, name: &str, least: Quantity, [asked, limit]: [Option<&Quantity>; 2]) -> Option<String> {
    let is = format!("minimum {name} usage per {sort} is {least}");
    match (asked, limit) {
        (None, _) => Some(format!("{is}.  No request is specified")),
        (Some(asked), _) if *asked < least => Some(format!("{is}, but request is {asked}")),
        (_, Some(limit)) if *limit < least => Some(format!("{is}, but limit is {limit}")),
        _ => None,
    }
}

/// Reads amounts of resources.
fn amounts(list: &Value) -> Amounts {
    let list = list.as_object().into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}
