//! The form of a value among those that its type allows, and the path elements of list items.

use serde_json::Value;

use super::super::{
    element::PathElement,
    problem::Problems,
    schema::{Atom, ListType, MapType, Scalar, Schema, TypeId},
};
use crate::quoted::Quoted;

/// The forms that a type allows for a value. Equal for two values if both are merged in the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms {
    scalar: bool,
    list: bool,
    map: bool,
}

/// The form of a value.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Scalar(Scalar),
    List(&'a ListType),
    Map(&'a MapType),
}

/// Returns a type's forms, or an error if the type is not defined.
pub(super) fn resolve(schema: &Schema, ty: Option<TypeId>) -> Result<&Atom, Problems> {
    let Some(ty) = ty else { return Err(Problems::one("schema error: invalid atom: inlined")) };
    let atom = schema.atom(ty);
    if atom.is_missing() { Err(Problems::one(atom.problem())) } else { Ok(atom) }
}

impl Forms {
    /// Returns the forms that are possible for a value: its own if the type allows it, and otherwise all.
    pub(super) fn of(atom: &Atom, value: Option<&Value>) -> Self {
        let all = Self { scalar: atom.scalar.is_some(), list: atom.list.is_some(), map: atom.map.is_some() };
        let none = Self { scalar: false, list: false, map: false };
        match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if all.scalar => Self { scalar: true, ..none },
            Some(Value::Array(_)) if all.list => Self { list: true, ..none },
            Some(Value::Object(_)) if all.map => Self { map: true, ..none },
            _ => all,
        }
    }

    /// Returns the form to use: map, scalar or list, in this order.
    pub(super) fn first(self, atom: &Atom) -> Result<Form<'_>, Problems> {
        if let Some(map) = atom.map.as_ref().filter(|_| self.map) {
            return Ok(Form::Map(map));
        }
        if let Some(scalar) = atom.scalar.filter(|_| self.scalar) {
            return Ok(Form::Scalar(scalar));
        }
        if let Some(list) = atom.list.as_ref().filter(|_| self.list) {
            return Ok(Form::List(list));
        }
        Err(Problems::one(atom.problem()))
    }
}

/// Returns the form of a value.
pub(super) fn form_of<'a>(schema: &'a Schema, ty: Option<TypeId>, value: &Value) -> Result<Form<'a>, Problems> {
    let atom = resolve(schema, ty)?;
    Forms::of(atom, Some(value)).first(atom)
}

/// Returns the path element of a list item.
pub(super) fn item_element(schema: &Schema, list: &ListType, item: &Value) -> Result<PathElement, String> {
    if list.is_atomic {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys.is_empty() {
        return match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(PathElement::Value(scalar.clone())),
        };
    }
    let fields = match item {
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Object(fields) => fields,
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut key = Vec::with_capacity(list.keys.len());
    for name in &list.keys {
        match fields.get(name) {
            Some(value) => key.push((name.clone(), value.clone())),
            None => {
                let default = key_default(schema, list, name)
                    .map_err(|why| format!("couldn't find default value for {name}: {why}"))?;
                key.extend(default.map(|default| (name.clone(), default.clone())));
            }
        }
    }
    if key.is_empty() {
        let keys: Vec<String> = list.keys.iter().map(|name| Quoted(name).to_string()).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    key.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(PathElement::Key(key))
}

fn key_default<'a>(schema: &'a Schema, list: &ListType, name: &str) -> Result<Option<&'a Value>, &'static str> {
    let atom = resolve(schema, list.element).map_err(|_| "invalid elementType for list")?;
    let map = atom.map.as_ref().ok_or("associative list may not have non-map types")?;
    Ok(map.fields.get(name).and_then(|field| field.default.as_ref()))
}

/// Returns a list's items. Null counts as an empty list, and so does a value that is not a list.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
