//! Random objects of a few kinds: most are valid, some have one error.

use serde_json::{Value, json};

/// A generator whose numbers depend on its seed only.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns one of the items.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = self.next() % from.len() as u64;
        from[usize::try_from(at).unwrap_or_default()].clone()
    }

    /// Returns true with a probability in percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// A kind and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ConfigMap,
    Secret,
    Pod,
    Service,
    Deployment,
    Widget,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::ConfigMap, Self::Secret, Self::Pod, Self::Service, Self::Deployment, Self::Widget];

    /// Returns the path of the collection in a script's namespace.
    pub fn path(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/${ns}/configmaps",
            Self::Secret => "/api/v1/namespaces/${ns}/secrets",
            Self::Pod => "/api/v1/namespaces/${ns}/pods",
            Self::Service => "/api/v1/namespaces/${ns}/services",
            Self::Deployment => "/apis/apps/v1/namespaces/${ns}/deployments",
            Self::Widget => "/apis/random.klient.invalid/v1/namespaces/${ns}/widgets",
        }
    }

    pub fn has_status(self) -> bool {
        !matches!(self, Self::ConfigMap | Self::Secret)
    }

    pub fn has_scale(self) -> bool {
        matches!(self, Self::Deployment | Self::Widget)
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Secret => ("v1", "Secret"),
            Self::Pod => ("v1", "Pod"),
            Self::Service => ("v1", "Service"),
            Self::Deployment => ("apps/v1", "Deployment"),
            Self::Widget => ("random.klient.invalid/v1", "Widget"),
        }
    }
}

/// Returns a random object of a kind.
pub fn object(random: &mut Random, kind: Kind, name: &str) -> Value {
    let (api_version, kind_name) = kind.names();
    let mut object = json!({"apiVersion": api_version, "kind": kind_name, "metadata": {"name": name}});
    if random.chance(60) {
        object["metadata"]["labels"] = random.pick(&[json!({"app": "a"}), json!({"app": "b", "tier": "x"}), json!({})]);
    }
    if random.chance(20) {
        object["metadata"]["annotations"] = json!({"note": random.pick(&["one", "two", ""])});
    }
    if random.chance(15) {
        object["metadata"]["finalizers"] =
            random.pick(&[json!(["klient.invalid/a"]), json!(["klient.invalid/a", "klient.invalid/b"]), json!([])]);
    }
    fill(random, kind, &mut object);
    if random.chance(15) {
        spoil(random, kind, &mut object);
    }
    object
}

/// Returns a random configuration to apply: some of the fields of a random object.
pub fn configuration(random: &mut Random, kind: Kind, name: &str) -> Value {
    let mut configuration = object(random, kind, name);
    thin(random, &mut configuration, 0);
    if kind == Kind::Deployment && random.chance(60) {
        // A selector is immutable, and most configurations of others leave it out.
        configuration["spec"].as_object_mut().map(|spec| spec.remove("selector"));
    }
    if kind == Kind::Widget
        && let Value::Object(metadata) = &mut configuration["metadata"]
    {
        // The real server stores empty maps and lists of custom kinds, and removes them by a later write that changes nothing else.
        metadata.retain(|_, value| !matches!(value, Value::Object(fields) if fields.is_empty()) && *value != json!([]));
    }
    if random.chance(3) {
        configuration["metadata"]["managedFields"] = random.pick(&[json!([]), json!([{}]), Value::Null]);
    }
    if random.chance(3) {
        configuration["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    }
    configuration
}

/// Removes some fields.
pub fn thin(random: &mut Random, value: &mut Value, depth: usize) {
    match value {
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names {
                // The embedded server adds no volume for a token, so that pods must refuse one.
                let is_identity = matches!(
                    name.as_str(),
                    "apiVersion" | "kind" | "metadata" | "name" | "containerPort" | "automountServiceAccountToken"
                );
                if depth > 0 && !is_identity && random.chance(20) {
                    fields.remove(&name);
                } else if let Some(inner) = fields.get_mut(&name) {
                    thin(random, inner, depth + 1);
                }
            }
            // Errors of the real server distinguish empty labels and data from absent ones.
            if depth != 1 {
                fields.retain(|_, value| *value != json!({}));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| thin(random, item, depth + 1)),
        _ => {}
    }
}

fn fill(random: &mut Random, kind: Kind, object: &mut Value) {
    match kind {
        Kind::ConfigMap => {
            object["data"] = random.pick(&[json!({"a": "1"}), json!({"a": "2", "b": "x"}), Value::Null]);
            if random.chance(15) {
                object["immutable"] = json!(random.chance(60));
            }
            if random.chance(10) {
                object["binaryData"] = json!({"raw": "AAEC"});
            }
        }
        Kind::Secret => {
            object["data"] = random.pick(&[json!({"a": "MQ=="}), json!({"b": ""}), Value::Null]);
            if random.chance(30) {
                object["stringData"] = json!({"s": random.pick(&["x", ""])});
            }
            if random.chance(20) {
                object["type"] = json!(random.pick(&["Opaque", "klient.invalid/own", "kubernetes.io/tls"]));
            }
        }
        Kind::Pod => {
            object["spec"] = json!({"containers": containers(random), "automountServiceAccountToken": false});
            if random.chance(25) {
                object["spec"]["nodeName"] = json!(random.pick(&["n1", "n2"]));
            }
            if random.chance(20) {
                object["spec"]["terminationGracePeriodSeconds"] = json!(random.pick(&[0, 5]));
            }
        }
        Kind::Service => {
            object["spec"] = json!({"selector": {"app": "a"}, "ports": [{"port": random.pick(&[80, 443])}]});
            if random.chance(30) {
                object["spec"]["ports"][0]["targetPort"] = random.pick(&[json!("web"), json!(8080)]);
            }
        }
        Kind::Deployment => {
            let labels = json!({"app": random.pick(&["a", "a", "a", "b"])});
            object["spec"] = json!({
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers(random)}},
            });
            if random.chance(50) {
                object["spec"]["replicas"] = json!(random.pick(&[0, 1, 3]));
            }
            if random.chance(20) {
                object["spec"]["strategy"] = random.pick(&[
                    json!({"type": "Recreate"}),
                    json!({"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}),
                ]);
            }
        }
        Kind::Widget => {
            object["spec"] = json!({"size": random.pick(&[0, 1, 7])});
            if random.chance(30) {
                object["spec"]["color"] = json!(random.pick(&["red", "green"]));
            }
            if random.chance(20) {
                object["spec"]["parts"] = json!([{"name": "p", "count": 1}, {"name": "q"}]);
            }
            if random.chance(20) {
                object["spec"]["free"] = json!({"anything": [1, {"goes": null}], "x": 1.5});
            }
            if random.chance(20) {
                object["status"] = json!({"phase": "wished"});
            }
        }
    }
}

fn containers(random: &mut Random) -> Value {
    let mut container = json!({"name": "main", "image": random.pick(&["x", "x:1", "x:latest"])});
    if random.chance(20) {
        container["ports"] = json!([{"containerPort": 80}]);
    }
    if random.chance(20) {
        container["env"] = json!([{"name": "A", "value": random.pick(&["1", "2"])}]);
    }
    if random.chance(20) {
        container["resources"] = random.pick(&[
            json!({"requests": {"cpu": "100m"}}),
            json!({"limits": {"cpu": "0.5", "memory": "1Gi"}}),
            json!({"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {"cpu": "1000m", "memory": "64Mi"}}),
        ]);
    }
    if random.chance(15) { json!([container, {"name": "side", "image": "y"}]) } else { json!([container]) }
}

/// Adds one error.
fn spoil(random: &mut Random, kind: Kind, object: &mut Value) {
    if random.chance(50) {
        return spoil_any(random, object);
    }
    match kind {
        Kind::ConfigMap => object["data"] = random.pick(&[json!({"a b": "1"}), json!({"a": 1}), json!([])]),
        Kind::Secret => {
            object["data"] = random.pick(&[json!({"a": "not base64!"}), json!({"a": 1}), json!({"..": "MQ=="})]);
        }
        Kind::Pod => match random.pick(&[0, 1, 2, 3, 4]) {
            0 => object["spec"]["containers"] = json!([]),
            1 => object["spec"]["containers"] = json!([{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]),
            2 => object["spec"]["containers"][0]["image"] = json!(""),
            3 => object["spec"]["restartPolicy"] = json!("Sometimes"),
            _ => object["spec"]["containers"][0]["name"] = json!("Not_A_Label"),
        },
        Kind::Service => {
            object["spec"]["ports"] = random.pick(&[json!([]), json!([{"port": 0}]), json!([{"port": 70000}])]);
        }
        Kind::Deployment => match random.pick(&[0, 1, 2, 3]) {
            0 => object["spec"]["selector"] = json!({"matchLabels": {"app": "other"}}),
            1 => object["spec"]["replicas"] = json!(-1),
            2 => object["spec"]["template"]["spec"]["containers"] = json!([]),
            _ => drop(object["spec"].as_object_mut().and_then(|spec| spec.remove("selector"))),
        },
        Kind::Widget => match random.pick(&[0, 1, 2, 3, 4]) {
            0 => object["spec"]["size"] = json!(11),
            1 => object["spec"]["size"] = json!("large"),
            2 => object["spec"]["color"] = json!("mauve"),
            3 => object["spec"] = json!({"color": "red"}),
            _ => object["spec"]["parts"] = json!([{"name": "p"}, {"name": "p"}]),
        },
    }
}

fn spoil_any(random: &mut Random, object: &mut Value) {
    match random.pick(&[0, 1, 2, 3, 4, 5, 6, 7]) {
        0 => object["metadata"]["name"] = json!("Not A Name"),
        1 => object["metadata"]["labels"] = json!({"a b": "c"}),
        2 => object["metadata"]["labels"] = json!({"a": "-"}),
        3 => object["metadata"]["finalizers"] = json!(["plain"]),
        4 => object["kind"] = json!("Gizmo"),
        5 => object["apiVersion"] = json!("v2"),
        6 => object["metadata"]["namespace"] = json!("elsewhere"),
        _ => object["unknown"] = json!({"field": 1}),
    }
}

/// Returns a random patch: its content type and body.
pub fn patch(random: &mut Random, kind: Kind) -> (&'static str, Value) {
    let forms: &[&str] = if kind == Kind::Widget { &[MERGE, JSON] } else { &[MERGE, JSON, STRATEGIC] };
    match random.pick(forms) {
        JSON => (JSON, json_patch(random)),
        form => (form, merge_patch(random, kind)),
    }
}

fn merge_patch(random: &mut Random, kind: Kind) -> Value {
    let any = [
        json!({"metadata": {"labels": {"app": "b"}}}),
        json!({"metadata": {"labels": {"app": null, "tier": "y"}}}),
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"annotations": {"note": "patched"}}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"finalizers": ["klient.invalid/c"]}}),
        json!({"metadata": {"name": "other"}}),
        json!({"metadata": {"resourceVersion": "1"}}),
        json!({"metadata": {"creationTimestamp": null, "generation": 9}}),
        json!({"metadata": {"labels": {"bad key!": "x"}}}),
        json!({}),
        json!({"unknown": 1}),
        json!({"metadata": "text"}),
    ];
    if random.chance(50) {
        return random.pick(&any);
    }
    match kind {
        Kind::ConfigMap => {
            random.pick(&[json!({"data": {"a": "9", "b": null}}), json!({"data": null}), json!({"immutable": true})])
        }
        Kind::Secret => {
            random.pick(&[json!({"data": {"a": "Mg=="}}), json!({"stringData": {"t": "u"}}), json!({"type": "other"})])
        }
        Kind::Pod => random.pick(&[
            json!({"spec": {"containers": [{"name": "main", "image": "z"}]}}),
            json!({"spec": {"activeDeadlineSeconds": 60}}),
            json!({"spec": {"terminationGracePeriodSeconds": 7}}),
        ]),
        Kind::Service => {
            random.pick(&[json!({"spec": {"selector": {"app": "b"}}}), json!({"spec": {"ports": [{"port": 81}]}})])
        }
        Kind::Deployment => random.pick(&[
            json!({"spec": {"replicas": 4}}),
            json!({"spec": {"replicas": null}}),
            json!({"spec": {"paused": true}}),
            json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "z"}]}}}}),
        ]),
        Kind::Widget => random.pick(&[
            json!({"spec": {"size": 3}}),
            json!({"spec": {"size": null}}),
            json!({"spec": {"color": "blue"}}),
            json!({"spec": {"free": {"x": null, "y": {"z": 1}}}}),
            json!({"status": {"phase": "patched"}}),
        ]),
    }
}

fn json_patch(random: &mut Random) -> Value {
    random.pick(&[
        json!([{"op": "add", "path": "/metadata/labels", "value": {"app": "c"}}]),
        json!([{"op": "add", "path": "/metadata/labels/new", "value": "x"}]),
        json!([{"op": "remove", "path": "/metadata/labels/app"}]),
        json!([{"op": "replace", "path": "/metadata/labels/app", "value": "r"}]),
        json!([{"op": "test", "path": "/metadata/labels/app", "value": "a"}, {"op": "add", "path": "/metadata/annotations", "value": {"tested": "yes"}}]),
        json!([{"op": "copy", "from": "/metadata/name", "path": "/metadata/generateName"}]),
        json!([{"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"}]),
        json!([{"op": "remove", "path": "/metadata/finalizers/0"}]),
        json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "klient.invalid/d"}]),
        json!([{"op": "add", "path": "/spec/replicas", "value": 2}]),
        json!([{"op": "jump", "path": "/metadata"}]),
        json!([{"op": "remove"}]),
        json!([]),
    ])
}

/// Returns a random status.
pub fn status(random: &mut Random, kind: Kind) -> Value {
    match kind {
        Kind::Pod => random.pick(&[
            json!({"phase": "Running"}),
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "172.16.0.1"}),
            json!({"phase": "Failed", "reason": "Evicted", "message": "no room"}),
        ]),
        Kind::Service => json!({"loadBalancer": {}}),
        Kind::Deployment => {
            random.pick(&[json!({"replicas": 2, "readyReplicas": 1}), json!({"observedGeneration": 1}), json!({})])
        }
        _ => random.pick(&[
            json!({"phase": "fine"}),
            json!({"phase": 7}),
            json!({"phase": "fine", "pruned": 1}),
            json!({"copies": 2}),
        ]),
    }
}

pub const MERGE: &str = "application/merge-patch+json";
pub const JSON: &str = "application/json-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
