//! Reasons for which responses may differ.
//!
//! - **Times.** Entries of managers are sorted by the second of their last write. A request that would change nothing but a time is
//!   written if it changes this order, too. That depends on the second in which it arrives: one server then has one more
//!   version of the object, and watches show one more event without another change.

use std::collections::HashMap;

use serde_json::Value;

use crate::script::Comparable;

/// Returns whether two responses differ only for one of the reasons.
pub fn is_explained(real: &Comparable, ours: &Comparable) -> bool {
    let plain = |response: &Comparable| {
        let mut body = response.body.clone();
        without_versions(&mut body);
        if let Value::Array(events) = &mut body {
            let mut last: HashMap<String, Value> = HashMap::new();
            events.retain(|event| {
                let object = &event["object"];
                last.insert(object["metadata"]["uid"].to_string(), object.clone()).as_ref() != Some(object)
            });
        }
        body
    };
    real.code == ours.code && real.warnings == ours.warnings && plain(real) == plain(ours)
}

fn without_versions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("resourceVersion");
            fields.values_mut().for_each(without_versions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_versions),
        _ => {}
    }
}
