//! Validation of the conditions and the certificate of certificate signing requests.

use std::collections::HashSet;

use serde_json::Value;

use super::field::{Causes, Field};

/// Validates a status.
pub(in crate::builtin) fn signing_request_status(object: &Value, old: &Value, causes: &mut Causes) {
    conditions(object, old, causes);
    let (new, stored) = (Field::of(object, "status"), Field::of(old, "status"));
    let list = new.field("conditions");
    for decision in DECISIONS {
        if of_type(&list, decision) > of_type(&stored.field("conditions"), decision) {
            list.forbidden(&format!("updates may not add a condition of type \"{decision}\""), causes);
        }
    }
    let (certificate, before) = (new.field("certificate"), stored.field("certificate"));
    if !before.text().is_empty() && certificate.text() != before.text() {
        certificate.forbidden("updates may not modify existing certificate content", causes);
    }
}

/// Validates an approval.
pub(in crate::builtin) fn signing_request_approval(_: &str, object: &Value, old: &Value, causes: &mut Causes) {
    conditions(object, old, causes);
}

fn conditions(object: &Value, old: &Value, causes: &mut Causes) {
    let (new, stored) = (Field::of(object, "status"), Field::of(old, "status"));
    let (list, stored) = (new.field("conditions"), stored.field("conditions"));
    let before: HashSet<&str> = stored.list().iter().map(type_of).collect();
    let repeats = before.len() < stored.list().len();
    let was_contradictory = DECISIONS.iter().all(|decision| before.contains(decision));
    let mut seen: HashSet<&str> = HashSet::new();
    for condition in list.items() {
        let (of_type, status) = (condition.field("type"), condition.field("status"));
        let name = of_type.text();
        if name.is_empty() && !before.contains("") {
            of_type.required("", causes);
        }
        let allowed: &[&str] = if LASTING.contains(&name) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.text().is_empty() {
            status.required("", causes);
        } else if !allowed.contains(&status.text()) {
            status.not_supported(allowed, causes);
        }
        let is_contradicted =
            DECISIONS.contains(&name) && DECISIONS.iter().any(|other| *other != name && seen.contains(other));
        if is_contradicted && !was_contradictory {
            list.with(of_type.value).invalid("Approved and Denied conditions are mutually exclusive", causes);
        }
        if !seen.insert(name) && !repeats {
            of_type.duplicate(causes);
        }
    }
    for lasting in LASTING {
        if self::of_type(&list, lasting) < self::of_type(&stored, lasting) {
            list.forbidden(&format!("updates may not remove a condition of type \"{lasting}\""), causes);
        }
    }
}

fn type_of(condition: &Value) -> &str {
    condition["type"].as_str().unwrap_or_default()
}

/// Returns the number of conditions of a type.
fn of_type(conditions: &Field<'_, '_>, name: &str) -> usize {
    conditions.list().iter().filter(|condition| type_of(condition) == name).count()
}

/// The conditions that only an approval can add.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// The conditions that are true once they are there, and stay.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];
