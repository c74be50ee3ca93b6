//! Strategic merge patch: lists of objects are merged by the key of their type, and directives change the rest.

use klient_core::{Quoted, Status, StatusReason};
use serde_json::{Map, Value};

use crate::{
    Result, go,
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
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                target.clone_from(patch);
                target.remove(DIRECTIVE);
            }
            Some("delete") => target.clear(),
            _ => return Err(unknown_directive(directive, patch)),
        }
        return Ok(());
    }
    retain_keys(target, patch)?;
    let field_of = |name: &str| types.and_then(|types| types.fields.get(name));
    let mut ordered = Vec::new();
    for (key, order) in patch {
        let Some(list) = key.strip_prefix(ORDER) else { continue };
        let Value::Array(order) = order else { return Err(wrong_type(LIST, order)) };
        let Some(list) = list.strip_prefix('/') else {
            return Err(bad("invalid patch format of setElementOrder list"));
        };
        merge_ordered(target, list, patch.get(list), order, field_of(list))?;
        ordered.push(list);
    }
    for (key, value) in patch {
        if key == RETAINED || key.starts_with(ORDER) || ordered.contains(&key.as_str()) {
            continue;
        }
        match key.strip_prefix(DELETED) {
            Some(list) => {
                let list = list.strip_prefix('/').ok_or_else(|| bad("invalid patch format of primitive list"))?;
                delete_items(target, list, value)?;
            }
            None => merge_field(target, key, value, field_of(key))?,
        }
    }
    Ok(())
}

/// Applies `$retainKeys`, which removes all other keys.
fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<()> {
    let Some(retained) = patch.get(RETAINED) else { return Ok(()) };
    let wrong = || bad("invalid patch format of retainKeys");
    let Value::Array(retained) = retained else { return Err(wrong()) };
    let is_retained = |key: &str| retained.iter().any(|kept| kept.as_str() == Some(key));
    let is_field = |key: &str| key != RETAINED && !key.starts_with(DELETED) && !key.starts_with(ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && is_field(key) && !is_retained(key)) {
        return Err(wrong());
    }
    target.retain(|key, _| is_retained(key));
    Ok(())
}

/// Checks that no part of an opaque value is merged: Go knows no strategies for its fields.
fn check_opaque(target: &Map<String, Value>, patch: &Map<String, Value>, field: Option<&Field>) -> Result<()> {
    let Some(Shape::Ref(name)) = field.map(|field| &field.shape) else { return Ok(()) };
    if crate::registry::types().get(name).is_none_or(|types| !types.fields.is_empty()) {
        return Ok(());
    }
    let is_merged = |key: &str, value: &Value| {
        matches!(
            (target.get(key), value),
            (Some(Value::Object(_)), Value::Object(_)) | (Some(Value::Array(_)), Value::Array(_))
        )
    };
    match patch.iter().find(|(key, value)| is_merged(key, value)) {
        None => Ok(()),
        Some((key, _)) => {
            let name = name.rsplit('.').next().unwrap_or_default();
            Err(internal(format!("unable to find api field in struct {name} for the json field {}", Quoted(key))))
        }
    }
}

fn merge_field(target: &mut Map<String, Value>, key: &str, patch: &Value, field: Option<&'static Field>) -> Result<()> {
    if patch.is_null() {
        target.remove(key);
        return Ok(());
    }
    let merged = match (target.get_mut(key), patch) {
        (Some(Value::Object(inner)), Value::Object(fields)) if strategy(field) != "replace" => {
            check_opaque(inner, fields, field)?;
            return merge_object(inner, fields, field.and_then(|field| type_of(&field.shape)));
        }
        (Some(Value::Array(live)), Value::Array(items)) if strategy(field) == "merge" => {
            *live = merge_list(live, items, field)?;
            return Ok(());
        }
        // The value is used as it is, although nulls and directives in it are no fields.
        (Some(Value::Object(_)), Value::Object(_)) | (Some(Value::Array(_)), Value::Array(_)) => Some(patch.clone()),
        _ => without_directives(patch),
    };
    match merged {
        Some(merged) => drop(target.insert(key.to_owned(), merged)),
        None => drop(target.remove(key)),
    }
    Ok(())
}

/// Applies `$deleteFromPrimitiveList`, which removes items of a list.
fn delete_items(target: &mut Map<String, Value>, list: &str, deleted: &Value) -> Result<()> {
    match (target.get_mut(list), deleted) {
        (_, Value::Null) => drop(target.remove(list)),
        (Some(Value::Array(live)), Value::Array(deleted)) if !(live.is_empty() && deleted.is_empty()) => {
            check_items(live, deleted)?;
            live.retain(|item| !deleted.contains(item));
        }
        _ => {}
    }
    Ok(())
}

/// Applies `$setElementOrder` to a list, which the patch can change at the same time.
fn merge_ordered(
    target: &mut Map<String, Value>,
    list: &str,
    patch: Option<&Value>,
    order: &[Value],
    field: Option<&'static Field>,
) -> Result<()> {
    let items = |value: Option<&Value>| match value {
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(wrong_type(LIST, other)),
        None => Ok(None),
    };
    let (live, patch) = (items(target.get(list))?, items(patch)?);
    let key = merge_key(field);
    check_order(patch.as_deref().unwrap_or_default(), order, key)?;
    let mut merged = match (&live, &patch) {
        (None, None) => return Ok(()),
        (Some(live), None) => live.clone(),
        (Some(live), Some(patch)) if strategy(field) == "merge" => merge_list(live, patch, field)?,
        (Some(_), Some(patch)) => patch.clone(),
        (None, Some(patch)) => patch.iter().filter_map(without_directives).collect(),
    };
    let live = live.unwrap_or_default();
    check_keys(&merged, key)?;
    if let Some((at, _)) =
        order.iter().enumerate().find(|(_, item)| !merged.is_empty() && key.is_some() && !item.is_object())
    {
        return Err(internal(format!("value for key {at} is not a map")));
    }
    check_items(&live, patch.as_deref().unwrap_or_default())?;
    check_keys(order, key)?;
    sort_by_order(&mut merged, order, &live, key);
    target.insert(list.to_owned(), Value::Array(merged));
    Ok(())
}

/// Checks that the items of a patch are in the order that the patch sets.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut left = Vec::new();
    for item in patch {
        match (item, key) {
            (Value::Object(fields), Some(_)) if fields.get(DIRECTIVE).is_some_and(|kind| kind == "delete") => {}
            (Value::Object(_), _) | (_, None) => left.push(item),
            (other, Some(_)) => return Err(wrong_type(MAP, other)),
        }
    }
    let (mut left, mut wanted) = (left.into_iter().peekable(), order.iter().peekable());
    while let (Some(item), Some(next)) = (left.peek(), wanted.peek()) {
        if item.get(DIRECTIVE).is_some() {
            left.next();
            continue;
        }
        let is_same = match key {
            Some(key) => key_of(item, key)? == key_of(next, key)?,
            None => item == next,
        };
        wanted.next();
        if is_same {
            left.next();
        }
    }
    if left.peek().is_none() {
        return Ok(());
    }
    let (patch, order) = (go::list_text(patch), go::list_text(order));
    Err(internal(format!("The order in patch list:\n{patch}\n doesn't match {ORDER} list:\n{order}\n")))
}

fn merge_list(live: &[Value], patch: &[Value], field: Option<&'static Field>) -> Result<Vec<Value>> {
    let Some(first) = live.iter().chain(patch).next() else { return Ok(Vec::new()) };
    check_items(live, patch)?;
    let key = merge_key(field);
    if !first.is_object() {
        let mut merged = Vec::new();
        for item in live.iter().chain(patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        sort_by_order(&mut merged, patch, live, key);
        return Ok(merged);
    }
    let Some(key) = key else { return Err(internal("cannot merge lists without merge key for struct")) };
    let types = match field.map(|field| &field.shape) {
        Some(Shape::List(item)) => type_of(item),
        _ => None,
    };
    let (live, patch) = apply_directives(live, patch, key)?;
    let mut merged = live.clone();
    for item in &patch {
        let wanted = key_of(item, key)?;
        match (merged.iter_mut().find(|known| known.get(key) == Some(wanted)), item) {
            (Some(Value::Object(known)), Value::Object(fields)) => merge_object(known, fields, types)?,
            _ => merged.push(item.clone()),
        }
    }
    check_keys(&merged, Some(key))?;
    sort_by_order(&mut merged, &patch, &live, Some(key));
    Ok(merged)
}

/// Applies the directives in a list of objects. Returns what is left of the list and of the patch.
fn apply_directives(live: &[Value], patch: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let (mut live, mut plain, mut replaces) = (live.to_vec(), Vec::new(), false);
    for item in patch {
        let Value::Object(fields) = item else { continue };
        match fields.get(DIRECTIVE).map(|directive| (directive, directive.as_str())) {
            None => plain.push(item.clone()),
            Some((_, Some("delete"))) => {
                let wanted = key_of(item, key)?;
                live.retain(|known| known.get(key) != Some(wanted));
            }
            Some((_, Some("replace"))) => replaces = true,
            Some((_, Some("merge"))) => return Err(internal("merging lists cannot yet be specified in the patch")),
            Some((directive, _)) => return Err(unknown_directive(directive, fields)),
        }
    }
    Ok(if replaces { (plain, Vec::new()) } else { (live, plain) })
}

/// Checks that all items have the same type, which cannot be a list.
fn check_items(live: &[Value], patch: &[Value]) -> Result<()> {
    let mut items = live.iter().chain(patch);
    let Some(first) = items.next() else { return Err(internal("no elements in any of the given slices")) };
    if first.is_array() {
        return Err(super::inapplicable());
    }
    if items.all(|item| go::kind(item) == go::kind(first)) {
        return Ok(());
    }
    let (live, patch) = (go::list_text(live), go::list_text(patch));
    Err(internal(format!("list element types are not identical: [{live} {patch}]")))
}

/// Checks that all items have a merge key, if the list has one.
fn check_keys(items: &[Value], key: Option<&str>) -> Result<()> {
    let Some(key) = key else { return Ok(()) };
    items.iter().try_for_each(|item| key_of(item, key).map(drop))
}

/// Returns the value that identifies an item.
fn key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value> {
    let Value::Object(fields) = item else { return Err(wrong_type(MAP, item)) };
    let missing = || internal(format!("map: {} does not contain declared merge key: {key}", go::text(item)));
    fields.get(key).ok_or_else(missing)
}

/// Returns how a field is merged: `merge`, `replace`, or as it follows from its value.
fn strategy(field: Option<&Field>) -> &str {
    let strategies = field.and_then(|field| field.strategy.as_deref()).unwrap_or_default();
    strategies.split(',').find(|strategy| *strategy != "retainKeys").unwrap_or_default()
}

fn merge_key(field: Option<&'static Field>) -> Option<&'static str> {
    field.and_then(|field| field.merge_key.as_deref())
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

/// Returns the patch of a value that does not exist, without its nulls and the objects that are directives.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.get(DIRECTIVE).is_some_and(|directive| !directive.is_null()) => None,
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            Some(fields.filter_map(|(key, value)| Some((key.clone(), without_directives(value)?))).collect())
        }
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> Box<Status> {
    let shown = match directive {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => go::text(directive),
        Value::Null => WRONG_NIL.to_owned(),
        other => format!("%!s({}={})", go::kind(other), go::text(other)),
    };
    let patch = go::text(&Value::Object(patch.clone()));
    internal(format!("unknown patch type: {shown} in map: {patch}"))
}

fn wrong_type(expected: &str, found: &Value) -> Box<Status> {
    let found = if found.is_null() { WRONG_NIL } else { go::type_name(found) };
    internal(format!("expected a {expected}, but received a {found}"))
}

fn bad(why: &str) -> Box<Status> {
    Box::new(Status::bad_request(why))
}

/// Returns an error that the real server does not interpret.
fn internal(why: impl Into<String>) -> Box<Status> {
    Box::new(Status::failure(StatusReason::Unknown, 500, why))
}

/// The key of a directive.
const DIRECTIVE: &str = "$patch";
/// The key of the fields that an object retains.
const RETAINED: &str = "$retainKeys";
/// The beginning of the key of an order.
const ORDER: &str = "$setElementOrder";
/// The beginning of the key of a list of deleted items.
const DELETED: &str = "$deleteFromPrimitiveList";
/// Go's name of the type of lists.
const LIST: &str = "[]interface {}";
/// Go's name of the type of objects.
const MAP: &str = "map[string]interface {}";
/// Nil where Go prints a string.
const WRONG_NIL: &str = "%!s(<nil>)";

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
    fn new_values_have_no_directives_and_no_nulls() {
        let patch = json!({"spec": {"nodeSelector": {"$patch": "replace", "a": "b"}, "volumes": [{"name": "a", "hostPath": null},
            {"name": "b", "$patch": "delete"}]}});
        let merged = pod(&json!({"spec": {"containers": []}}), &patch).unwrap();
        assert_eq!(merged, json!({"spec": {"containers": [], "volumes": [{"name": "a"}]}}));
    }

    #[test]
    fn invalid_patches_are_refused_as_in_go() {
        let object = json!({"metadata": {"finalizers": ["x"]}, "spec": {"containers": [{"name": "a"}]}});
        for (patch, code, message) in [
            (json!({"$patch": "merge"}), 500, "unknown patch type: merge in map: map[$patch:merge]"),
            (json!({"$patch": 1}), 500, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
            (json!({"$patch": null}), 500, "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"),
            (json!({"$retainKeys": ["a"], "b": 1}), 400, "invalid patch format of retainKeys"),
            (json!({"$retainKeys": 1}), 400, "invalid patch format of retainKeys"),
            (json!({"$deleteFromPrimitiveList": []}), 400, "invalid patch format of primitive list"),
            (json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list"),
            (json!({"$setElementOrder/containers": null}), 500, "expected a []interface {}, but received a %!s(<nil>)"),
            (
                json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
                500,
                "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
            ),
            (
                json!({"$setElementOrder/containers": ["a"], "containers": [{"name": "a"}]}),
                500,
                "expected a map[string]interface {}, but received a string",
            ),
            (json!({"containers": [{"$patch": "merge"}]}), 500, "merging lists cannot yet be specified in the patch"),
            (
                json!({"containers": [{"$patch": "delete"}]}),
                500,
                "map: map[$patch:delete] does not contain declared merge key: name",
            ),
        ] {
            let status = pod(&object, &json!({"spec": patch})).unwrap_err();
            assert_eq!((status.code, status.message.as_str()), (code, message), "{patch}");
        }
        let lists = json!({"metadata": {"finalizers": [["y"]]}});
        assert_eq!(pod(&json!({"metadata": {"finalizers": [[]]}}), &lists).unwrap_err().code, 422);
    }
}
