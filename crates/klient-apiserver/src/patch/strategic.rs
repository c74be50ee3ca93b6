//! Strategic merge patch: lists of objects are merged by the key of their type, and directives change the rest.

use klient_core::Status;
use serde_json::{Map, Value};

use crate::{
    Result,
    registry::{self, Field, Shape, TypeDef},
};

/// Returns the object with the patch merged into it.
pub(super) fn merge(object: &Value, patch: &Value, types: &'static TypeDef) -> Result<Value> {
    let mut merged = object.clone();
    if let (Value::Object(target), Value::Object(patch)) = (&mut merged, patch) {
        merge_object(target, patch, Some(types))?;
    }
    Ok(merged)
}

fn merge_object(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    types: Option<&'static TypeDef>,
) -> Result<()> {
    match patch.get("$patch").map(|directive| (directive, directive.as_str())) {
        Some((_, Some("replace"))) => {
            target.clear();
            target.extend(patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(k, v)| (k.clone(), v.clone())));
            return Ok(());
        }
        Some((_, Some("delete"))) => {
            target.clear();
            return Ok(());
        }
        Some((_, Some("merge"))) | None => {}
        Some((directive, _)) => return Err(bad(&format!("Unknown patch type found: {directive}"))),
    }
    retain_keys(target, patch)?;
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (target.get_mut(list), value) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        let field = types.and_then(|types| types.fields.get(key));
        let order = patch.get(&format!("$setElementOrder/{key}")).and_then(Value::as_array);
        merge_field(target, key, value, field, order)?;
    }
    for (key, order) in patch {
        // An order of a list that has no other changes.
        if let (Some(list), Value::Array(order)) = (key.strip_prefix("$setElementOrder/"), order)
            && !patch.contains_key(list)
            && let Some(Value::Array(items)) = target.get_mut(list)
        {
            let merge_key = types.and_then(|types| types.fields.get(list)).and_then(|field| field.merge_key.as_deref());
            let before = items.clone();
            sort_by_order(items, order, &before, merge_key);
        }
    }
    Ok(())
}

/// Applies `$retainKeys`, which removes all other keys.
fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<()> {
    let Some(retained) = patch.get("$retainKeys") else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(bad("invalid patch format of retainKeys")) };
    target.retain(|key, _| retained.iter().any(|kept| kept.as_str() == Some(key)));
    Ok(())
}

fn merge_field(
    target: &mut Map<String, Value>,
    key: &str,
    patch: &Value,
    field: Option<&'static Field>,
    order: Option<&Vec<Value>>,
) -> Result<()> {
    if patch.is_null() {
        target.remove(key);
        return Ok(());
    }
    let replaces = field.and_then(|field| field.strategy.as_deref()).is_some_and(|strategy| strategy == "replace");
    match (patch, field.map(|field| &field.shape)) {
        (Value::Object(patch), shape) if !replaces => {
            let types = shape.and_then(type_of);
            let inner = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                merge_object(inner, patch, types)?;
            }
        }
        (Value::Array(items), Some(Shape::List(item))) if merges(field) => {
            let list = target.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            if !list.is_array() {
                *list = Value::Array(Vec::new());
            }
            let Value::Array(list) = list else { return Ok(()) };
            let before = list.clone();
            match field.and_then(|field| field.merge_key.as_deref()) {
                Some(merge_key) => merge_by_key(list, items, merge_key, type_of(item))?,
                None => {
                    for item in items {
                        if !list.contains(item) {
                            list.push(item.clone());
                        }
                    }
                }
            }
            let order = order.unwrap_or(items);
            sort_by_order(list, order, &before, field.and_then(|field| field.merge_key.as_deref()));
        }
        _ => drop(target.insert(key.to_owned(), without_directives(patch))),
    }
    Ok(())
}

fn merges(field: Option<&Field>) -> bool {
    let strategy = field.and_then(|field| field.strategy.as_deref()).unwrap_or_default();
    strategy.split(',').any(|part| part == "merge")
}

fn merge_by_key(list: &mut Vec<Value>, patch: &[Value], key: &str, types: Option<&'static TypeDef>) -> Result<()> {
    if patch.iter().any(|item| item["$patch"] == "replace") {
        list.clear();
        list.extend(patch.iter().filter(|item| item.get("$patch").is_none()).map(without_directives));
        return Ok(());
    }
    for item in patch {
        let Value::Object(fields) = item else {
            return Err(bad(&format!("map: {item} does not contain declared merge key: {key}")));
        };
        let Some(wanted) = fields.get(key) else {
            return Err(bad(&format!("map: {item} does not contain declared merge key: {key}")));
        };
        let found = list.iter().position(|known| known.get(key) == Some(wanted));
        match (fields.get("$patch").and_then(Value::as_str), found) {
            (Some("delete"), Some(at)) => drop(list.remove(at)),
            (Some("delete"), None) => {}
            (_, Some(at)) => {
                if let Value::Object(known) = &mut list[at] {
                    merge_object(known, fields, types)?;
                }
            }
            (_, None) => {
                let mut made = Map::new();
                merge_object(&mut made, fields, types)?;
                list.push(Value::Object(made));
            }
        }
    }
    Ok(())
}

/// Puts a merged list into order: the items of the patch in its order, and the others before the first item that they preceded.
fn sort_by_order(list: &mut Vec<Value>, order: &[Value], before: &[Value], merge_key: Option<&str>) {
    let same = |item: &Value, wanted: &Value| match merge_key {
        Some(key) => item.get(key).is_some() && item.get(key) == wanted.get(key),
        None => item == wanted,
    };
    let at = |list: &[Value], item: &Value| list.iter().position(|known| same(known, item));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        std::mem::take(list).into_iter().partition(|item| at(order, item).is_some());
    named.sort_by_key(|item| at(order, item));
    others.sort_by_key(|item| at(before, item));
    let mut others = others.into_iter().peekable();
    for item in named {
        while let Some(other) = others.peek()
            && let (Some(other_at), Some(item_at)) = (at(before, other), at(before, &item))
            && other_at < item_at
        {
            list.extend(others.next());
        }
        list.push(item);
    }
    list.extend(others);
}

fn type_of(shape: &'static Shape) -> Option<&'static TypeDef> {
    match shape {
        Shape::Ref(name) => registry::types().get(name),
        _ => None,
    }
}

/// Returns a patch value without its directives.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(key, value)| !(key.starts_with('$') || value.is_null()))
                .map(|(key, value)| (key.clone(), without_directives(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_directives).collect()),
        other => other.clone(),
    }
}

fn bad(why: &str) -> Box<Status> {
    Box::new(Status::bad_request(why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(object: &Value, patch: &Value) -> Result<Value> {
        let types = registry::types().of_kind("", "v1", "Pod").unwrap();
        merge(object, patch, types)
    }

    #[test]
    fn strategic_patch_merges_lists_by_key() {
        let object = json!({"spec": {"containers": [
            {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}});
        let patch = json!({"spec": {"containers": [
            {"name": "b", "image": "2"}, {"name": "a", "env": [{"name": "Y", "value": "2"}]}, {"name": "c"}]}});
        assert_eq!(
            pod(&object, &patch).unwrap(),
            json!({"spec": {"containers": [
                {"name": "b", "image": "2"},
                {"name": "a", "image": "1", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
                {"name": "c"}]}})
        );
    }

    #[test]
    fn strategic_directives_delete_replace_and_order() {
        let object = json!({"metadata": {"finalizers": ["x", "y"], "labels": {"a": "1", "b": "2"}},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"k": "v"}}});
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "labels": {"a": null}},
            "spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
                "containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}],
                "nodeSelector": {"$patch": "replace", "n": "w"}}});
        assert_eq!(
            pod(&object, &patch).unwrap(),
            json!({"metadata": {"finalizers": ["y"], "labels": {"b": "2"}},
                "spec": {"containers": [{"name": "c"}, {"name": "b"}], "nodeSelector": {"n": "w"}}})
        );
    }

    #[test]
    fn strategic_patch_replaces_atomic_lists_and_unites_sets() {
        let object = json!({"metadata": {"finalizers": ["x"]}, "spec": {"containers": [{"name": "a", "args": ["1"]}]}});
        let patch = json!({"metadata": {"finalizers": ["y"]}, "spec": {"containers": [{"name": "a", "args": ["2"]}]}});
        assert_eq!(
            pod(&object, &patch).unwrap(),
            json!({"metadata": {"finalizers": ["y", "x"]}, "spec": {"containers": [{"name": "a", "args": ["2"]}]}})
        );
    }

    #[test]
    fn item_without_merge_key_is_refused() {
        let object = json!({"spec": {"containers": [{"name": "a"}]}});
        assert_eq!(pod(&object, &json!({"spec": {"containers": [{"image": "x"}]}})).unwrap_err().code, 400);
        assert_eq!(pod(&object, &json!({"spec": {"$patch": "odd"}})).unwrap_err().code, 400);
    }
}
