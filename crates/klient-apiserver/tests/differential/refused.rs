//! A script of requests that servers refuse, one for each rule of validation.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    invalid::Sequence,
    script::{Comparable, Step},
};

/// The shortest requests that were refused for different reasons.
#[derive(Default)]
pub struct Refused {
    by_rule: BTreeMap<String, Request>,
}

struct Request {
    kind: String,
    size: usize,
    /// The requests that create the object.
    setup: Vec<Step>,
    step: Step,
}

impl Refused {
    /// Adds a request with one cause, if no shorter one has this cause.
    pub fn note(&mut self, sequence: &Sequence, index: usize, response: &Comparable) {
        let step = &sequence.steps[index];
        let causes = response.body["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
        let (422, [cause]) = (response.code, causes) else { return };
        if index < 2 || !step.path.contains("dryRun") {
            return;
        }
        let setup = sequence.steps.iter().skip(2).take_while(|step| !step.path.contains("dryRun"));
        let size = step.body.as_ref().map_or(0, |body| body.to_string().len());
        let part = if step.path.contains("/status?") { "status" } else { "object" };
        let request = Request {
            kind: format!("{} {part} {}", sequence.kind, step.method.to_lowercase()),
            size,
            setup: setup.cloned().collect(),
            step: step.clone(),
        };
        let known = self.by_rule.entry(rule(cause));
        known
            .and_modify(|known| {
                if known.size > size {
                    known.step = request.step.clone();
                    known.kind.clone_from(&request.kind);
                    known.setup.clone_from(&request.setup);
                    known.size = size;
                }
            })
            .or_insert(request);
    }

    /// Returns the script.
    pub fn script(&self) -> String {
        let mut by_kind: BTreeMap<&str, Vec<(&str, &Request)>> = BTreeMap::new();
        for (rule, request) in self.by_rule.iter().filter(|(_, request)| request.size < MAX_SIZE) {
            by_kind.entry(&request.kind).or_default().push((rule, request));
        }
        let mut lines = Vec::new();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${ns}"}});
        lines.push(json!({"id": "namespace", "method": "POST", "path": "/api/v1/namespaces", "body": namespace}));
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let accounts = "/api/v1/namespaces/${ns}/serviceaccounts";
        lines.push(json!({"id": "account", "method": "POST", "path": accounts, "body": account}));
        for (kind, requests) in by_kind {
            // Several kinds have one name for their object.
            let name = kind.replace(' ', "-");
            let setup = requests.first().map(|(_, request)| request.setup.iter()).into_iter().flatten();
            let setup = setup.map(|step| (format!("{kind}: an object"), step));
            let refused = requests.iter().map(|(rule, request)| (format!("{kind}: {rule}"), &request.step));
            lines.extend(setup.chain(refused).map(|(id, step)| line(&id, step, &name)));
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    }
}

/// Returns a step of the script, whose object has a name of its own.
fn line(id: &str, step: &Step, name: &str) -> Value {
    let rename = |text: String| {
        text.replace("\"base\"", &format!("\"{name}\""))
            .replace("/base", &format!("/{name}"))
            .replace("${ns}-base", &format!("${{ns}}-{name}"))
            .replace("${base.", &format!("${{{name}."))
    };
    let body = step.body.as_ref().map(|body| rename(body.to_string()));
    let body: Value = body.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut line = json!({"id": id, "method": step.method, "path": rename(step.path.clone()), "body": body});
    if step.save.is_some() {
        line["save"] = json!(name);
    }
    line
}

/// Returns a cause without the values and numbers that it has.
fn rule(cause: &Value) -> String {
    let text = |name: &str| cause[name].as_str().unwrap_or_default();
    let field: String = text("field").chars().filter(|c| !c.is_ascii_digit()).collect();
    let last: Vec<&str> = field.rsplit('.').take(2).collect();
    let message = text("message");
    let detail = message.rsplit_once("\": ").map_or(message, |(_, detail)| detail);
    let detail: String = detail.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
    format!("{}.{} {}: {detail}", last.get(1).unwrap_or(&""), last[0], text("reason"))
}

/// The limit of the size of a request's body.
const MAX_SIZE: usize = 4000;
