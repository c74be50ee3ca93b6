//! Whether a value fits its type.

use serde_json::Value;

use super::{
    super::{
        element::PathElement,
        problem::Problems,
        schema::{ListType, MapType, Scalar, Schema, TypeId},
        set::FieldSet,
        value as go,
    },
    Duplicates, Typed,
    form::{Form, form_of, item_element},
};

impl Typed {
    /// Checks that the value fits its type.
    ///
    /// # Errors
    ///
    /// Returns every field that does not fit.
    pub fn validate(&self, duplicates: Duplicates) -> Result<(), Problems> {
        validate(&self.schema, Some(self.ty), &self.value, duplicates).into_result(())
    }
}

fn validate(schema: &Schema, ty: Option<TypeId>, value: &Value, duplicates: Duplicates) -> Problems {
    match form_of(schema, ty, value) {
        Err(problems) => problems,
        Ok(Form::Scalar(scalar)) => scalar_problem(scalar, Some(value), ""),
        Ok(Form::List(list)) => match value {
            Value::Null => Problems::default(),
            Value::Array(items) => validate_items(schema, list, items, duplicates),
            other => Problems::one(format!("expected list, got &{{{}}}", go::go_text(other))),
        },
        Ok(Form::Map(map)) => match value {
            Value::Null => Problems::default(),
            Value::Object(fields) => validate_fields(schema, map, fields, duplicates),
            other => Problems::one(format!("expected map, got &{{{}}}", go::go_text(other))),
        },
    }
}

fn validate_items(schema: &Schema, list: &ListType, items: &[Value], duplicates: Duplicates) -> Problems {
    let mut problems = Problems::default();
    let mut seen = FieldSet::new();
    for (index, item) in items.iter().enumerate() {
        let inner = if list.is_atomic {
            validate(schema, list.element, item, duplicates).below(&format_args!("[{index}]"))
        } else {
            let element = match item_element(schema, list, item) {
                Ok(element) => element,
                Err(why) => {
                    problems.extend(Problems::one(format!("element {index}: {why}")));
                    return problems;
                }
            };
            if duplicates == Duplicates::Refused && seen.has_member(&element) {
                problems.extend(Problems::one(format!("duplicate entries for key {element}")));
            }
            let inner = validate(schema, list.element, item, duplicates).below(&element);
            seen.insert_member(element);
            inner
        };
        problems.extend(inner);
    }
    problems
}

fn validate_fields(
    schema: &Schema,
    map: &MapType,
    fields: &serde_json::Map<String, Value>,
    duplicates: Duplicates,
) -> Problems {
    let mut problems = Problems::default();
    for (name, value) in fields {
        let Some(ty) = map.type_of(name) else {
            let undeclared = Problems::one("field not declared in schema");
            problems.extend(undeclared.below(&PathElement::field(name)));
            return problems;
        };
        let inner = validate(schema, Some(ty), value, duplicates);
        if !inner.0.is_empty() {
            problems.extend(inner.below(&PathElement::field(name)));
        }
    }
    problems
}

/// Returns why a value is not of a scalar type. Absent and null values are of every type.
pub(super) fn scalar_problem(scalar: Scalar, value: Option<&Value>, prefix: &str) -> Problems {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Problems::default() };
    let why = match scalar {
        Scalar::Numeric if !value.is_number() => format!("expected numeric (int or float), got {}", go::go_type(value)),
        Scalar::String if !value.is_string() => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::go_syntax(value))
        }
        Scalar::Boolean if !value.is_boolean() => format!("expected boolean, got &{{{}}}", go::go_text(value)),
        Scalar::Untyped if value.is_array() || value.is_object() => {
            format!("expected any scalar, got &{{{}}}", go::go_text(value))
        }
        _ => return Problems::default(),
    };
    Problems::one(format!("{prefix}{why}"))
}
