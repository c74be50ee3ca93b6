//! Values without some of their fields, or with only those.

use serde_json::{Map, Value};

use super::{
    super::{
        element::PathElement,
        schema::{ListType, MapType, Schema, TypeId},
        set::FieldSet,
    },
    Typed,
    form::{Form, form_of, item_element},
};

impl Typed {
    /// Returns the value without the fields and list items of a set.
    #[must_use]
    pub fn remove_items(&self, items: &FieldSet) -> Self {
        self.with(reduce(&self.schema, Some(self.ty), &self.value, items, Keep::Others))
    }

    /// Returns the value with only the fields and list items of a set.
    #[must_use]
    pub fn extract_items(&self, items: &FieldSet) -> Self {
        self.with(reduce(&self.schema, Some(self.ty), &self.value, items, Keep::Listed))
    }

    /// Returns a set with the key fields of the list items in it that the value has.
    ///
    /// With them, [`extract_items`](Self::extract_items) returns list items that have their keys.
    #[must_use]
    pub fn with_key_fields(&self, items: &FieldSet) -> FieldSet {
        let Ok(own) = self.to_field_set() else { return items.clone() };
        let mut keys = FieldSet::new();
        for path in items.paths().iter().filter(|path| own.contains(path)) {
            for (at, element) in path.iter().enumerate() {
                let PathElement::Key(fields) = element else { continue };
                for (name, _) in fields {
                    let field = PathElement::field(name);
                    keys.insert(&path.iter().take(at + 1).chain([&field]).cloned().collect::<Vec<_>>());
                }
            }
        }
        items.union(&keys)
    }
}

/// The fields that stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Those of the set.
    Listed,
    /// All others.
    Others,
}

fn reduce(schema: &Schema, ty: Option<TypeId>, value: &Value, set: &FieldSet, keep: Keep) -> Value {
    // What is atomic stays as a whole, or not at all.
    let whole = || if keep == Keep::Listed { value.clone() } else { Value::Null };
    match form_of(schema, ty, value) {
        Ok(Form::Scalar(_)) => value.clone(),
        Ok(Form::List(list)) => match value {
            Value::Array(items) if items.is_empty() || list.is_atomic => whole(),
            Value::Array(items) => reduce_list(schema, list, items, set, keep),
            _ => Value::Null,
        },
        Ok(Form::Map(map)) => match value {
            Value::Object(fields) if fields.is_empty() || map.is_atomic => whole(),
            Value::Object(fields) => reduce_map(schema, map, fields, set, keep),
            _ => Value::Null,
        },
        Err(_) => Value::Null,
    }
}

fn reduce_list(schema: &Schema, list: &ListType, items: &[Value], set: &FieldSet, keep: Keep) -> Value {
    let mut out = Vec::with_capacity(items.len());
    let mut has_matches = false;
    for item in items {
        let element = item_element(schema, list, item).ok();
        let is_member = element.as_ref().is_some_and(|element| set.has_member(element));
        let below = element.as_ref().and_then(|element| set.child(element)).filter(|below| !below.is_empty());
        match keep {
            Keep::Listed => {
                if let Some(below) = below {
                    out.push(reduce(schema, list.element, item, below, keep));
                } else if is_member {
                    out.push(item.clone());
                }
            }
            Keep::Others if is_member => {}
            Keep::Others => {
                if let Some(below) = below {
                    has_matches = true;
                    out.push(or_empty(item, reduce(schema, list.element, item, below, keep)));
                } else {
                    out.push(item.clone());
                }
            }
        }
    }
    if !out.is_empty() || has_matches { Value::Array(out) } else { Value::Null }
}

fn reduce_map(schema: &Schema, map: &MapType, fields: &Map<String, Value>, set: &FieldSet, keep: Keep) -> Value {
    let mut out = Map::new();
    let mut has_matches = false;
    for (name, value) in fields {
        let element = PathElement::field(name);
        let ty = map.type_of(name);
        if set.has_member(&element) {
            if keep == Keep::Listed {
                out.insert(name.clone(), reduce(schema, ty, value, set, keep));
            }
            continue;
        }
        match set.child(&element).filter(|below| !below.is_empty()) {
            Some(below) => {
                let reduced = reduce(schema, ty, value, below, keep);
                has_matches |= keep == Keep::Others;
                out.insert(name.clone(), if keep == Keep::Others { or_empty(value, reduced) } else { reduced });
            }
            None if keep == Keep::Others => drop(out.insert(name.clone(), value.clone())),
            None => {}
        }
    }
    if !out.is_empty() || has_matches { Value::Object(out) } else { Value::Null }
}

/// Returns an empty value of the same form if nothing is left.
fn or_empty(before: &Value, after: Value) -> Value {
    match (before, after) {
        (Value::Object(_), Value::Null) => Value::Object(Map::new()),
        (Value::Array(_), Value::Null) => Value::Array(Vec::new()),
        (_, after) => after,
    }
}
