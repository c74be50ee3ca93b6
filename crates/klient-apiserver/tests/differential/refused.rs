//! A script of requests that servers refuse, one for each rule of validation.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use crate::{
    invalid::Sequence,
    script::{Comparable, Step},
};

/// The requests that were refused for different reasons.
#[derive(Default)]
pub struct Refused {
    rules: HashSet<String>,
    /// The requests by kind: those that create the objects, and those that are refused.
    by_kind: BTreeMap<String, (Vec<Step>, Vec<Step>)>,
}

impl Refused {
    /// Adds a request, if its response is the first one with one of its causes.
    pub fn note(&mut self, sequence: &Sequence, index: usize, response: &Comparable) {
        let causes = response.body["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
        let step = &sequence.steps[index];
        if response.code != 422
            || index < 2
            || causes.len() > 3
            || step.method == "POST" && !step.path.contains("dryRun")
        {
            return;
        }
        let mut is_new = false;
        for cause in causes {
            is_new |= self.rules.insert(format!("{} {} {}", sequence.kind, step.method, rule(cause)));
        }
        if !is_new {
            return;
        }
        let (setup, refused) = self.by_kind.entry(format!("{} {}", sequence.kind, is_status(step))).or_default();
        if setup.is_empty() {
            let own = sequence.steps.iter().skip(2).take_while(|step| !step.path.contains("dryRun"));
            setup.extend(own.cloned());
        }
        refused.push(step.clone());
    }

    /// Returns the script.
    pub fn script(&self) -> String {
        let mut lines = Vec::new();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${ns}"}});
        lines.push(json!({"id": "namespace", "method": "POST", "path": "/api/v1/namespaces", "body": namespace}));
        for (kind, (setup, refused)) in &self.by_kind {
            // Several kinds have one name for their object.
            let unique = kind.replace(' ', "-");
            for (index, step) in setup.iter().chain(refused).enumerate() {
                let rename = |text: String| {
                    text.replace("\"base\"", &format!("\"{unique}\""))
                        .replace("/base", &format!("/{unique}"))
                        .replace("${ns}-base", &format!("${{ns}}-{unique}"))
                        .replace("${base.", &format!("${{{unique}."))
                };
                let body = step.body.as_ref().map(|body| rename(body.to_string()));
                let body: Value = body.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                let mut line = json!({
                    "id": format!("{kind} {index}"), "method": step.method, "path": rename(step.path.clone()), "body": body,
                });
                if step.save.is_some() {
                    line["save"] = json!(unique);
                }
                lines.push(line);
            }
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    }
}

fn is_status(step: &Step) -> &'static str {
    if step.path.contains("/status?") { "status" } else { "object" }
}

/// Returns a cause without the values and numbers that it has.
fn rule(cause: &Value) -> String {
    let field: String = cause["field"].as_str().unwrap_or_default().chars().filter(|c| !c.is_ascii_digit()).collect();
    let message = cause["message"].as_str().unwrap_or_default();
    let detail = message.rsplit_once("\": ").map_or(message, |(_, detail)| detail);
    format!("{field} {} {detail}", cause["reason"])
}
