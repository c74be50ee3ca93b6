//! The highest cost of an expression, in the units of the server.

use serde_json::Value;

use super::{LARGEST_REQUEST, expression::Expression, sizes::largest_size};

/// Returns the highest cost of an expression in which `self` has a schema.
pub(super) fn estimate(expression: &Expression, schema: &Value) -> u64 {
    let own = Operand { cost: 0, size: largest_size(schema), schema: Some(schema) };
    let mut scope = vec![("self".to_owned(), own), ("oldSelf".to_owned(), own)];
    operand(expression, &mut scope).cost
}

/// An evaluated expression.
#[derive(Clone, Copy)]
struct Operand<'a> {
    cost: u64,
    /// The highest number of bytes, items or entries.
    size: u64,
    schema: Option<&'a Value>,
}

type Scope<'a> = Vec<(String, Operand<'a>)>;

impl<'a> Operand<'a> {
    fn scalar(cost: u64) -> Self {
        Self { cost, size: 1, schema: None }
    }

    fn of(schema: Option<&'a Value>, cost: u64) -> Self {
        Self { cost, size: schema.map_or(LARGEST_REQUEST, largest_size), schema }
    }

    /// Returns the values of a list, or the keys of a map.
    fn elements(&self) -> Self {
        match self.schema {
            Some(schema) if schema["items"].is_object() => Self::of(Some(&schema["items"]), 0),
            _ => Self { cost: 0, size: LARGEST_REQUEST, schema: None },
        }
    }
}

fn operand<'a>(expression: &Expression, scope: &mut Scope<'a>) -> Operand<'a> {
    match expression {
        Expression::Literal(size) => Operand { cost: 0, size: *size, schema: None },
        Expression::Name(name) => {
            let found = scope.iter().rev().find(|(known, _)| known == name);
            found.map_or(Operand::scalar(1), |(_, operand)| Operand { cost: 1, ..*operand })
        }
        Expression::Field(inner, name) => {
            let inner = operand(inner, scope);
            let field = inner.schema.and_then(|schema| field_of(schema, name));
            Operand::of(field, inner.cost.saturating_add(1))
        }
        Expression::Has(inner) => Operand::scalar(operand(inner, scope).cost),
        Expression::Index(inner, index) => {
            let (inner, index) = (operand(inner, scope), operand(index, scope));
            let element = inner.schema.and_then(|schema| {
                [&schema["items"], &schema["additionalProperties"]].into_iter().find(|schema| schema.is_object())
            });
            Operand::of(element, sum([inner.cost, index.cost, 1]))
        }
        Expression::List(items) => {
            let costs = items.iter().map(|item| operand(item, scope).cost).collect::<Vec<_>>();
            Operand { cost: sum(costs).saturating_add(10), size: items.len() as u64, schema: None }
        }
        Expression::Map(entries) => {
            let mut cost = 30;
            for (key, value) in entries {
                cost = sum([cost, operand(key, scope).cost, operand(value, scope).cost]);
            }
            Operand { cost, size: entries.len() as u64, schema: None }
        }
        Expression::Call { target: None, function, arguments } => operator(function, arguments, scope),
        Expression::Call { target: Some(target), function, arguments } => method(target, function, arguments, scope),
    }
}

fn operator<'a>(function: &str, arguments: &[Expression], scope: &mut Scope<'a>) -> Operand<'a> {
    let operands: Vec<Operand<'a>> = arguments.iter().map(|argument| operand(argument, scope)).collect();
    let costs = sum(operands.iter().map(|operand| operand.cost));
    match (function, operands.as_slice()) {
        ("&&" | "||", _) => Operand::scalar(costs),
        ("?:", [condition, then, otherwise]) => {
            let larger = if then.size >= otherwise.size { then } else { otherwise };
            Operand { cost: condition.cost.saturating_add(then.cost.max(otherwise.cost)), ..*larger }
        }
        ("==" | "!=" | "<" | "<=" | ">" | ">=", [a, b]) => {
            Operand::scalar(costs.saturating_add(tenth(a.size.min(b.size))))
        }
        ("in", [_, list]) => {
            let is_map = list.schema.is_some_and(|schema| schema["type"] == "object");
            Operand::scalar(costs.saturating_add(if is_map { 1 } else { list.size.max(1) }))
        }
        ("+", [a, b]) => {
            let size = a.size.saturating_add(b.size);
            let is_list = [a, b].iter().any(|one| one.schema.is_some_and(|schema| schema["type"] == "array"));
            let cost = if is_list { 1 } else { tenth(size) };
            Operand { cost: costs.saturating_add(cost), size, schema: a.schema.or(b.schema) }
        }
        ("url" | "quantity" | "ip" | "cidr" | "semver" | "duration" | "timestamp" | "isURL" | "isQuantity", [text]) => {
            Operand::scalar(costs.saturating_add(tenth(text.size)))
        }
        ("string" | "bytes", [inner]) => {
            // The server does not know the length of a converted value.
            Operand { cost: costs.saturating_add(tenth(inner.size)), size: u64::MAX, schema: None }
        }
        _ => Operand::scalar(costs.saturating_add(1)),
    }
}

fn method<'a>(target: &Expression, function: &str, arguments: &[Expression], scope: &mut Scope<'a>) -> Operand<'a> {
    let range = operand(target, scope);
    if let (true, [Expression::Name(variable), bodies @ ..]) = (MACROS.contains(&function), arguments) {
        return comprehension(function, range, variable, bodies, scope);
    }
    let operands: Vec<Operand<'a>> = arguments.iter().map(|argument| operand(argument, scope)).collect();
    let costs = sum(operands.iter().map(|operand| operand.cost)).saturating_add(range.cost);
    let argument = operands.first().map_or(1, |argument| argument.size);
    let text = Operand { cost: costs.saturating_add(tenth(range.size)), size: range.size, schema: None };
    match function {
        "contains" => Operand::scalar(costs.saturating_add(tenth(range.size).saturating_mul(tenth(argument)))),
        "startsWith" | "endsWith" => Operand::scalar(costs.saturating_add(tenth(argument))),
        "matches" | "find" | "findAll" => {
            let expression = argument.div_ceil(4).max(1);
            let cost = costs.saturating_add(tenth(range.size.saturating_add(1)).saturating_mul(expression));
            if function == "matches" { Operand::scalar(cost) } else { Operand { cost, ..text } }
        }
        "indexOf" | "lastIndexOf" => {
            Operand::scalar(costs.saturating_add(tenth(range.size).saturating_mul(tenth(argument))))
        }
        "split" | "replace" | "lowerAscii" | "upperAscii" | "trim" | "substring" | "charAt" => text,
        "isSorted" | "sum" | "min" | "max" => Operand::scalar(costs.saturating_add(range.size)),
        "join" => Operand { cost: costs.saturating_add(range.size), size: LARGEST_REQUEST, schema: None },
        "orValue" | "or" | "value" => Operand { cost: costs.saturating_add(1), ..range },
        _ => Operand::scalar(costs.saturating_add(1)),
    }
}

/// Returns the cost of a macro over all elements of a list or map.
fn comprehension<'a>(
    function: &str,
    range: Operand<'a>,
    variable: &str,
    bodies: &[Expression],
    scope: &mut Scope<'a>,
) -> Operand<'a> {
    scope.push((variable.to_owned(), range.elements()));
    let body = sum(bodies.iter().map(|body| operand(body, scope).cost).collect::<Vec<_>>());
    scope.pop();
    let (per_step, result) = match function {
        // The condition of the loop, and the accumulated value.
        "all" | "exists" => (3, Operand::scalar(0)),
        "exists_one" | "existsOne" => (4, Operand::scalar(0)),
        // Each step creates a list and appends it.
        "filter" => (13, range),
        "optMap" | "optFlatMap" => return Operand { cost: sum([range.cost, body, 2]), ..range },
        _ => (12, Operand { cost: 0, size: range.size, schema: None }),
    };
    let steps = range.size.saturating_mul(body.saturating_add(per_step));
    Operand { cost: sum([range.cost, steps, 2]), ..result }
}

/// Returns the schema of a field, by its name in CEL: characters that CEL does not allow in names are escaped.
fn field_of<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let unescaped = name
        .replace("__dot__", ".")
        .replace("__dash__", "-")
        .replace("__slash__", "/")
        .replace("__underscores__", "__");
    let reserved = unescaped.strip_prefix("__").and_then(|name| name.strip_suffix("__")).map(str::to_owned);
    let found = |name: &str| schema["properties"].get(name);
    found(&unescaped)
        .or_else(|| reserved.as_deref().and_then(found))
        .or_else(|| Some(&schema["additionalProperties"]).filter(|schema| schema.is_object()))
}

fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

fn sum(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

const MACROS: [&str; 9] =
    ["all", "exists", "exists_one", "existsOne", "map", "filter", "optMap", "optFlatMap", "transformList"];
