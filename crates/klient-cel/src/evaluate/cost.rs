//! The costs of calls, in the units of the real server.
//!
//! A cost depends on the arguments alone, so that it is paid before the call.

use kube_cel::cel::{
    Value as Cel,
    common::ast::{EntryExpr, Expr, IdedExpr, operators},
    objects::OptionalValue,
};

use super::{format, function};

/// Returns the cost of a call.
pub(super) fn of_call(name: &str, values: &[Cel]) -> u64 {
    // A call with too few arguments fails after it was paid.
    let (one, two) = (values.first().unwrap_or(&Cel::Null), values.get(1).unwrap_or(&Cel::Null));
    let (first, second) = (values.first().map_or(0, size), values.get(1).map_or(0, size));
    match name {
        operators::EQUALS if is_of_kubernetes(one) => 1,
        operators::EQUALS | operators::NOT_EQUALS => tenth(first.min(second)),
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS if is_text(one) => {
            tenth(first.min(second))
        }
        operators::ADD if is_text(one) => tenth(first.saturating_add(second)),
        operators::IN if matches!(two, Cel::List(_)) => second,
        "startsWith" | "endsWith" | "bytes" | "strings.quote" | "format" => tenth(first),
        "string" if matches!(one, Cel::Bytes(_)) => tenth(first),
        "contains" => tenth(first).saturating_mul(tenth(second)),
        "matches" | "find" | "findAll" => matching(first, second),
        "validate" => format::of(one).map_or(1, |format| matching(second, format.pattern)),
        "check" => CHECK,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => values.first().map_or(1, traversal),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "jsonpatch.escapeKey" => tenth(first),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => tenth(first),
        "ip" if matches!(one, Cel::Opaque(_)) => 1,
        "ip" => tenth(first),
        "replace" | "split" | "ip.isCanonical" => tenth(first.saturating_mul(2)),
        "join" => tenth(joined(values).saturating_mul(2)),
        "containsIP" => tenth(first.saturating_mul(2)) + text_of(two),
        "containsCIDR" => tenth(first.saturating_mul(2)) + tenth(first) + 1 + text_of(two),
        "fieldSelector" | "labelSelector" => LIST + tenth(second) + second.div_ceil(2).saturating_mul(LIST + STRUCT),
        "sets.contains" | "sets.intersects" => first.saturating_mul(second).saturating_add(1),
        "sets.equivalent" => first.saturating_mul(second).saturating_mul(2).saturating_add(1),
        "slice" => match values {
            [_, Cel::Int(from), Cel::Int(to)] => LIST + 1 + to.abs_diff(*from).min(first),
            _ => 1,
        },
        "flatten" => match values {
            [_, Cel::Int(depth)] => first.saturating_mul(depth.unsigned_abs()).saturating_add(LIST + 1),
            _ => first + LIST + 1,
        },
        "lists.range" => match values {
            [Cel::Int(end)] => u64::try_from(*end).unwrap_or(0).saturating_add(LIST + 1),
            _ => 1,
        },
        "reverse" if !is_text(one) => first + LIST + 1,
        "distinct" | "sort" => values.first().map_or(1, comparisons),
        _ => 1,
    }
}

/// Returns the cost of a comparison of each item of a list with each other.
pub(super) fn comparisons(list: &Cel) -> u64 {
    let Cel::List(items) = list else { return 1 };
    let pairs = (items.len() as u64).saturating_mul(items.len() as u64);
    let texts = if items.first().is_some_and(is_text) { pairs / 10 } else { 0 };
    pairs.saturating_mul(2).saturating_add(texts + LIST + 1)
}

/// Returns whether the real server computes an expression once, before it evaluates: literals of constants, and their conversions.
pub(super) fn is_constant(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Map(map) => map.entries.iter().all(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => is_constant(&entry.key) && is_constant(&entry.value),
            EntryExpr::StructField(_) => false,
        }),
        Expr::Call(call) => match &call.args[..] {
            [argument] => CONVERSIONS.contains(&call.func_name.as_str()) && is_constant(argument),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether the real server looks a value up in a set: a list of scalars that are constants.
pub(super) fn is_constant_set(list: &IdedExpr) -> bool {
    let is_scalar = |item: &IdedExpr| !matches!(&item.expr, Expr::List(_) | Expr::Map(_)) && is_constant(item);
    matches!(&list.expr, Expr::List(list) if list.elements.iter().all(is_scalar))
}

/// Returns whether an expression names a value, so that a field of it costs one unit. A field of another value costs two.
pub(super) fn is_attribute(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => !select.test,
        Expr::Call(call) => matches!(
            call.func_name.as_str(),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT | operators::CONDITIONAL
        ),
        _ => false,
    }
}

/// Returns the number of characters, bytes, items or entries.
fn size(value: &Cel) -> u64 {
    match value {
        Cel::String(text) => text.chars().count() as u64,
        Cel::Bytes(bytes) => bytes.len() as u64,
        Cel::List(items) => items.len() as u64,
        Cel::Map(map) => map.map.len() as u64,
        Cel::Opaque(opaque) => match (opaque.downcast_ref::<OptionalValue>(), opaque.runtime_type_name()) {
            (Some(optional), _) => optional.value().map_or(1, size),
            (None, "net.IP") => number_of("family", value).map_or(1, |family| if family == 4 { 4 } else { 16 }),
            (None, "net.CIDR") => number_of("prefixLength", value).map_or(1, |bits| bits.div_ceil(8)),
            _ => 1,
        },
        _ => 1,
    }
}

fn number_of(method: &str, value: &Cel) -> Option<u64> {
    match function(method, true, vec![value.clone()]) {
        Ok(Cel::Int(number)) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn is_text(value: &Cel) -> bool {
    matches!(value, Cel::String(_) | Cel::Bytes(_))
}

fn is_of_kubernetes(value: &Cel) -> bool {
    matches!(value, Cel::Opaque(opaque) if opaque.downcast_ref::<OptionalValue>().is_none())
}

/// Returns the cost of parsing a value that may be a text.
fn text_of(value: &Cel) -> u64 {
    if is_text(value) { tenth(size(value)) } else { 0 }
}

fn matching(text: u64, pattern: u64) -> u64 {
    tenth(text.saturating_add(1)).saturating_mul(pattern.div_ceil(4))
}

/// Returns the size of the joined texts.
fn joined(values: &[Cel]) -> u64 {
    let Some(Cel::List(items)) = values.first() else { return 1 };
    let separators = values.get(1).map_or(0, size).saturating_mul((items.len() as u64).saturating_sub(1));
    items.iter().map(size).fold(separators, u64::saturating_add)
}

/// Returns the cost of reading a value with all its parts.
fn traversal(value: &Cel) -> u64 {
    match value {
        Cel::String(text) => text.len() as u64 / 10,
        Cel::Bytes(bytes) => bytes.len() as u64 / 10,
        Cel::List(items) => items.iter().map(traversal).fold(0, u64::saturating_add),
        _ => 1,
    }
}

fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

/// The cost of a list.
pub(super) const LIST: u64 = 10;
/// The cost of a map.
pub(super) const MAP: u64 = 30;
/// The cost of an object.
pub(super) const STRUCT: u64 = 40;
/// The cost of a request to the authorizer.
const CHECK: u64 = 350_000;
/// The functions that convert a value.
const CONVERSIONS: &[&str] =
    &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];
