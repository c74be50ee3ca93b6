//! The types of results.

use kube_cel::cel::common::ast::operators;

use super::types::Type;

/// Returns the type of the result of a call, `dyn` if it is not known, or `None` if the arguments do not fit.
pub(super) fn result(name: &str, arguments: &[Type]) -> Option<Type> {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, String, Timestamp, UInt};
    let is = |place: usize, wanted: &Type| arguments.get(place).is_some_and(|found| found.fits(wanted));
    match (name, arguments) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, _]) => (is(0, &Bool) && is(1, &Bool)).then_some(Bool),
        (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [_]) => is(0, &Bool).then_some(Bool),
        (operators::CONDITIONAL, [_, yes, no]) => {
            (is(0, &Bool) && yes.fits(no)).then(|| if yes == no { yes.clone() } else { Dyn })
        }
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => (left.fits(right)).then_some(Bool),
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [left, right]) => {
            let is_ordered = |kind: &Type| {
                matches!(
                    kind,
                    Dyn | Type::Named(_) | Bool | Int | UInt | Double | String | Bytes | Timestamp | Duration
                )
            };
            let are_numbers = is_number(left) && is_number(right);
            (is_ordered(left) && is_ordered(right) && (are_numbers || left.fits(right))).then_some(Bool)
        }
        (operators::ADD, [left, right]) => match (left, right) {
            (Dyn | Type::Named(_), other) | (other, Dyn | Type::Named(_)) => {
                Some(if *other == Dyn { Dyn } else { other.clone() })
            }
            (Timestamp, Duration) | (Duration, Timestamp) => Some(Timestamp),
            (Int | UInt | Double | String | Bytes | Duration | List(_), _) => left.fits(right).then(|| left.clone()),
            _ => None,
        },
        (operators::SUBSTRACT, [left, right]) => match (left, right) {
            (Dyn | Type::Named(_), _) | (_, Dyn | Type::Named(_)) => Some(Dyn),
            (Timestamp, Timestamp) => Some(Duration),
            (Timestamp, Duration) => Some(Timestamp),
            (Int | UInt | Double | Duration, _) => left.fits(right).then(|| left.clone()),
            _ => None,
        },
        (operators::MULTIPLY | operators::DIVIDE, [left, right]) => match (left, right) {
            (Dyn | Type::Named(_), _) | (_, Dyn | Type::Named(_)) => Some(Dyn),
            (Int | UInt | Double, _) => left.fits(right).then(|| left.clone()),
            _ => None,
        },
        (operators::MODULO, [left, right]) => match (left, right) {
            (Dyn | Type::Named(_), _) | (_, Dyn | Type::Named(_)) => Some(Dyn),
            (Int | UInt, _) => left.fits(right).then(|| left.clone()),
            _ => None,
        },
        (operators::NEGATE, [Int | Double | Dyn]) => Some(arguments[0].clone()),
        (operators::NEGATE, _) => None,
        (operators::INDEX, [operand, key]) => match operand {
            List(item) => (key.fits(&Int) || is_number(key)).then(|| (**item).clone()),
            Map(value) => key.fits(&String).then(|| (**value).clone()),
            Type::Optional(inner) => match &**inner {
                List(item) | Map(item) => Some(Type::Optional(item.clone())),
                _ => Some(Dyn),
            },
            Dyn | Type::Named(_) => Some(Dyn),
            _ => None,
        },
        (operators::IN, [item, container]) => match container {
            List(known) => item.fits(known).then_some(Bool),
            Map(_) => item.fits(&String).then_some(Bool),
            Dyn | Type::Named(_) => Some(Bool),
            _ => None,
        },
        _ => of_function(name, arguments),
    }
}

/// Returns the type of the result of a function.
fn of_function(name: &str, arguments: &[Type]) -> Option<Type> {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, String, Timestamp, UInt};
    let is = |place: usize, wanted: &Type| arguments.get(place).is_some_and(|found| found.fits(wanted));
    match (name, arguments) {
        ("size", [value]) => matches!(value, String | Bytes | List(_) | Map(_) | Dyn | Type::Named(_)).then_some(Int),
        ("startsWith" | "endsWith" | "contains" | "matches", [_, _]) => {
            (is(0, &String) && is(1, &String)).then_some(Bool)
        }
        ("min" | "max", [List(item)]) => {
            let has_order = !matches!(**item, List(_) | Map(_) | Type::Object(_));
            has_order.then(|| (**item).clone())
        }
        ("sum", [List(item)]) => {
            matches!(**item, Int | UInt | Double | Duration | Dyn | Type::Named(_)).then(|| (**item).clone())
        }
        ("int", [_]) => Some(Int),
        ("string" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "charAt" | "find", _) => {
            Some(String)
        }
        ("double", [_]) => Some(Double),
        ("duration", [_]) => Some(Duration),
        ("timestamp", [_]) => Some(Timestamp),
        ("split" | "findAll", _) => Some(List(Box::new(String))),
        ("isURL" | "isIP" | "isCIDR" | "isQuantity" | "isSemver", [_, ..]) => is(0, &String).then_some(Bool),
        ("isSorted" | "hasValue" | "allowed", _) => Some(Bool),
        ("indexOf" | "lastIndexOf", _) => Some(Int),
        ("join", _) => Some(String),
        _ => Some(Dyn),
    }
}

/// Returns whether there is a function or an operator of this name, for any types.
pub(super) fn is_known(name: &str) -> bool {
    super::is_operator(name) || FUNCTIONS.contains(&name)
}

fn is_number(kind: &Type) -> bool {
    matches!(kind, Type::Int | Type::UInt | Type::Double)
}

/// The names of all functions.
const FUNCTIONS: &[&str] = &[
    "abs",
    "add",
    "all",
    "allowed",
    "asApproximateFloat",
    "asInteger",
    "base64",
    "bitAnd",
    "bitNot",
    "bitOr",
    "bitShiftLeft",
    "bitShiftRight",
    "bitXor",
    "bool",
    "byte",
    "bytes",
    "ceil",
    "charAt",
    "check",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "date",
    "datetime",
    "decode",
    "distinct",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "double",
    "duration",
    "dyn",
    "encode",
    "endsWith",
    "equivalent",
    "error",
    "errored",
    "escapeKey",
    "exists",
    "existsOne",
    "exists_one",
    "family",
    "fieldSelector",
    "find",
    "findAll",
    "first",
    "flatten",
    "floor",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "greatest",
    "group",
    "hasValue",
    "indexOf",
    "int",
    "intersects",
    "ip",
    "isCIDR",
    "isCanonical",
    "isFinite",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isInf",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isNaN",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "labelSelector",
    "labelValue",
    "last",
    "lastIndexOf",
    "least",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "name",
    "named",
    "namespace",
    "none",
    "of",
    "ofNonZeroValue",
    "optFlatMap",
    "optMap",
    "or",
    "orValue",
    "patch",
    "path",
    "prefixLength",
    "qualifiedName",
    "quantity",
    "quote",
    "range",
    "reason",
    "replace",
    "resource",
    "reverse",
    "round",
    "semver",
    "serviceAccount",
    "sets",
    "sign",
    "size",
    "slice",
    "sort",
    "sortBy",
    "split",
    "sqrt",
    "startsWith",
    "string",
    "sub",
    "subresource",
    "substring",
    "sum",
    "timestamp",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "trim",
    "trunc",
    "type",
    "uint",
    "upperAscii",
    "uri",
    "url",
    "uuid",
    "validate",
    "value",
];
