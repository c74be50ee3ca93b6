//! The set of fields that a value has.

use serde_json::Value;

use super::{
    super::{
        element::PathElement,
        problem::Problems,
        schema::{ListType, MapType, Schema, TypeId},
        set::FieldSet,
    },
    Typed,
    form::{Form, form_of, item_element},
};

impl Typed {
    /// Returns the set of all leaf fields and list items of the value.
    ///
    /// # Errors
    ///
    /// Returns the fields that do not fit the type.
    pub fn to_field_set(&self) -> Result<FieldSet, Problems> {
        let mut problems = Problems::default();
        let node = node(&self.schema, Some(self.ty), &self.value, &mut problems);
        problems.into_result(node.below)
    }
}

/// The paths below a value, and whether the value itself is in the set.
struct Node {
    is_member: bool,
    below: FieldSet,
}

impl Node {
    fn leaf(is_member: bool) -> Self {
        Self { is_member, below: FieldSet::new() }
    }
}

fn node(schema: &Schema, ty: Option<TypeId>, value: &Value, problems: &mut Problems) -> Node {
    match form_of(schema, ty, value) {
        Err(found) => {
            problems.extend(found);
            Node::leaf(false)
        }
        Ok(Form::Scalar(_)) => Node::leaf(true),
        Ok(Form::List(list)) if list.is_atomic => Node::leaf(true),
        Ok(Form::List(list)) => match value {
            Value::Array(items) => Node { is_member: false, below: items_set(schema, list, items, problems) },
            _ => Node::leaf(false),
        },
        Ok(Form::Map(map)) if map.is_atomic => Node::leaf(true),
        Ok(Form::Map(map)) => match value {
            Value::Object(fields) => Node { is_member: false, below: fields_set(schema, map, fields, problems) },
            _ => Node::leaf(false),
        },
    }
}

fn items_set(schema: &Schema, list: &ListType, items: &[Value], problems: &mut Problems) -> FieldSet {
    let mut out = FieldSet::new();
    let (mut seen, mut duplicates) = (FieldSet::new(), FieldSet::new());
    let elements: Vec<Option<PathElement>> = items.iter().map(|item| item_element(schema, list, item).ok()).collect();
    for element in elements.iter().flatten() {
        if seen.has_member(element) {
            duplicates.insert_member(element.clone());
        } else {
            seen.insert_member(element.clone());
        }
    }
    for (element, item) in elements.into_iter().zip(items) {
        let Some(element) = element else { continue };
        // A key with several items is one member without an inside.
        if !duplicates.has_member(&element) {
            let inner = node(schema, list.element, item, problems);
            out.insert_child(element.clone(), inner.below);
        }
        out.insert_member(element);
    }
    out
}

fn fields_set(
    schema: &Schema,
    map: &MapType,
    fields: &serde_json::Map<String, Value>,
    problems: &mut Problems,
) -> FieldSet {
    let mut out = FieldSet::new();
    for (name, value) in fields {
        let inner = node(schema, map.type_of(name), value, problems);
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let element = PathElement::field(name);
        if inner.is_member || is_empty || !map.fields.contains_key(name) {
            out.insert_member(element.clone());
        }
        out.insert_child(element, inner.below);
    }
    out
}
