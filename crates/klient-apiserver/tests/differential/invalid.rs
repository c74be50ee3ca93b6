//! Sequences of requests with mutated objects, to find missing rules of validation.
//!
//! Requests are dry runs, so that each is about the same stored object. A seed gives the same sequence on any server.

use serde_json::{Value, json};

use crate::{
    mutations::{Base, bases},
    objects::Random,
    script::Step,
};

/// A sequence of requests about one kind.
pub struct Sequence {
    pub kind: String,
    pub steps: Vec<Step>,
    /// The places that were mutated, for each step.
    pub changed: Vec<String>,
}

/// Returns the sequence of a seed. `only` limits the kinds to those whose name has this text.
pub fn sequence(seed: u64, only: Option<&str>) -> Sequence {
    let mut random = Random::new(seed);
    let known: Vec<Base> =
        bases().into_iter().filter(|base| only.is_none_or(|only| base.kind.contains(only))).collect();
    let chances: Vec<usize> = known
        .iter()
        .enumerate()
        .flat_map(|(index, base)| std::iter::repeat_n(index, usize::try_from(base.weight).unwrap_or(1)))
        .collect();
    let base = &known[random.pick(&chances)];
    let mut made = Made { steps: Vec::new(), changed: Vec::new() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${ns}"}});
    made.push("POST", "/api/v1/namespaces", namespace, "");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    made.push("POST", "/api/v1/namespaces/${ns}/serviceaccounts", account, "");
    let name = base.object["metadata"]["name"].as_str().unwrap_or_default();
    let one = format!("{}/{name}", base.path);
    // Controllers of the real server change the version of a new definition at some time.
    let is_definition = base.kind == "definitions";
    match random.pick(&[0, 0, 1, 1, 2]) {
        mode if mode == 0 || is_definition => {
            let target = format!("{}?dryRun=All", base.path);
            made.push("POST", &target, base.object.clone(), "nothing");
            for _ in 0..LENGTH {
                let (object, changed) = base.mutated(&mut random, &base.object, None);
                made.push("POST", &target, object, &changed);
            }
        }
        2 if base.status.is_some() => {
            made.push("POST", &base.path, base.object.clone(), "nothing");
            let mut object = stored(base);
            object["status"] = base.status.clone().unwrap_or_default();
            made.push("PUT", &format!("{one}/status"), object.clone(), "nothing");
            let target = format!("{one}/status?dryRun=All");
            for _ in 0..LENGTH {
                let (object, changed) = base.mutated(&mut random, &object, Some("status"));
                made.push("PUT", &target, without_version(object), &changed);
            }
        }
        _ => {
            made.push("POST", &base.path, base.object.clone(), "nothing");
            let target = format!("{one}?dryRun=All");
            for _ in 0..LENGTH {
                let (object, changed) = base.mutated(&mut random, &stored(base), None);
                made.push("PUT", &target, object, &changed);
            }
        }
    }
    for (index, step) in made.steps.iter_mut().enumerate() {
        step.id = format!("{seed}/{index}");
    }
    Sequence { kind: base.kind.clone(), steps: made.steps, changed: made.changed }
}

struct Made {
    steps: Vec<Step>,
    changed: Vec<String>,
}

impl Made {
    fn push(&mut self, method: &str, path: &str, body: Value, changed: &str) {
        // The response to the request that creates the object has its version.
        let save = (method == "POST" && !path.contains("dryRun") && self.steps.len() == 2).then(|| "base".to_owned());
        self.steps.push(Step {
            id: String::new(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: std::collections::BTreeMap::new(),
            body: Some(body),
            save,
            until: None,
            layout: true,
        });
        self.changed.push(changed.to_owned());
    }
}

/// Returns the object of an update, with the version of the stored one.
fn stored(base: &Base) -> Value {
    let mut object = base.object.clone();
    object["metadata"]["resourceVersion"] = json!("${base.metadata.resourceVersion}");
    object
}

fn without_version(mut object: Value) -> Value {
    object["metadata"].as_object_mut().map(|metadata| metadata.remove("resourceVersion"));
    object
}

/// The seeds of sequences that tests send to the real server.
pub const FIXED: std::ops::Range<u64> = 11_002..11_011;
/// The number of mutated objects in a sequence.
pub const LENGTH: usize = 40;
