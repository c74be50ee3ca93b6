//! Macros: calls with names of variables, which stand for loops.

use super::expression::{Expression, Literal, Loop, RESULT};

/// Returns a call on a target, or what a macro stands for.
pub(super) fn method(target: Expression, function: &str, arguments: Vec<Expression>) -> Expression {
    let names = arguments.iter().map_while(|argument| match argument {
        Expression::Name(name) => Some(name.clone()),
        _ => None,
    });
    let names: Vec<String> = names.take(2).collect();
    let count = arguments.len();
    let mut parts = arguments.into_iter();
    let mut part = || parts.next().unwrap_or(Expression::Literal(Literal::Null));
    match (function, names.as_slice(), count) {
        ("optMap" | "optFlatMap", [name, ..], 2) => {
            part();
            let (target, body) = (Box::new(target), Box::new(part()));
            Expression::OptionalMap { target, name: name.clone(), body, is_flat: function == "optFlatMap" }
        }
        ("sortBy", [name, ..], 2) => {
            part();
            let list = "@list";
            let keys = step_list(part(), None);
            let keys = looped(Expression::name(list), name.clone(), None, Expression::List(Vec::new()), keys);
            let result = Expression::method(Expression::name(list), "@sortBy", vec![keys]);
            Expression::Bind { name: list.to_owned(), value: Box::new(target), result: Box::new(result) }
        }
        ("all" | "exists" | "exists_one" | "existsOne" | "filter", [name, ..], 2) => {
            part();
            let item = Expression::name(name);
            single(target, function, name.clone(), None, part(), item)
        }
        ("map", [name, ..], 2 | 3) => {
            part();
            let filter = (count == 3).then(&mut part);
            let step = step_list(part(), filter);
            looped(target, name.clone(), None, Expression::List(Vec::new()), step)
        }
        ("all" | "exists" | "existsOne", [name, second], 3) => {
            part();
            part();
            let item = Expression::name(second);
            single(target, function, name.clone(), Some(second.clone()), part(), item)
        }
        ("transformList" | "transformMap" | "transformMapEntry", [name, second], 3 | 4) => {
            part();
            part();
            let filter = (count == 4).then(&mut part);
            let body = part();
            let (first, step) = match function {
                "transformList" => (Expression::List(Vec::new()), step_list(body, filter)),
                insertion => {
                    let mut arguments = vec![Expression::name(RESULT)];
                    arguments.extend((insertion == "transformMap").then(|| Expression::name(name)));
                    arguments.push(body);
                    let step = Expression::call("@mapInsert", arguments);
                    (Expression::Map(Vec::new()), filtered(step, filter))
                }
            };
            looped(target, name.clone(), Some(second.clone()), first, step)
        }
        _ => Expression::method(target, function, parts.collect()),
    }
}

/// Returns the loop of a macro with one condition.
fn single(
    range: Expression,
    function: &str,
    variable: String,
    second: Option<String>,
    body: Expression,
    item: Expression,
) -> Expression {
    let result = || Expression::name(RESULT);
    let literal = Expression::Literal;
    let not_false = |value: Expression| Expression::call("@notStrictlyFalse", vec![value]);
    let (first, condition, step, last) = match function {
        "all" => (literal(Literal::Bool), not_false(result()), Expression::call("&&", vec![result(), body]), result()),
        "exists" => {
            let negated = Expression::call("!", vec![result()]);
            (literal(Literal::Bool), not_false(negated), Expression::call("||", vec![result(), body]), result())
        }
        "filter" => {
            let step = step_list(item, Some(body));
            (Expression::List(Vec::new()), literal(Literal::Bool), step, result())
        }
        _ => {
            let next = Expression::call("+", vec![result(), literal(Literal::Int(1))]);
            let step = Expression::call("?:", vec![body, next, result()]);
            let is_one = Expression::call("==", vec![result(), literal(Literal::Int(1))]);
            (literal(Literal::Int(0)), literal(Literal::Bool), step, is_one)
        }
    };
    Expression::Loop(Box::new(Loop { range, variable, second, first, condition, step, result: last }))
}

/// Returns a loop that never ends early.
fn looped(
    range: Expression,
    variable: String,
    second: Option<String>,
    first: Expression,
    step: Expression,
) -> Expression {
    let condition = Expression::Literal(Literal::Bool);
    let result = Expression::name(RESULT);
    Expression::Loop(Box::new(Loop { range, variable, second, first, condition, step, result }))
}

/// Returns the step that appends an item, if a condition is true.
fn step_list(item: Expression, filter: Option<Expression>) -> Expression {
    let item = Expression::List(vec![item]);
    filtered(Expression::call("+", vec![Expression::name(RESULT), item]), filter)
}

fn filtered(step: Expression, filter: Option<Expression>) -> Expression {
    match filter {
        None => step,
        Some(filter) => Expression::call("?:", vec![filter, step, Expression::name(RESULT)]),
    }
}
