//! Empty lists and maps in messages. Go prints one that was sent as `[]` or `{}`, and one that is absent as `null`; a decoded object does not tell
//! them apart.

use klient_core::Status;
use serde_json::Value;

use crate::call::Call;

/// Prints the empty values of a refused object as they were sent.
pub(super) fn shown(call: &Call, mut status: Box<Status>) -> Box<Status> {
    let prefixes = ["Invalid value: null", "Unsupported value: null"];
    let prefix_of = |message: &str| prefixes.into_iter().find(|prefix| message.starts_with(prefix));
    let causes = status.details.as_mut().map_or(&mut [][..], |details| &mut details.causes);
    if !causes.iter().any(|cause| prefix_of(&cause.message).is_some()) {
        return status;
    }
    let Ok(sent) = serde_json::from_slice::<Value>(&call.body) else { return status };
    let mut changes = Vec::new();
    for cause in causes {
        // A message about a whole `spec` shows a value inside of it.
        let Some(prefix) = prefix_of(&cause.message).filter(|_| cause.field.contains('.')) else { continue };
        let empty = match find(&sent, &cause.field) {
            Some(Value::Array(items)) if items.is_empty() => "[]",
            Some(Value::Object(entries)) if entries.is_empty() => "{}",
            _ => continue,
        };
        let changed = format!("{}{empty}{}", prefix.trim_end_matches("null"), &cause.message[prefix.len()..]);
        let before = std::mem::replace(&mut cause.message, changed);
        changes.push((format!("{}: {before}", cause.field), format!("{}: {}", cause.field, cause.message)));
    }
    for (before, after) in changes {
        status.message = status.message.replacen(&before, &after, 1);
    }
    status
}

/// Returns the value at a path such as `spec.ports[0].name` or `spec.limits[cpu]`.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split(['.', '[']).map(|step| step.trim_end_matches(']')).try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_leads_through_lists_and_maps() {
        let value = json!({"a": [{"b": {}}, {"c": {"cpu": []}}]});
        assert_eq!(find(&value, "a[0].b"), Some(&json!({})));
        assert_eq!(find(&value, "a[1].c[cpu]"), Some(&json!([])));
        assert_eq!(find(&value, "a[2]"), None);
        assert_eq!(find(&value, "a.b"), None);
    }
}
