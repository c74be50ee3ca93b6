//! Random sequences of requests. A seed gives the same sequence on any server.
//!
//! A sequence depends on responses only through `${...}`, so that a server that responds differently gets the
//! same requests. Nothing in it waits for a controller, of which the real server has none here.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    objects::{Kind, Random, configuration, object, patch, status},
    real::{Failure, Real},
    script::{Comparable, Step},
};

/// Returns the steps before every sequence, which define a custom kind.
pub fn setup() -> Vec<Step> {
    let parts = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 2}},
        },
    });
    let spec = json!({
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 10},
            "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "blue"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "parts": parts, "copies": {"type": "integer"},
        },
    });
    let status = json!({"type": "object", "properties": {"phase": {"type": "string"}, "copies": {"type": "integer"}}});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.copies", "statusReplicasPath": ".status.copies"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    });
    // The other version lacks a field of the stored one, and has another field and another default.
    let mut other = version.clone();
    other["name"] = json!("v2");
    other["storage"] = json!(false);
    let spec = &mut other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec.as_object_mut().map(|properties| properties.remove("free"));
    spec["weight"] = json!({"type": "integer", "default": 5});
    spec["color"]["default"] = json!("green");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.random.klient.invalid"},
        "spec": {
            "group": "random.klient.invalid", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version, other],
        },
    });
    let mut served = step("GET", "/apis/random.klient.invalid/v1/namespaces/default/widgets");
    served.until = Some(200);
    let made = step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").with(definition);
    vec![made, served]
}

/// Returns the real server's responses to the sequences of some seeds, several at a time.
pub async fn record(
    real: &Arc<Real>,
    seeds: &[u64],
    steps: fn(u64) -> Vec<Step>,
) -> Result<Vec<(u64, Vec<Comparable>)>, Failure> {
    let mut recorded = Vec::new();
    for batch in seeds.chunks(16) {
        let mut asked = JoinSet::new();
        for seed in batch.iter().copied() {
            let real = Arc::clone(real);
            asked.spawn(async move {
                let responses = real.responses(&format!("r-{seed}"), &steps(seed)).await;
                responses.map(|responses| (seed, responses))
            });
        }
        while let Some(one) = asked.join_next().await {
            recorded.push(one??);
        }
    }
    recorded.sort_by_key(|(seed, _)| *seed);
    Ok(recorded)
}

/// Returns the sequence of a seed, with the order of keys in responses.
pub fn sequence_with_layouts(seed: u64) -> Vec<Step> {
    let mut steps = sequence(seed);
    steps.iter_mut().for_each(|step| step.layout = true);
    steps
}

/// Returns the sequence of a seed.
pub fn sequence(seed: u64) -> Vec<Step> {
    let mut sequence = Sequence { random: Random::new(seed), steps: Vec::new(), last: HashMap::new() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${ns}"}});
    sequence.steps.push(step("POST", "/api/v1/namespaces").with(namespace).saved("ns"));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    sequence.steps.push(step("POST", "/api/v1/namespaces/${ns}/serviceaccounts").with(account));
    // Few kinds and names, so that requests affect the same objects.
    let mut kinds = [sequence.random.pick(&Kind::ALL); 2];
    kinds[1] = sequence.random.pick(&Kind::ALL);
    while sequence.steps.len() < LENGTH {
        let kind = sequence.random.pick(&kinds);
        sequence.add(kind);
    }
    for kind in kinds {
        let path =
            format!("{}?watch=true&timeoutSeconds=1&resourceVersion=${{ns.metadata.resourceVersion}}", kind.path());
        let selector = sequence.random.pick(&["", "", "&labelSelector=app%3Da", "&labelSelector=app%21%3Da"]);
        sequence.steps.push(step("GET", &(path + selector)));
    }
    if seed % 3 == 2 {
        mix_versions(seed, &mut sequence.steps);
    }
    for (index, step) in sequence.steps.iter_mut().enumerate() {
        step.id = format!("{seed}/{index}");
    }
    sequence.steps
}

/// Sends some of the requests about custom objects to the other version of their kind.
fn mix_versions(seed: u64, steps: &mut [Step]) {
    let mut random = Random::new(!seed);
    for step in steps.iter_mut().filter(|step| step.path.contains("random.klient.invalid/v1/")) {
        if !random.chance(40) {
            continue;
        }
        step.path = step.path.replace("random.klient.invalid/v1/", "random.klient.invalid/v2/");
        let Some(body @ Value::Object(_)) = &mut step.body else { continue };
        if body["apiVersion"] == "random.klient.invalid/v1" {
            body["apiVersion"] = json!("random.klient.invalid/v2");
        }
        if body["spec"].is_object() && random.chance(40) {
            body["spec"]["weight"] = random.pick(&[json!(5), json!(8), json!("x")]);
        }
    }
}

struct Sequence {
    random: Random,
    steps: Vec<Step>,
    /// The steps of each object, by its path.
    last: HashMap<String, Vec<String>>,
}

impl Sequence {
    fn add(&mut self, kind: Kind) {
        let name = self.random.pick(&["a", "b"]);
        let path = format!("{}/{name}", kind.path());
        match self.random.pick(&[0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 9, 10, 10, 10, 10, 10, 10]) {
            0 => self.create(kind, name),
            1 => self.read(&path),
            2 => self.update(kind, name, &path),
            3 => self.patch(kind, &path),
            4 => self.delete(&path),
            5 => self.list(kind),
            6 => self.delete_collection(kind),
            7 => self.odd(kind, &path),
            8 => self.scale(kind, &path),
            10 => self.apply(kind, name, &path),
            _ => self.status(kind, name, &path),
        }
    }

    /// Adds a step, whose response later steps can refer to.
    fn push(&mut self, about: &str, step: Step) {
        let name = format!("s{}", self.steps.len());
        self.last.entry(about.to_owned()).or_default().push(name.clone());
        self.steps.push(step.saved(&name));
    }

    /// Returns a version of an object: the last, an earlier one, none, or an invalid one.
    fn version(&mut self, path: &str) -> Option<String> {
        let known = self.last.get(path).cloned().unwrap_or_default();
        if known.is_empty() || self.random.chance(30) {
            return self.random.pick(&[None, None, Some("0".to_owned()), Some("nonsense".to_owned())]);
        }
        let chosen = if self.random.chance(70) { known.last().cloned()? } else { self.random.pick(&known) };
        Some(format!("${{{chosen}.metadata.resourceVersion}}"))
    }

    fn write_options(&mut self) -> String {
        let mut options: Vec<&str> = Vec::new();
        if self.random.chance(12) {
            options.push(self.random.pick(&["dryRun=All", "dryRun=All", "dryRun=Some"]));
        }
        if self.random.chance(12) {
            options.push(self.random.pick(&[
                "fieldValidation=Strict",
                "fieldValidation=Ignore",
                "fieldValidation=Odd",
            ]));
        }
        if self.random.chance(40) {
            options.push(self.random.pick(&["fieldManager=m1", "fieldManager=m2", "fieldManager=kubectl-edit"]));
        }
        if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) }
    }

    fn create(&mut self, kind: Kind, name: &str) {
        let mut body = object(&mut self.random, kind, name);
        if self.random.chance(5) {
            body["metadata"]["resourceVersion"] = json!("5");
        }
        if self.random.chance(5) {
            body["metadata"]["namespace"] = json!("${ns}");
        }
        let target = format!("{}{}", kind.path(), self.write_options());
        let about = format!("{}/{name}", kind.path());
        self.push(&about, step("POST", &target).with(body));
    }

    fn read(&mut self, path: &str) {
        let mut read = step("GET", path);
        if self.random.chance(25) {
            read = read.accepting(self.random.pick(&[TABLE, PARTIAL, "application/yaml", "text/csv"]));
        }
        if self.random.chance(10) {
            read.path.push_str(self.random.pick(&["?resourceVersion=0", "?resourceVersion=x", "?pretty=true"]));
        }
        self.steps.push(read);
    }

    fn update(&mut self, kind: Kind, name: &str, path: &str) {
        let mut body = object(&mut self.random, kind, name);
        if let Some(version) = self.version(path) {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        if self.random.chance(8) {
            body["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
        }
        if self.random.chance(5) {
            body["metadata"]["managedFields"] = self.random.pick(&[json!([]), json!([{}])]);
        }
        let target = format!("{path}{}", self.write_options());
        self.push(path, step("PUT", &target).with(body));
    }

    fn patch(&mut self, kind: Kind, path: &str) {
        let (form, body) = patch(&mut self.random, kind);
        let target = format!("{path}{}", self.write_options());
        self.push(path, step("PATCH", &target).with(body).of_type(form));
    }

    fn apply(&mut self, kind: Kind, name: &str, path: &str) {
        let mut options = vec![self.random.pick(&[
            "fieldManager=m1",
            "fieldManager=m1",
            "fieldManager=m2",
            "fieldManager=m2",
            "fieldManager=m3",
            "fieldManager=kubectl",
            "fieldManager=",
        ])];
        if self.random.chance(40) {
            options.push("force=true");
        }
        if self.random.chance(8) {
            options.push(self.random.pick(&["dryRun=All", "fieldValidation=Strict"]));
        }
        let mut body = configuration(&mut self.random, kind, name);
        let mut target = path.to_owned();
        // A status update of a missing service creates an incomplete one on the real server.
        if kind.has_status() && kind != Kind::Service && self.random.chance(20) {
            target.push_str("/status");
            body["status"] = status(&mut self.random, kind);
            if self.random.chance(70) {
                body.as_object_mut().map(|body| body.remove("spec"));
            }
        } else if kind.has_scale() && self.random.chance(15) {
            target.push_str("/scale");
            body = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name},
                "spec": {"replicas": self.random.pick(&[1, 2, 6])},
            });
        } else if self.random.chance(5)
            && let Some(version) = self.version(path)
        {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        let target = format!("{target}?{}", options.join("&"));
        self.push(path, step("PATCH", &target).with(body).of_type(crate::objects::APPLY));
    }

    fn delete(&mut self, path: &str) {
        let known = self.last.get(path).and_then(|steps| steps.last()).cloned().unwrap_or_else(|| "ns".to_owned());
        let options = self.random.pick(&[
            Value::Null,
            Value::Null,
            json!({}),
            json!({"propagationPolicy": "Background"}),
            json!({"propagationPolicy": "Sideways"}),
            json!({"gracePeriodSeconds": 0}),
            json!({"gracePeriodSeconds": 3}),
            json!({"dryRun": ["All"]}),
            json!({"preconditions": {"uid": format!("${{{known}.metadata.uid}}")}}),
            json!({"preconditions": {"resourceVersion": format!("${{{known}.metadata.resourceVersion}}")}}),
            json!({"preconditions": {"uid": "another"}}),
            json!({"kind": "DeleteOptions", "apiVersion": "v1"}),
        ]);
        let delete = step("DELETE", path);
        self.steps.push(if options.is_null() { delete } else { delete.with(options) });
    }

    fn list(&mut self, kind: Kind) {
        let query = self.random.pick(&[
            "",
            "?labelSelector=app%3Da",
            "?labelSelector=app%20in%20(a,b),tier",
            "?labelSelector=%21app",
            "?labelSelector=app%3D%3D%3Da",
            "?labelSelector=app%3Da%3Db",
            "?labelSelector=-x",
            "?labelSelector=a/b/c",
            "?labelSelector=app%20in%20(a,%20-b)",
            "?labelSelector=app%3Eone",
            "?fieldSelector=metadata.name%3Da",
            "?fieldSelector=metadata.name%21%3Da,metadata.namespace%3D${ns}",
            "?fieldSelector=spec.nonsense%3Da",
            "?limit=1",
            "?limit=x",
            "?resourceVersion=0",
            "?resourceVersionMatch=Exact",
            "?continue=nonsense",
        ]);
        let list = step("GET", &format!("{}{query}", kind.path()));
        self.steps.push(if self.random.chance(25) {
            list.accepting(self.random.pick(&[TABLE, PARTIAL_LIST]))
        } else {
            list
        });
    }

    fn delete_collection(&mut self, kind: Kind) {
        let query =
            self.random.pick(&["", "?labelSelector=app%3Da", "?fieldSelector=metadata.name%3Db", "?dryRun=All"]);
        self.steps.push(step("DELETE", &format!("{}{query}", kind.path())));
    }

    fn status(&mut self, kind: Kind, name: &str, path: &str) {
        if !kind.has_status() {
            return self.read(path);
        }
        let target = format!("{path}/status");
        // A status update of a missing service creates an incomplete one on the real server.
        if kind == Kind::Service || self.random.chance(60) {
            let body = json!({"status": status(&mut self.random, kind)});
            let form = if kind == Kind::Widget { crate::objects::MERGE } else { crate::objects::STRATEGIC };
            return self.push(path, step("PATCH", &target).with(body).of_type(form));
        }
        let mut body = object(&mut self.random, kind, name);
        body["status"] = status(&mut self.random, kind);
        if let Some(version) = self.version(path) {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        self.push(path, step("PUT", &target).with(body));
    }

    fn scale(&mut self, kind: Kind, path: &str) {
        if !kind.has_scale() {
            return self.read(path);
        }
        let target = format!("{path}/scale");
        if self.random.chance(30) {
            return self.steps.push(step("GET", &target));
        }
        let replicas = self.random.pick(&[0, 2, 5, -1]);
        self.steps.push(if self.random.chance(50) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let body = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": "${ns}"},
                "spec": {"replicas": replicas},
            });
            step("PUT", &target).with(body)
        } else {
            step("PATCH", &target).with(json!({"spec": {"replicas": replicas}})).of_type(crate::objects::MERGE)
        });
    }

    /// Adds requests that clients do not send on purpose.
    fn odd(&mut self, kind: Kind, path: &str) {
        let collection = kind.path();
        let odd = match self.random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
            0 => step("POST", path).with(json!({})),
            1 => step("PUT", collection).with(json!({})),
            2 => step("POST", collection).with(json!("{\"broken\": ")),
            3 => step("POST", collection).with(json!("[]")),
            4 => step("PUT", path).with(json!("null")),
            5 => step("PATCH", path).with(json!({})).of_type("application/json"),
            6 => step("PATCH", path).with(json!("not json")).of_type(crate::objects::MERGE),
            7 => step("GET", &format!("{path}/nonsense")),
            // The real server allocates the address before it validates the name.
            8 if kind != Kind::Service => step("POST", collection).with(json!("a: b")).of_type("application/yaml"),
            9 => step("POST", collection).with(json!({"metadata": {"name": "n"}})).of_type("text/plain"),
            _ => step("PATCH", path).with(json!({"spec": 1})).of_type(crate::objects::MERGE),
        };
        self.steps.push(odd);
    }
}

fn step(method: &str, path: &str) -> Step {
    Step {
        id: String::new(),
        method: method.to_owned(),
        path: path.to_owned(),
        headers: std::collections::BTreeMap::new(),
        body: None,
        save: None,
        until: None,
        layout: false,
    }
}

impl Step {
    fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    fn saved(mut self, name: &str) -> Self {
        self.save = Some(name.to_owned());
        self
    }

    fn of_type(mut self, content_type: &str) -> Self {
        self.headers.insert("content-type".to_owned(), content_type.to_owned());
        self
    }

    fn accepting(mut self, accept: &str) -> Self {
        self.headers.insert("accept".to_owned(), accept.to_owned());
        self
    }
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The length of a sequence without its watches.
pub const LENGTH: usize = 34;
/// The seeds whose responses are recorded: some, and those that found bugs.
pub const RECORDED: &[std::ops::Range<u64>] = &[1..49, 10_203..10_204, 71_002_229..71_002_230];
/// The seeds that are compared with a real server, if there is one.
pub const FIXED: std::ops::Range<u64> = 10_180..10_244;
