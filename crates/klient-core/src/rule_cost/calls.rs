//! The costs of operators and functions.

use super::{
    estimate::{Estimator, Operand, Size},
    path::Path,
    types::Type,
};

/// The names that functions of libraries begin with: `sets.contains(a, b)`.
pub(super) const LIBRARIES: [&str; 9] =
    ["sets", "lists", "strings", "optional", "format", "ip", "base64", "math", "jsonpatch"];

/// Returns the cost of a call without those of its operands, and what is known of the result.
pub(super) fn call<'s>(
    estimator: &Estimator<'s>,
    function: &str,
    target: Option<&Operand<'s>>,
    arguments: &[Operand<'s>],
) -> Operand<'s> {
    let mut result = match (target, arguments) {
        (None, _) if matches!(function, "&&" | "||") => Operand::new(0, Type::Bool),
        (None, [condition, then, otherwise]) if function == "?:" => conditional(condition, then, otherwise),
        (None, [one, other]) => {
            binary(function, one, other).unwrap_or_else(|| named(estimator, function, None, arguments))
        }
        _ => named(estimator, function, target, arguments),
    };
    if result.kind == Type::Dyn && !matches!(function, "?:" | "+" | "[]" | "[?]") {
        result.kind = kind(function, target, arguments);
    }
    result
}

/// The cost, and the size of the result if the server knows it.
type Found = (u64, Option<Size>);

/// Returns the operand of the costliest of several ways to evaluate a call.
fn costliest<'s>(ways: &[Found], kind: Type<'s>) -> Operand<'s> {
    let mut operand = Operand::new(ways.iter().map(|(cost, _)| *cost).max().unwrap_or(1), kind);
    operand.size = ways.iter().filter_map(|(_, size)| *size).reduce(Size::or);
    operand
}

fn conditional<'s>(condition: &Operand<'s>, then: &Operand<'s>, otherwise: &Operand<'s>) -> Operand<'s> {
    let cost = condition.cost.saturating_add(then.cost.max(otherwise.cost));
    let mut operand = Operand::new(cost, then.kind.joined(&otherwise.kind));
    operand.size = Some(then.size().or(otherwise.size()));
    operand.elements = then.elements.zip(otherwise.elements).map(|(one, other)| one.or(other));
    operand
}

fn binary<'s>(function: &str, one: &Operand<'s>, other: &Operand<'s>) -> Option<Operand<'s>> {
    let smaller = one.size().most.min(other.size().most);
    let both = |kind: &Type<'s>| one.kind.can_be(kind) && other.kind.can_be(kind);
    let is_text = both(&Type::Text) || both(&Type::Bytes);
    let is_other = ![&one.kind, &other.kind].iter().any(|kind| matches!(kind, Type::Text | Type::Bytes));
    Some(match function {
        "==" if one.kind == other.kind => costliest(&[(equality(&one.kind, other, smaller), None)], Type::Bool),
        "==" | "!=" => costliest(&[(tenth(smaller), None)], Type::Bool),
        "<" | "<=" | ">" | ">=" => {
            let text = is_text.then(|| (tenth(smaller), None));
            let fixed = is_other.then_some((1, None));
            costliest(&text.into_iter().chain(fixed).collect::<Vec<_>>(), Type::Bool)
        }
        "+" => {
            let size = one.size().plus(other.size());
            let text = is_text.then(|| (tenth(size.most), Some(size)));
            let is_list = one.kind.can_be_list() && other.kind.can_be_list();
            let list = is_list.then_some((1, Some(size)));
            let fixed = (is_other && !matches!(one.kind, Type::List(_))).then_some((1, None));
            let kind = if one.kind.is_dyn() || other.kind.is_dyn() { Type::Dyn } else { sum_kind(one, other) };
            let mut sum = costliest(&text.into_iter().chain(list).chain(fixed).collect::<Vec<_>>(), kind);
            sum.elements = one.elements.zip(other.elements).map(|(one, other)| one.or(other));
            sum
        }
        "in" => {
            let list = other.kind.can_be_list().then(|| (other.size().most, None));
            let map = other.kind.can_be_map().then_some((1, None));
            costliest(&list.into_iter().chain(map).collect::<Vec<_>>(), Type::Bool)
        }
        "[]" => {
            let mut element = Operand::new(1, one.kind.element());
            if one.kind.can_be_list() || one.kind.can_be_map() {
                element.size = one.elements.map(|elements| elements.values);
                let is_list = matches!(one.kind, Type::List(_));
                element.path = one.path.below(if is_list { "@items" } else { "@values" });
            }
            element
        }
        "[?]" => match one.kind.element() {
            optional @ Type::Optional(_) => Operand::new(1, optional),
            kind => Operand::new(1, Type::optional(kind)),
        },
        _ => return None,
    })
}

fn sum_kind<'s>(one: &Operand<'s>, other: &Operand<'s>) -> Type<'s> {
    match (&one.kind, &other.kind) {
        (Type::Timestamp, _) | (_, Type::Timestamp) => Type::Timestamp,
        (one, other) => one.joined(other),
    }
}

/// Returns the cost of comparing two values of a type.
fn equality(kind: &Type<'_>, other: &Operand<'_>, smaller: u64) -> u64 {
    match kind {
        Type::Library("format") => tenth(64),
        Type::Library("url") => tenth(other.size.map_or(1, |size| size.most)),
        Type::Library("optional" | "regex") => tenth(smaller),
        Type::Library(_) => 1,
        _ => tenth(smaller),
    }
}

/// Returns the cost of a function by its name.
fn named<'s>(
    estimator: &Estimator<'s>,
    function: &str,
    target: Option<&Operand<'s>>,
    arguments: &[Operand<'s>],
) -> Operand<'s> {
    let found = on_target(estimator, function, target, arguments).or_else(|| of_arguments(function, target, arguments));
    let (cost, size) = found.unwrap_or((1, None));
    let mut operand = Operand::new(cost, Type::Dyn);
    operand.size = size;
    operand
}

/// Returns the cost of a function that depends on the size of its target.
fn on_target<'s>(
    estimator: &Estimator<'s>,
    function: &str,
    target: Option<&Operand<'s>>,
    arguments: &[Operand<'s>],
) -> Option<Found> {
    let target = target?;
    let size = target.size();
    let argument = arguments.first();
    Some(match (function, argument) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => match element(estimator, target) {
            None => (tenth(size.most), None),
            Some((kind, each)) => {
                let texts = if matches!(kind, Type::Text | Type::Bytes) { tenth(each.most) } else { 0 };
                (size.most.saturating_mul(texts.saturating_add(1)), None)
            }
        },
        ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => (tenth(size.most), Some(size)),
        ("replace", Some(old)) => {
            let new = arguments.get(1)?.size();
            (scaled(size.most, 0.2), Some(replaced(size, old.size(), new)))
        }
        ("split", _) => {
            let limit = arguments.get(1).and_then(|limit| limit.number);
            let most = limit.map_or(size.most, i64::cast_unsigned);
            (scaled(size.most, 0.2), Some(Size { least: 0, most }))
        }
        ("join", separator) => {
            let texts = element(estimator, target).map_or(Size::exactly(0), |(_, each)| size.times(each));
            let gaps = Size { least: size.least.saturating_sub(1), most: size.most.saturating_sub(1) };
            let whole = separator.map_or(texts, |separator| texts.plus(separator.size().times(gaps)));
            (tenth(whole.most), Some(whole))
        }
        ("find" | "findAll", Some(pattern)) => {
            (searched(size, pattern.size()), Some(Size { least: 0, most: size.most }))
        }
        ("matches", Some(pattern)) => (searched(size, pattern.size()), None),
        ("contains", Some(part)) => (tenth(size.most).saturating_mul(tenth(part.size().most)), None),
        ("startsWith" | "endsWith", Some(part)) => (tenth(part.size().most), None),
        ("format", Some(_)) => (tenth(size.most), None),
        ("containsIP", Some(address)) => (4 + parsed(address), None),
        ("containsCIDR", Some(range)) => (4 + 2 + 1 + parsed(range), None),
        ("slice", Some(start)) => {
            let number = |operand: &Operand<'s>| operand.number.map(|number| number.max(0).cast_unsigned());
            let end = arguments.get(1).and_then(number).unwrap_or(size.most);
            new_list(1.0, Size::exactly(end.wrapping_sub(number(start).unwrap_or(0))))
        }
        ("flatten", depth) => {
            let depth = depth.map_or(1.0, |depth| depth.number.map_or(u64::MAX as f64, |depth| depth.max(0) as f64));
            new_list(depth, size)
        }
        ("reverse", None) => new_list(1.0, size),
        ("distinct", None) => new_list(2.0, size.times(size)),
        ("sort", None) => new_list(sort_factor(&target.kind), size.times(size)),
        ("@sortBy", Some(keys)) => new_list(sort_factor(&keys.kind), keys.size().times(keys.size())),
        _ => return None,
    })
}

/// Returns the cost of a function that depends on the sizes of its arguments.
fn of_arguments<'s>(function: &str, target: Option<&Operand<'s>>, arguments: &[Operand<'s>]) -> Option<Found> {
    let argument = arguments.first();
    Some(match (function, argument) {
        ("check", _) => (350_000, None),
        ("fieldSelector" | "labelSelector", Some(selector)) => {
            let length = selector.size().most;
            // Each requirement, of at least two characters, is a struct with a list.
            let requirements = scaled(scaled(length, 0.5), 50.0);
            (10_u64.saturating_add(tenth(length)).saturating_add(requirements), None)
        }
        ("url" | "jsonpatch.escapeKey", Some(text)) => (tenth(text.size().most), Some(text.size())),
        ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", Some(text)) => {
            (tenth(text.size().most), None)
        }
        ("ip.isCanonical", Some(text)) => (scaled(text.size().most, 0.2), None),
        ("validate", Some(text)) => (scaled(tenth(text.size().most), 128.0 * 0.25), None),
        ("sets.contains" | "sets.intersects", Some(one)) => (sets(one, arguments.get(1)?, 1.0), None),
        ("sets.equivalent", Some(one)) => (sets(one, arguments.get(1)?, 2.0), None),
        ("lists.range", Some(end)) => {
            let end = end.number.map_or(u64::MAX, |end| end.max(0).cast_unsigned());
            new_list(1.0, Size::exactly(end))
        }
        ("strings.quote", Some(text)) => {
            let Size { least, most } = text.size();
            let size = Size { least: least.wrapping_add(2), most: most.wrapping_mul(2).wrapping_add(2) };
            (tenth(text.size().most), Some(size))
        }
        ("bytes", Some(text)) if target.is_none() && text.kind.can_be(&Type::Text) => {
            let Size { least, most } = text.size();
            (tenth(most), Some(Size { least, most: most.wrapping_mul(4) }))
        }
        ("string", Some(bytes)) if target.is_none() && bytes.kind.can_be(&Type::Bytes) => {
            let Size { least, most } = bytes.size();
            (tenth(most).max(1), Some(Size { least: least / 4, most }))
        }
        _ => return None,
    })
}

/// Returns the type and the size of the elements of a list.
fn element<'s>(estimator: &Estimator<'s>, list: &Operand<'s>) -> Option<(Type<'s>, Size)> {
    let kind = list.kind.parameter()?.clone();
    let path = if list.path.is_empty() { Path::default() } else { list.path.below("@items") };
    let size = estimator.declared_size(&path, &kind);
    Some((kind, size.unwrap_or(Size::UNKNOWN)))
}

/// Returns the size of a text in which parts were replaced.
fn replaced(size: Size, old: Size, new: Size) -> Size {
    let (count, kept) = match () {
        // An empty part is found around every character.
        () if old.least == 0 => (size.most.saturating_add(1), size.most),
        () if new.most <= old.least => (0, size.most),
        () => (size.most.div_ceil(old.least), 0),
    };
    let most = count.saturating_mul(new.most).saturating_add(kept);
    let (count, kept) = match () {
        () if old.most == 0 => (size.least.saturating_add(1), size.least),
        () if old.most <= new.least => (0, size.least),
        () => (size.least.div_ceil(old.most), 0),
    };
    Size { least: count.saturating_mul(new.least).saturating_add(kept), most }
}

/// Returns the cost of a search for a pattern, of which four characters are one state.
fn searched(text: Size, pattern: Size) -> u64 {
    tenth(text.most.saturating_add(1)).saturating_mul(scaled(pattern.most, 0.25))
}

/// Returns the cost of parsing an address if it is a text.
fn parsed(address: &Operand<'_>) -> u64 {
    if address.kind.can_be(&Type::Text) { tenth(address.size().most).min(u64::MAX - 7) } else { 0 }
}

fn sets(one: &Operand<'_>, other: &Operand<'_>, factor: f64) -> u64 {
    scaled(one.size().times(other.size()).most, factor).saturating_add(1)
}

fn new_list(factor: f64, size: Size) -> Found {
    (scaled(size.most, factor).saturating_add(11), Some(size))
}

fn sort_factor(list: &Type<'_>) -> f64 {
    match list.parameter() {
        Some(kind) if kind.can_be(&Type::Text) || kind.can_be(&Type::Bytes) => 2.1,
        _ => 2.0,
    }
}

fn tenth(size: u64) -> u64 {
    scaled(size, 0.1)
}

/// Returns a product, rounded up.
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// Returns the type of the result of a function.
fn kind<'s>(function: &str, target: Option<&Operand<'s>>, arguments: &[Operand<'s>]) -> Type<'s> {
    let argument = || arguments.first().map_or(Type::Dyn, |argument| argument.kind.clone());
    let own = || target.map_or(Type::Dyn, |target| target.kind.clone());
    match function {
        "@mapInsert" => argument(),
        "negated" | "-" | "*" | "/" | "%" => match (arguments, function) {
            ([one, other], "-") if one.kind == Type::Timestamp && other.kind == Type::Timestamp => Type::Duration,
            _ => argument(),
        },
        "size" | "int" | "indexOf" | "lastIndexOf" | "compareTo" | "asInteger" | "sign" | "major" | "minor"
        | "patch" | "family" | "prefixLength" | "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth"
        | "getDayOfWeek" | "getDayOfYear" | "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => Type::Int,
        "uint" => Type::Uint,
        "double" | "asApproximateFloat" => Type::Double,
        "string"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "charAt"
        | "replace"
        | "join"
        | "find"
        | "format"
        | "strings.quote"
        | "getScheme"
        | "getHost"
        | "getHostname"
        | "getPort"
        | "getEscapedPath"
        | "reason"
        | "error"
        | "base64.encode"
        | "jsonpatch.escapeKey" => Type::Text,
        "bytes" | "base64.decode" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Kind,
        "split" | "findAll" => Type::list(Type::Text),
        "getQuery" => Type::map(Type::Text, Type::list(Type::Text)),
        "lists.range" => Type::list(Type::Int),
        "slice" | "reverse" | "distinct" | "sort" | "@sortBy" | "or" => own(),
        "flatten" => match (own().element(), arguments.is_empty()) {
            (inner @ Type::List(_), true) => inner,
            _ => Type::list(Type::Dyn),
        },
        "sum" | "min" | "max" => own().element(),
        "value" | "orValue" => match own() {
            Type::Optional(inner) => Type::clone(&inner),
            _ => argument(),
        },
        "optional.of" | "optional.ofNonZeroValue" => Type::optional(argument()),
        "optional.none" => Type::optional(Type::Unset),
        "url" => Type::Library("url"),
        "quantity" | "add" | "sub" => Type::Library("quantity"),
        "ip" => Type::Library("ip"),
        "cidr" | "masked" => Type::Library("cidr"),
        "semver" => Type::Library("semver"),
        "format.named" => Type::optional(Type::Library("format")),
        "validate" => Type::optional(Type::list(Type::Text)),
        _ if function.starts_with("format.") => Type::Library("format"),
        "path" | "group" | "resource" | "subresource" | "namespace" | "name" | "serviceAccount" | "check"
        | "fieldSelector" | "labelSelector" => Type::Library("authorizer"),
        _ => Type::Bool,
    }
}
