//! Operators and the functions whose messages or types differ from those of the `cel` crate.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{
    Value as Cel,
    common::ast::operators,
    objects::{Key, KeyRef, Map, OptionalValue},
};

use super::{Outcome, optional_of, text};
use crate::EvaluationError;

/// Applies an operator or a function of this module. Returns `None` for all others, and for types that others know.
pub(super) fn apply(name: &str, values: &[Cel]) -> Option<Outcome> {
    let boolean = |value: bool| Some(Ok(Cel::Bool(value)));
    match (name, values) {
        (operators::EQUALS, [left, right]) => boolean(equal(left, right)),
        (operators::NOT_EQUALS, [left, right]) => boolean(!equal(left, right)),
        (operators::LOGICAL_NOT, [Cel::Bool(value)]) => boolean(!value),
        (operators::LOGICAL_NOT, _) => Some(Err(EvaluationError::no_such_overload())),
        (operators::NEGATE, [Cel::Int(value)]) => Some(value.checked_neg().map(Cel::Int).ok_or_else(overflow)),
        (operators::NEGATE, [Cel::Float(value)]) => Some(Ok(Cel::Float(-value))),
        (operators::IN, [item, Cel::List(items)]) => boolean(items.iter().any(|known| equal(known, item))),
        (operators::IN, [item, Cel::Map(map)]) => boolean(entry(map, item).is_some()),
        (operators::IN, _) => Some(Err(EvaluationError::no_such_overload())),
        (operators::LESS, [left, right]) => compared(left, right, Ordering::is_lt),
        (operators::LESS_EQUALS, [left, right]) => compared(left, right, Ordering::is_le),
        (operators::GREATER, [left, right]) => compared(left, right, Ordering::is_gt),
        (operators::GREATER_EQUALS, [left, right]) => compared(left, right, Ordering::is_ge),
        (
            operators::ADD | operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO,
            [left, right],
        ) => arithmetic(name, left, right),
        ("type", [value]) => Some(Ok(text(&type_name(value)))),
        ("dyn", [value]) => Some(Ok(value.clone())),
        ("bool", [Cel::Bool(value)]) => boolean(*value),
        ("bool", [Cel::String(word)]) => Some(match word.as_str() {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Cel::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Cel::Bool(false)),
            _ => Err(EvaluationError::new("Type conversion error")),
        }),
        ("size", [value]) => size(value),
        ("contains", [Cel::String(whole), Cel::String(part)]) => boolean(whole.contains(part.as_str())),
        ("startsWith", [Cel::String(whole), Cel::String(part)]) => boolean(whole.starts_with(part.as_str())),
        ("endsWith", [Cel::String(whole), Cel::String(part)]) => boolean(whole.ends_with(part.as_str())),
        ("contains" | "startsWith" | "endsWith", [Cel::String(_) | Cel::Null | Cel::Int(_), _]) => {
            Some(Err(EvaluationError::no_such_overload()))
        }
        ("optional.none", []) => Some(Ok(optional_of(None))),
        ("optional.of", [value]) => Some(Ok(optional_of(Some(value.clone())))),
        ("optional.ofNonZeroValue", [value]) => Some(Ok(optional_of((!value.is_zero()).then(|| value.clone())))),
        ("value", [value]) => as_optional(value)
            .map(|value| value.value().cloned().ok_or_else(|| EvaluationError::new("optional.none() dereference"))),
        ("hasValue", [value]) => as_optional(value).map(|value| Ok(Cel::Bool(value.value().is_some()))),
        _ => None,
    }
}

/// Returns whether two values are equal. Numbers are compared by their value, and values of different types differ.
pub(super) fn equal(left: &Cel, right: &Cel) -> bool {
    match (left, right) {
        (Cel::List(left), Cel::List(right)) => {
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(left, right)| equal(left, right))
        }
        (Cel::Map(left), Cel::Map(right)) => {
            left.map.len() == right.map.len()
                && left.map.iter().all(|(key, value)| right.map.get(key).is_some_and(|other| equal(value, other)))
        }
        (Cel::Opaque(_), Cel::Opaque(_)) => match (as_optional(left), as_optional(right)) {
            (Some(left), Some(right)) => match (left.value(), right.value()) {
                (Some(left), Some(right)) => equal(left, right),
                (None, None) => true,
                _ => false,
            },
            _ => left == right,
        },
        _ => match numbers(left, right) {
            Some(order) => order == Some(Ordering::Equal),
            None => std::mem::discriminant(left) == std::mem::discriminant(right) && left == right,
        },
    }
}

/// Compares two numbers. Returns `None` if one of them is something else.
fn numbers(left: &Cel, right: &Cel) -> Option<Option<Ordering>> {
    use Cel::{Float, Int, UInt};
    Some(match (left, right) {
        (Int(left), Int(right)) => Some(left.cmp(right)),
        (UInt(left), UInt(right)) => Some(left.cmp(right)),
        (Float(left), Float(right)) => left.partial_cmp(right),
        (Int(left), UInt(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (UInt(left), Int(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Int(left), Float(right)) => (*left as f64).partial_cmp(right),
        (Float(left), Int(right)) => left.partial_cmp(&(*right as f64)),
        (UInt(left), Float(right)) => (*left as f64).partial_cmp(right),
        (Float(left), UInt(right)) => left.partial_cmp(&(*right as f64)),
        _ => return None,
    })
}

/// Compares two values by their order. Returns `None` for types without an order here.
pub(super) fn order(left: &Cel, right: &Cel) -> Option<Ordering> {
    match (left, right) {
        (Cel::String(left), Cel::String(right)) => Some(left.cmp(right)),
        (Cel::Bytes(left), Cel::Bytes(right)) => Some(left.cmp(right)),
        (Cel::Bool(left), Cel::Bool(right)) => Some(left.cmp(right)),
        (Cel::Timestamp(left), Cel::Timestamp(right)) => Some(left.cmp(right)),
        (Cel::Duration(left), Cel::Duration(right)) => Some(left.cmp(right)),
        _ => numbers(left, right).flatten(),
    }
}

fn compared(left: &Cel, right: &Cel, test: fn(Ordering) -> bool) -> Option<Outcome> {
    if let Some(None) = numbers(left, right) {
        // Not a number.
        return Some(Ok(Cel::Bool(false)));
    }
    Some(order(left, right).map(|order| Cel::Bool(test(order))).ok_or_else(EvaluationError::no_such_overload))
}

fn arithmetic(name: &str, left: &Cel, right: &Cel) -> Option<Outcome> {
    let is_division = matches!(name, operators::DIVIDE | operators::MODULO);
    let by_zero =
        || EvaluationError::new(if name == operators::DIVIDE { "division by zero" } else { "modulus by zero" });
    Some(match (left, right) {
        (Cel::Int(_), Cel::Int(0)) | (Cel::UInt(_), Cel::UInt(0)) if is_division => Err(by_zero()),
        (Cel::Int(left), Cel::Int(right)) => {
            let result = match name {
                operators::ADD => left.checked_add(*right),
                operators::SUBSTRACT => left.checked_sub(*right),
                operators::MULTIPLY => left.checked_mul(*right),
                operators::DIVIDE => left.checked_div(*right),
                _ => left.checked_rem(*right),
            };
            result.map(Cel::Int).ok_or_else(overflow)
        }
        (Cel::UInt(left), Cel::UInt(right)) => {
            let result = match name {
                operators::ADD => left.checked_add(*right),
                operators::SUBSTRACT => left.checked_sub(*right),
                operators::MULTIPLY => left.checked_mul(*right),
                operators::DIVIDE => left.checked_div(*right),
                _ => left.checked_rem(*right),
            };
            result.map(Cel::UInt).ok_or_else(|| EvaluationError::new("unsigned integer overflow"))
        }
        (Cel::Float(left), Cel::Float(right)) if name != operators::MODULO => Ok(Cel::Float(match name {
            operators::ADD => left + right,
            operators::SUBSTRACT => left - right,
            operators::MULTIPLY => left * right,
            _ => left / right,
        })),
        (Cel::String(left), Cel::String(right)) if name == operators::ADD => Ok(text(&format!("{left}{right}"))),
        (Cel::Bytes(left), Cel::Bytes(right)) if name == operators::ADD => {
            Ok(Cel::Bytes(Arc::new([&left[..], &right[..]].concat())))
        }
        (Cel::List(left), Cel::List(right)) if name == operators::ADD => {
            Ok(Cel::List(Arc::new([&left[..], &right[..]].concat())))
        }
        (Cel::Timestamp(_) | Cel::Duration(_), _) | (_, Cel::Timestamp(_) | Cel::Duration(_)) => return None,
        _ => Err(EvaluationError::no_such_overload()),
    })
}

fn overflow() -> EvaluationError {
    EvaluationError::new("integer overflow")
}

fn size(value: &Cel) -> Option<Outcome> {
    let length = match value {
        Cel::String(text) => text.chars().count(),
        Cel::Bytes(bytes) => bytes.len(),
        Cel::List(items) => items.len(),
        Cel::Map(map) => map.map.len(),
        _ => return Some(Err(EvaluationError::no_such_overload())),
    };
    Some(Ok(Cel::Int(i64::try_from(length).unwrap_or(i64::MAX))))
}

/// Returns a field of a value.
pub(super) fn select(operand: &Cel, field: &str) -> Outcome {
    if let Some(value) = as_optional(operand) {
        // A field of an optional value is optional.
        return Ok(optional_of(value.value().and_then(|value| select(value, field).ok())));
    }
    match operand {
        Cel::Map(map) => field_of(map, field).cloned().ok_or_else(|| EvaluationError::no_such_key(field)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Returns a field by its name, or by its escaped name if it is a word of CEL that is no longer reserved.
fn field_of<'a>(map: &'a Map, field: &str) -> Option<&'a Cel> {
    map.get(&KeyRef::String(field)).or_else(|| map.get(&KeyRef::String(&format!("__{field}__"))))
}

/// Returns whether a value has a field.
pub(super) fn has(operand: &Cel, field: &str) -> Result<bool, EvaluationError> {
    if let Some(value) = as_optional(operand) {
        return value.value().map_or(Ok(false), |value| has(value, field));
    }
    match operand {
        Cel::Map(map) => Ok(field_of(map, field).is_some()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Returns an item of a list, or the value of a key.
pub(super) fn index(operand: &Cel, at: &Cel) -> Outcome {
    if let Some(value) = as_optional(operand) {
        return Ok(optional_of(value.value().and_then(|value| index(value, at).ok())));
    }
    match operand {
        Cel::List(items) => {
            let place = match at {
                Cel::Int(place) => *place,
                Cel::UInt(place) => i64::try_from(*place).unwrap_or(i64::MAX),
                Cel::Float(place) if place.fract() == 0.0 => *place as i64,
                _ => return Err(EvaluationError::no_such_overload()),
            };
            let found = usize::try_from(place).ok().and_then(|place| items.get(place));
            found.cloned().ok_or_else(|| EvaluationError::new(format!("index out of bounds: {place}")))
        }
        Cel::Map(map) => match entry(map, at) {
            Some(value) => Ok(value.clone()),
            None => Err(EvaluationError::no_such_key(&shown(at))),
        },
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Returns an optional value: the one of a key, if it is there.
pub(super) fn optional_index(operand: &Cel, at: &Cel) -> Outcome {
    let operand = match as_optional(operand) {
        Some(known) => match known.value() {
            Some(value) => value.clone(),
            None => return Ok(optional_of(None)),
        },
        None => operand.clone(),
    };
    match (&operand, at) {
        (Cel::List(_) | Cel::Map(_), _) => Ok(optional_of(index(&operand, at).ok())),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn entry<'a>(map: &'a Map, at: &Cel) -> Option<&'a Cel> {
    map.map.get(&key(at).ok()?)
}

/// Returns a key as messages show it.
pub(super) fn shown(key: &Cel) -> String {
    match key {
        Cel::String(text) => text.to_string(),
        Cel::Int(number) => number.to_string(),
        Cel::UInt(number) => number.to_string(),
        Cel::Bool(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// Returns a value as the key of a map.
pub(super) fn key(value: &Cel) -> Result<Key, EvaluationError> {
    Ok(match value {
        Cel::String(text) => Key::String(Arc::clone(text)),
        Cel::Int(number) => Key::Int(*number),
        Cel::UInt(number) => Key::Uint(*number),
        Cel::Bool(value) => Key::Bool(*value),
        _ => return Err(EvaluationError::new("unsupported key type")),
    })
}

/// Returns the value of an optional entry.
pub(super) fn optional(value: &Cel) -> Result<Option<&Cel>, EvaluationError> {
    as_optional(value).map(OptionalValue::value).ok_or_else(EvaluationError::no_such_overload)
}

/// Returns whether a value is an optional one that is absent.
pub(super) fn is_none(value: &Cel) -> bool {
    as_optional(value).is_some_and(|value| value.value().is_none())
}

fn as_optional(value: &Cel) -> Option<&OptionalValue> {
    match value {
        Cel::Opaque(opaque) => opaque.downcast_ref::<OptionalValue>(),
        _ => None,
    }
}

fn type_name(value: &Cel) -> String {
    let name = match value {
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Timestamp(_) => "google.protobuf.Timestamp",
        Cel::Duration(_) => "google.protobuf.Duration",
        Cel::Null => "null_type",
        Cel::Opaque(value) => value.runtime_type_name(),
        Cel::Function(..) => "function",
    };
    name.to_owned()
}
