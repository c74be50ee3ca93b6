//! JSON patch: operations at paths, in order, all or none.

use klient_core::{Quoted, Status};
use serde_json::Value;

use crate::Result;

/// The operations of a patch.
#[derive(Debug)]
pub(crate) struct Operations {
    operations: Vec<Operation>,
}

#[derive(Debug)]
struct Operation {
    action: Action,
    path: String,
}

#[derive(Debug)]
enum Action {
    Add(Value),
    Remove,
    Replace(Value),
    Move(String),
    Copy(String),
    Test(Value),
    /// An invalid operation, which fails only when it is applied.
    Wrong(String),
}

/// Returns warnings about unknown and duplicate members of operations, in the order of the text.
pub(super) fn problems(text: &[u8], patch: &Value, duplicates: Vec<String>) -> Vec<String> {
    let mut problems = duplicates;
    for (index, operation) in patch.as_array().into_iter().flatten().enumerate() {
        let unknown = operation.as_object().into_iter().flat_map(serde_json::Map::keys);
        let unknown = unknown.filter(|name| !matches!(name.as_str(), "op" | "path" | "from" | "value"));
        problems.extend(unknown.map(|name| format!("unknown field \"[{index}].{name}\"")));
    }
    if problems.len() > 1 {
        crate::decode::sort_by_position(text, &mut problems);
    }
    problems.into_iter().map(|problem| format!("json patch {problem}")).collect()
}

impl Operations {
    pub(super) fn parse(patch: &Value) -> Result<Self> {
        let Value::Array(items) = patch else {
            let what = crate::decode::type_word(patch);
            return Err(malformed(&format!(
                "json: cannot unmarshal {what} into Go value of type []handlers.jsonPatchOp"
            )));
        };
        if items.len() > MAX_OPERATIONS {
            let message =
                format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}", items.len());
            return Err(Box::new(Status::request_entity_too_large(message)));
        }
        Ok(Self { operations: items.iter().map(Operation::parse).collect::<Result<_>>()? })
    }

    /// Returns the object after all operations.
    pub(super) fn apply(&self, object: &Value) -> Result<Value> {
        self.try_apply(object.clone()).map_err(|why| {
            tracing::debug!(why, "JSON patch failed");
            super::inapplicable()
        })
    }

    /// Returns the object after all operations, or the reason why one of them fails.
    pub(super) fn try_apply(&self, mut object: Value) -> std::result::Result<Value, String> {
        let mut copied = 0;
        for operation in &self.operations {
            operation.apply(&mut object, &mut copied)?;
        }
        Ok(object)
    }

    /// Returns whether there are no operations.
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

impl Operation {
    fn parse(item: &Value) -> Result<Self> {
        if !item.is_object() {
            let what = crate::decode::type_word(item);
            return Err(malformed(&format!(
                "json: cannot unmarshal {what} into Go value of type handlers.jsonPatchOp"
            )));
        }
        let kind = item["op"].as_str().unwrap_or("unknown");
        let Some(path) = item["path"].as_str().map(str::to_owned) else {
            let why = format!("{kind} operation failed to decode path: missing value");
            return Ok(Self { action: Action::Wrong(why), path: String::new() });
        };
        let (value, from) = (item.get("value").cloned(), item["from"].as_str().map(str::to_owned));
        let no_from = || Action::Wrong(format!("{kind} operation failed to decode from: missing value"));
        let action = match item["op"].as_str() {
            // The real server's library treats a missing value as null.
            Some("add") => Action::Add(value.unwrap_or_default()),
            Some("remove") => Action::Remove,
            Some("replace") => Action::Replace(value.unwrap_or_default()),
            Some("move") => from.map_or_else(no_from, Action::Move),
            Some("copy") => from.map_or_else(no_from, Action::Copy),
            Some("test") => Action::Test(value.unwrap_or_default()),
            _ => Action::Wrong(format!("Unexpected kind: {kind}")),
        };
        Ok(Self { action, path })
    }

    /// Applies the operation. `copied` counts the bytes copied so far, because copies of copies could grow without limit.
    fn apply(&self, object: &mut Value, copied: &mut usize) -> std::result::Result<(), String> {
        if self.path.matches('/').count() > MAX_DEPTH {
            return Err("the path is too deep".to_owned());
        }
        match &self.action {
            Action::Wrong(why) => Err(why.clone()),
            Action::Add(value) => add(object, &self.path, value.clone()),
            Action::Remove => remove(object, &self.path).map(drop),
            Action::Replace(value) => {
                // The real server accepts a missing key if its parent exists.
                if let Some((Value::Object(fields), key)) = parent(object, &self.path) {
                    fields.insert(key, value.clone());
                    return Ok(());
                }
                let found = object.pointer_mut(&self.path);
                let missing =
                    || format!("replace operation does not apply: doc is missing path: {}: missing value", self.path);
                *found.ok_or_else(missing)? = value.clone();
                Ok(())
            }
            Action::Move(from) => {
                let value = remove(object, from)?;
                is_shallow(&value)?;
                add(object, &self.path, value)
            }
            Action::Copy(from) => {
                let missing =
                    || format!("copy operation does not apply: doc is missing from path: {from}: missing value");
                let value = match parent(object, from) {
                    // The real server's library copies a missing key as null.
                    Some((Value::Object(fields), key)) => fields.get(&key).cloned().unwrap_or_default(),
                    _ => object.pointer(from).cloned().ok_or_else(missing)?,
                };
                is_shallow(&value)?;
                *copied += serde_json::to_vec(&value).map_or(usize::MAX, |text| text.len());
                if *copied > MAX_COPIED {
                    return Err(format!("more than {MAX_COPIED} bytes would be copied"));
                }
                add(object, &self.path, value)
            }
            Action::Test(expected) => {
                let found = object.pointer(&self.path).unwrap_or(&Value::Null);
                if found == expected { Ok(()) } else { Err(format!("testing value {} failed: test failed", self.path)) }
            }
        }
    }
}

/// Returns the parent of a path, and the last part of the path, unescaped.
fn parent<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((object.pointer_mut(parent)?, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> std::result::Result<(), String> {
    if path.is_empty() {
        *object = value;
        return Ok(());
    }
    match parent(object, path) {
        Some((Value::Object(fields), key)) => {
            fields.insert(key, value);
            Ok(())
        }
        Some((Value::Array(items), key)) => {
            let at = if key == "-" { items.len() } else { index("add", path, &key)? };
            if at > items.len() {
                return Err(beyond("add", path, at));
            }
            items.insert(at, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

fn remove(object: &mut Value, path: &str) -> std::result::Result<Value, String> {
    match parent(object, path) {
        Some((Value::Object(fields), key)) => fields.remove(&key).ok_or_else(|| {
            format!("error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")
        }),
        Some((Value::Array(items), key)) => {
            let at = index("remove", path, &key)?;
            if at < items.len() { Ok(items.remove(at)) } else { Err(beyond("remove", path, at)) }
        }
        _ => Err(missing("remove", path)),
    }
}

/// Returns the index that a part of a path names.
fn index(action: &str, path: &str, key: &str) -> std::result::Result<usize, String> {
    key.parse().map_err(|_| {
        let why = format!("strconv.Atoi: parsing {}: invalid syntax", Quoted(key));
        format!("error in {action} for path: '{path}': value was not a proper array index: '{key}': {why}")
    })
}

fn beyond(action: &str, path: &str, at: usize) -> String {
    format!("error in {action} for path: '{path}': Unable to access invalid index: {at}: invalid index referenced")
}

/// Refuses values that would be nested too deeply for JSON parsers after the operation.
fn is_shallow(value: &Value) -> std::result::Result<(), String> {
    let mut level = vec![value];
    for _ in 0..MAX_DEPTH {
        level = level
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            })
            .collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    Err("the value has too many levels".to_owned())
}

fn missing(action: &str, path: &str) -> String {
    format!("{action} operation does not apply: doc is missing path: {}: missing value", Quoted(path))
}

fn malformed(why: &str) -> Box<Status> {
    Box::new(Status::bad_request(format!("error decoding patch: {why}")))
}

const MAX_OPERATIONS: usize = 10_000;
/// The number of bytes that a real server lets one patch copy.
const MAX_COPIED: usize = 3 << 20;
/// The nesting limit of JSON parsers.
const MAX_DEPTH: usize = 128;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(object: &Value, patch: &Value) -> Result<Value> {
        Operations::parse(patch)?.apply(object)
    }

    #[test]
    fn json_patch_applies_operations_in_order() {
        let object = json!({"a": {"b/c": 1}, "l": [1, 2, 3]});
        let patch = json!([
            {"op": "test", "path": "/a/b~1c", "value": 1},
            {"op": "add", "path": "/l/1", "value": 9},
            {"op": "add", "path": "/l/-", "value": 4},
            {"op": "remove", "path": "/l/0"},
            {"op": "move", "from": "/a/b~1c", "path": "/moved"},
            {"op": "copy", "from": "/l", "path": "/a/copy"},
            {"op": "replace", "path": "/l", "value": []}
        ]);
        assert_eq!(applied(&object, &patch).unwrap(), json!({"a": {"copy": [9, 2, 3, 4]}, "l": [], "moved": 1}));
    }

    #[test]
    fn json_patch_limits_copied_bytes() {
        let wide: Vec<_> = (0..60).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a/{n}")})).collect();
        assert_eq!(applied(&json!({"a": {"b": "c"}}), &json!(wide)).unwrap_err().code, 422);
        let mut path = "/a".to_owned();
        let deep: Vec<_> = (0..12)
            .map(|_| {
                let operation = json!({"op": "copy", "from": "/a", "path": format!("{path}/a")});
                path = format!("{path}{path}");
                operation
            })
            .collect();
        assert_eq!(applied(&json!({"a": {}}), &json!(deep)).unwrap_err().code, 422);
    }

    #[test]
    fn inapplicable_patch_is_422_and_malformed_is_400() {
        let object = json!({"a": 1, "l": []});
        for patch in [
            json!([{"op": "test", "path": "/a", "value": 2}]),
            json!([{"op": "remove", "path": "/b"}]),
            json!([{"op": "replace", "path": "/l/0", "value": 1}]),
            json!([{"op": "replace", "path": "/b/c", "value": 1}]),
            json!([{"op": "add", "path": "/l/5", "value": 1}]),
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            json!([{"op": "add"}]),
            json!([{"op": "odd", "path": "/a"}]),
        ] {
            let status = applied(&object, &patch).unwrap_err();
            assert_eq!((status.code, status.is_invalid()), (422, true), "{patch}");
        }
        for patch in [json!({}), json!([3])] {
            assert_eq!(applied(&object, &patch).unwrap_err().code, 400, "{patch}");
        }
        let many: Vec<_> = (0..=MAX_OPERATIONS).map(|_| json!({"op": "remove", "path": "/a"})).collect();
        assert_eq!(applied(&object, &json!(many)).unwrap_err().code, 413);
    }
}
