//! Functions that the crate `kube-cel` has in another form: conversions to text, and messages of lists.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::Value as Cel;

use super::{Outcome, function, operator, text};
use crate::EvaluationError;

/// Applies a function of this module. Returns `None` for others.
pub(super) fn apply(name: &str, values: &[Cel]) -> Option<Outcome> {
    match (name, values) {
        ("string", [value]) => shown(value).map(|shown| Ok(text(&shown))),
        ("slice", [Cel::List(items), Cel::Int(from), Cel::Int(to)]) => Some(slice(items, *from, *to)),
        ("sum", [Cel::List(items)]) => sum_of_durations(items),
        ("isSorted", [Cel::List(items)]) => Some(is_sorted(items)),
        ("min", [Cel::List(items)]) => Some(extreme(items, name, Ordering::Less)),
        ("max", [Cel::List(items)]) => Some(extreme(items, name, Ordering::Greater)),
        // Larger quantities have no form as an integer.
        ("isInteger", [quantity]) => Some(Ok(Cel::Bool(function("asInteger", true, vec![quantity.clone()]).is_ok()))),
        ("quantity", [Cel::String(text)]) => Some(quantity(text)),
        _ => None,
    }
}

/// Returns the arguments of a function in a form that it takes.
pub(super) fn arguments(name: &str, mut values: Vec<Cel>) -> Vec<Cel> {
    if name == "format"
        && let Some(Cel::List(items)) = values.get_mut(1)
    {
        let convert = |item: &Cel| match item {
            Cel::Duration(_) | Cel::Timestamp(_) => shown(item).map_or_else(|| item.clone(), |shown| text(&shown)),
            item => item.clone(),
        };
        *items = Arc::new(items.iter().map(convert).collect());
    }
    values
}

/// Returns the result of a function in the real server's form.
pub(super) fn result(name: &str, result: Outcome) -> Outcome {
    match (name, result) {
        ("asInteger", Err(_)) => Err(EvaluationError::new("cannot convert value to integer")),
        ("flatten", Err(error)) if error.to_string().starts_with("depth") => {
            Err(EvaluationError::new("level must be non-negative"))
        }
        (_, result) => result,
    }
}

/// Returns the text of a value, if it is one that this module converts.
fn shown(value: &Cel) -> Option<String> {
    match value {
        Cel::Bool(value) => Some(value.to_string()),
        Cel::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        Cel::Duration(duration) => {
            let nanoseconds = duration.num_nanoseconds()?;
            let seconds = nanoseconds as f64 / 1e9;
            Some(if nanoseconds % 1_000_000_000 == 0 {
                format!("{}s", nanoseconds / 1_000_000_000)
            } else {
                format!("{seconds}s")
            })
        }
        Cel::Timestamp(time) => Some(time.to_rfc3339().replace("+00:00", "Z")),
        _ => None,
    }
}

fn slice(items: &[Cel], from: i64, to: i64) -> Outcome {
    let wrong = |why: &str| EvaluationError::new(format!("cannot slice({from}, {to}), {why}"));
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else {
        return Err(wrong("negative indexes not supported"));
    };
    if start > end {
        return Err(wrong("start index must be less than or equal to end index"));
    }
    match items.get(start..end) {
        Some(part) => Ok(Cel::List(Arc::new(part.to_vec()))),
        None => Err(wrong(&format!("list is length {}", items.len()))),
    }
}

fn is_sorted(items: &[Cel]) -> Outcome {
    let mut is_sorted = true;
    for pair in items.windows(2) {
        let order = operator::order(&pair[0], &pair[1]).ok_or_else(EvaluationError::no_such_overload)?;
        is_sorted &= order.is_le();
    }
    Ok(Cel::Bool(is_sorted))
}

/// Returns the first of the items that are less, or greater, than all others.
fn extreme(items: &[Cel], name: &str, wanted: Ordering) -> Outcome {
    let (first, rest) =
        items.split_first().ok_or_else(|| EvaluationError::new(format!("{name} called on empty list")))?;
    let mut found = first;
    for item in rest {
        if operator::order(item, found).ok_or_else(EvaluationError::no_such_overload)? == wanted {
            found = item;
        }
    }
    Ok(found.clone())
}

/// Parses a quantity, with the errors of the real server.
fn quantity(source: &str) -> Outcome {
    let digits = source.strip_prefix(['+', '-']).unwrap_or(source);
    let suffix = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let unit = suffix.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['+', '-']);
    function("quantity", false, vec![text(source)]).map_err(|_| {
        EvaluationError::new(if digits.len() > suffix.len() && unit.chars().all(|c| UNITS.contains(c)) {
            "unable to parse quantity's suffix"
        } else {
            WRONG_QUANTITY
        })
    })
}

fn sum_of_durations(items: &[Cel]) -> Option<Outcome> {
    let mut durations = items.iter().map(|item| match item {
        Cel::Duration(duration) => Some(*duration),
        _ => None,
    });
    let first = durations.next()??;
    let overflow = || EvaluationError::new("integer overflow");
    let sum = durations.try_fold(Ok(first), |sum: Result<_, EvaluationError>, next| {
        let next = next?;
        Some(sum.and_then(|sum| sum.checked_add(&next).ok_or_else(overflow)))
    });
    sum.map(|sum| sum.map(Cel::Duration))
}

/// The characters of the units of quantities.
const UNITS: &str = "eEinumkKMGTP";
const WRONG_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
