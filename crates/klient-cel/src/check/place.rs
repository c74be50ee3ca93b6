//! The places of names and operators in a source. The parser does not keep them.

use kube_cel::cel::common::ast::{LiteralValue, operators};

/// Returns the place of the dot before a field.
pub(super) fn select(source: &str, field: &str) -> usize {
    let mut from = 0;
    while let Some(at) = source[from..].find(field).map(|at| at + from) {
        let before = source[..at].trim_end();
        if before.ends_with('.') && !continues(source, at + field.len()) {
            return before.len() - 1;
        }
        from = at + field.len().max(1);
    }
    0
}

/// Returns the place of the parenthesis of the macro `has` that reads a field.
pub(super) fn has(source: &str, field: &str) -> usize {
    let mut from = 0;
    while let Some(at) = source[from..].find("has(").map(|at| at + from) {
        let argument = source[at..].split(')').next().unwrap_or_default();
        if argument.trim_end().ends_with(field) {
            return at + "has".len();
        }
        from = at + 1;
    }
    select(source, field)
}

/// Returns the place of a text.
pub(super) fn literal(source: &str, text: &str) -> usize {
    let quoted = [format!("'{text}'"), format!("\"{text}\"")];
    quoted.iter().find_map(|quoted| source.find(quoted)).unwrap_or_default()
}

/// Returns the place of a literal.
pub(super) fn of_literal(source: &str, value: &LiteralValue) -> usize {
    match value {
        LiteralValue::String(text) => literal(source, text.inner()),
        LiteralValue::Int(number) => source.find(&number.inner().to_string()).unwrap_or_default(),
        LiteralValue::Boolean(value) => source.find(&value.inner().to_string()).unwrap_or_default(),
        _ => 0,
    }
}

/// Returns the place of a variable.
pub(super) fn name(source: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = source[from..].find(name).map(|at| at + from) {
        let is_start = !source[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        if is_start && !continues(source, at + name.len()) {
            return at;
        }
        from = at + name.len().max(1);
    }
    0
}

/// Returns the place of the first symbol after a name.
pub(super) fn after(source: &str, known: &str, symbol: char) -> usize {
    let at = name(source, known);
    source[at..].find(symbol).map_or(at, |distance| at + distance)
}

/// Returns the place of an operator, or of the parenthesis after the name of a function.
pub(super) fn call(source: &str, function: &str) -> usize {
    let symbol = match function {
        operators::INDEX => "[",
        operators::CONDITIONAL => "?",
        operators::IN => " in ",
        operators::LOGICAL_NOT => "!",
        operators::NEGATE => "-",
        _ if function.starts_with('_') && function.ends_with('_') => function.trim_matches('_'),
        _ => {
            let at = source.find(&format!("{function}(")).unwrap_or_default();
            return at + function.len();
        }
    };
    let at = source.find(symbol).unwrap_or_default();
    if symbol == " in " { at + 1 } else { at }
}

fn continues(source: &str, at: usize) -> bool {
    source[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
}
