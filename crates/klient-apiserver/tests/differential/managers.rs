//! Sequences of writes by several managers to the same objects, for every kind of `valid.json`.
//!
//! Writes are stored, so that each depends on those before it. A seed gives the same sequence on any server.

use serde_json::{Map, Value, json};

use crate::{
    invalid::Sequence,
    mutations::{Base, bases},
    objects::{APPLY, JSON, MERGE, Random, STRATEGIC, thin},
    script::Step,
};

/// Returns the sequence of a seed. `only` limits the kinds to those whose name has this text.
pub fn sequence(seed: u64, only: Option<&str>) -> Sequence {
    let mut random = Random::new(seed);
    let known: Vec<Base> = bases()
        .into_iter()
        // Controllers of the real server change a new definition at some time.
        .filter(|base| base.kind != "definitions" && only.is_none_or(|only| base.kind.contains(only)))
        .collect();
    let at = random.pick(&(0..known.len()).collect::<Vec<_>>());
    let versions = versions_of(&known, &known[at]);
    let mut writes = Writes { base: &known[at], random, steps: Vec::new() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${ns}"}});
    writes.push("POST", "/api/v1/namespaces".to_owned(), "", Some(namespace));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    writes.push("POST", "/api/v1/namespaces/${ns}/serviceaccounts".to_owned(), "", Some(account));
    while writes.steps.len() < LENGTH {
        if versions.len() > 1 {
            writes.base = writes.random.pick(&versions);
        }
        writes.add();
    }
    for (index, step) in writes.steps.iter_mut().enumerate() {
        step.id = format!("{seed}/{index}");
    }
    let changed = writes.steps.iter().map(described).collect();
    Sequence { kind: writes.base.kind.clone(), steps: writes.steps, changed }
}

/// Returns the valid objects of a kind in all versions, if it has several: all versions of an object are the same object.
fn versions_of<'a>(known: &'a [Base], base: &'a Base) -> Vec<&'a Base> {
    let name_of = |base: &Base| {
        let version = base.object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
        (group, base.object["kind"].clone())
    };
    let versions: Vec<&Base> = known.iter().filter(|other| name_of(other) == name_of(base)).collect();
    if versions.iter().all(|other| other.path == base.path) { vec![base] } else { versions }
}

fn described(step: &Step) -> String {
    let form = step.headers.get("content-type").map(String::as_str).unwrap_or_default();
    format!("{} {form} {}", step.path, step.body.as_ref().map(Value::to_string).unwrap_or_default())
}

struct Writes<'a> {
    base: &'a Base,
    random: Random,
    steps: Vec<Step>,
}

impl Writes<'_> {
    fn add(&mut self) {
        match self.random.pick(&[0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9]) {
            0 => self.create(),
            1 => self.update(),
            2 => self.apply(),
            3 => self.patch(MERGE),
            4 => self.patch(STRATEGIC),
            5 => self.json_patch(),
            6 => self.status(),
            7 => self.scale(),
            8 => self.delete(),
            _ => self.read(),
        }
    }

    fn push(&mut self, method: &str, path: String, form: &str, body: Option<Value>) {
        let mut headers = std::collections::BTreeMap::new();
        if !form.is_empty() {
            headers.insert("content-type".to_owned(), form.to_owned());
        }
        self.steps.push(Step {
            id: String::new(),
            method: method.to_owned(),
            path,
            headers,
            body,
            save: None,
            until: None,
            layout: true,
        });
    }

    fn name(&mut self) -> String {
        let name = self.base.object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{name}{}", self.random.pick(&["", "", "", "-b"]))
    }

    /// Returns the path of an object, or of a part of it.
    fn one(&mut self, part: &str) -> (String, String) {
        let name = self.name();
        (format!("{}/{name}{part}", self.base.path), name)
    }

    /// Returns options of a write.
    fn options(&mut self) -> String {
        let manager = self.random.pick(&["m1", "m2", "m3", "kubectl", "kubectl-client-side-apply"]);
        let other = self.random.pick(&["", "", "", "", "", "", "&dryRun=All", "&fieldValidation=Strict"]);
        format!("?fieldManager={manager}{other}")
    }

    /// Returns an object of the kind: the valid one, or a mutation of it.
    fn object(&mut self, name: &str, mutations: u64) -> Value {
        let mut object = self.base.object.clone();
        if let (Some(status), true) = (&self.base.status, self.random.chance(15)) {
            object["status"] = status.clone();
        }
        if self.random.chance(mutations) {
            object = self.base.mutated(&mut self.random, &object, None).0;
        }
        // A limit range without a name gets a UID as name, so that the order of lists is random.
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = json!(name);
        object
    }

    fn create(&mut self) {
        let name = self.name();
        let object = self.object(&name, 30);
        let target = format!("{}{}", self.base.path, self.options());
        self.push("POST", target, "", Some(object));
    }

    fn update(&mut self) {
        let (path, name) = self.one("");
        let mut object = self.object(&name, 60);
        if self.random.chance(30) {
            thin(&mut self.random, &mut object, 0);
        }
        if self.random.chance(5)
            && let Some(metadata) = object.get_mut("metadata").filter(|metadata| metadata.is_object())
        {
            metadata["managedFields"] = self.random.pick(&[json!([]), json!([{}])]);
        }
        let target = path + &self.options();
        self.push("PUT", target, "", Some(object));
    }

    fn apply(&mut self) {
        let (path, name) = self.one("");
        let mut object = self.object(&name, 35);
        thin(&mut self.random, &mut object, 0);
        let force = if self.random.chance(40) { "&force=true" } else { "" };
        let target = path + &self.options() + force;
        self.push("PATCH", target, APPLY, Some(object));
    }

    /// Returns a few fields of a mutated object. Some of them are null.
    fn part(&mut self) -> Value {
        let name = self.name();
        let mut object = self.object(&name, 70);
        self.reduce(&mut object, 0);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("name");
        }
        object
    }

    fn reduce(&mut self, value: &mut Value, depth: u64) {
        match value {
            Value::Object(fields) => {
                let old = std::mem::replace(fields, Map::new());
                for (name, mut inner) in old {
                    let is_key = depth > 1 && name == "name";
                    if !is_key && self.random.chance(60 - 10 * depth.min(5)) {
                        continue;
                    }
                    if !is_key && self.random.chance(6) {
                        inner = Value::Null;
                    }
                    self.reduce(&mut inner, depth + 1);
                    fields.insert(name, inner);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.reduce(item, depth + 1)),
            _ => {}
        }
    }

    fn patch(&mut self, form: &str) {
        let (path, _) = self.one("");
        let body = self.part();
        let target = path + &self.options();
        self.push("PATCH", target, form, Some(body));
    }

    fn json_patch(&mut self) {
        let (path, name) = self.one("");
        let object = self.object(&name, 70);
        let mut places = vec![("/metadata/labels/app".to_owned(), json!("x"))];
        pointers(&object, "", &mut places);
        let count = self.random.pick(&[1, 1, 2]);
        let operations: Vec<Value> = (0..count)
            .map(|_| {
                let (at, value) = self.random.pick(&places);
                match self.random.pick(&[0, 1, 1, 2]) {
                    0 => json!({"op": "remove", "path": at}),
                    1 => json!({"op": "replace", "path": at, "value": value}),
                    _ => json!({"op": "add", "path": at, "value": value}),
                }
            })
            .collect();
        let target = path + &self.options();
        self.push("PATCH", target, JSON, Some(json!(operations)));
    }

    fn status(&mut self) {
        let Some(status) = self.base.status.clone() else { return self.read() };
        // A status update of a missing service creates an incomplete one on the real server.
        if self.base.kind.starts_with("services") {
            return self.read();
        }
        let (path, name) = self.one("/status");
        let mut object = self.base.object.clone();
        object["status"] = status;
        if self.random.chance(50) {
            object = self.base.mutated(&mut self.random, &object, Some("status")).0;
        }
        object["metadata"]["name"] = json!(name);
        match self.random.pick(&[0, 1, 1, 2]) {
            0 => {
                let target = path + &self.options();
                self.push("PUT", target, "", Some(object));
            }
            1 => {
                thin(&mut self.random, &mut object, 0);
                if let (Some(fields), true) = (object.as_object_mut(), self.random.chance(70)) {
                    fields.remove("spec");
                }
                let force = if self.random.chance(40) { "&force=true" } else { "" };
                let target = path + &self.options() + force;
                self.push("PATCH", target, APPLY, Some(object));
            }
            _ => {
                let mut status = object["status"].take();
                self.reduce(&mut status, 2);
                let form = self.random.pick(&[MERGE, STRATEGIC]);
                let target = path + &self.options();
                self.push("PATCH", target, form, Some(json!({"status": status})));
            }
        }
    }

    fn scale(&mut self) {
        if !["deployments", "statefulsets", "replicasets"].contains(&self.base.kind.as_str()) {
            return self.read();
        }
        let (path, name) = self.one("/scale");
        let scale = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name},
            "spec": {"replicas": self.random.pick(&[0, 1, 2, 6])},
        });
        let target = path + &self.options();
        match self.random.pick(&[0, 1, 2, 3]) {
            0 => self.push("PUT", target, "", Some(scale)),
            1 => self.push("PATCH", target, MERGE, Some(json!({"spec": scale["spec"]}))),
            2 => self.push("PATCH", target + "&force=true", APPLY, Some(scale)),
            _ => self.push("PATCH", target, APPLY, Some(scale)),
        }
    }

    fn delete(&mut self) {
        let (path, _) = self.one("");
        let options = self.random.pick(&[Value::Null, json!({"dryRun": ["All"]}), json!({"gracePeriodSeconds": 0})]);
        self.push("DELETE", path, "", Some(options).filter(|options| !options.is_null()));
    }

    fn read(&mut self) {
        let (path, _) = self.one("");
        // Other sequences write objects without a namespace, too.
        let is_namespaced = self.base.path.contains("${ns}");
        let target = if is_namespaced && self.random.chance(50) { self.base.path.clone() } else { path };
        self.push("GET", target, "", None);
        if self.random.chance(60)
            && let Some(step) = self.steps.last_mut()
        {
            step.headers.insert("accept".to_owned(), "application/json;as=Table;g=meta.k8s.io;v=v1".to_owned());
        }
    }
}

/// Collects the places of an object, with their values.
fn pointers(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    if !at.is_empty() && at != "/metadata" && at != "/metadata/name" {
        found.push((at.to_owned(), value.clone()));
    }
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                pointers(inner, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// The number of requests of a sequence.
pub const LENGTH: usize = 36;
