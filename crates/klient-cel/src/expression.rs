//! Expressions, parsed once.

use std::{collections::HashSet, fmt};

use kube_cel::cel::{
    Value as Cel,
    common::ast::{EntryExpr, Expr, IdedExpr},
    parser::Parser,
};

use crate::{
    Budget, EvaluationError,
    evaluate::{Evaluation, Variables},
};

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    source: String,
    root: IdedExpr,
}

/// An error of an expression that cannot be parsed, in the words of the real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: String,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an expression, or if it is too deeply nested.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        let root = if source.len() <= SHORT { parse(source) } else { parse_on_large_stack(source) }?;
        Ok(Self { source: source.to_owned(), root })
    }

    /// Returns the text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether the expression reads a variable.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        let mut names = HashSet::new();
        identifiers(&self.root, &mut names);
        names.contains(variable)
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    ///
    /// Returns an error if a key or function is missing, if values have the wrong types, or if the budget is exhausted.
    pub fn evaluate(&self, variables: &Variables<'_>, budget: &mut Budget) -> Result<Cel, EvaluationError> {
        Evaluation::new(budget).of(&self.root, variables)
    }

    pub(crate) fn root(&self) -> &IdedExpr {
        &self.root
    }
}

fn parse(source: &str) -> Result<IdedExpr, ParseError> {
    if nesting(source) > MAX_DEPTH {
        return Err(too_deep());
    }
    let root = Parser::new()
        .enable_optional_syntax(true)
        .max_recursion_depth(MAX_DEPTH)
        .parse(source)
        .map_err(|errors| ParseError { message: indented(&errors.to_string()) })?;
    if is_deeper_than(&root, MAX_DEPTH) { Err(too_deep()) } else { Ok(root) }
}

/// Parses on a stack that the parser cannot exhaust: it recurses several times for each level.
fn parse_on_large_stack(source: &str) -> Result<IdedExpr, ParseError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || parse(source));
        let failed =
            |why: &str| ParseError { message: format!("ERROR: <input>:1:1: cannot parse the expression: {why}") };
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(_)) => Err(failed("the parser failed")),
            Err(error) => Err(failed(&error.to_string())),
        }
    })
}

fn too_deep() -> ParseError {
    ParseError { message: format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {MAX_DEPTH}") }
}

/// Returns an upper bound of the depth of brackets and of operators before a value.
fn nesting(source: &str) -> u16 {
    let (mut depth, mut prefixes, mut deepest) = (0u16, 0u16, 0u16);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth = depth.saturating_add(1),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        prefixes = if matches!(byte, b'!' | b'-') { prefixes.saturating_add(1) } else { 0 };
        deepest = deepest.max(depth.saturating_add(prefixes));
    }
    deepest
}

/// Returns whether an expression has more than a number of levels, without going deeper than that.
fn is_deeper_than(expression: &IdedExpr, levels: u16) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    parts(expression).into_iter().any(|part| is_deeper_than(part, levels))
}

/// Returns the parts of an expression.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    let mut parts: Vec<&IdedExpr> = Vec::new();
    match &expression.expr {
        Expr::Call(call) => parts.extend(call.target.iter().map(|target| &**target).chain(&call.args)),
        Expr::Comprehension(it) => {
            parts.extend([&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result]);
        }
        Expr::List(list) => parts.extend(&list.elements),
        Expr::Map(map) => map.entries.iter().for_each(|entry| in_parts(&entry.expr, &mut parts)),
        Expr::Struct(object) => object.entries.iter().for_each(|entry| in_parts(&entry.expr, &mut parts)),
        Expr::Select(select) => parts.push(&select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
    parts
}

fn in_parts<'a>(entry: &'a EntryExpr, parts: &mut Vec<&'a IdedExpr>) {
    match entry {
        EntryExpr::StructField(field) => parts.push(&field.value),
        EntryExpr::MapEntry(entry) => parts.extend([&entry.key, &entry.value]),
    }
}

/// The real server indents the lines below a message.
fn indented(text: &str) -> String {
    text.replace("\n| ", "\n | ")
}

fn identifiers<'a>(expression: &'a IdedExpr, found: &mut HashSet<&'a str>) {
    if let Expr::Ident(name) = &expression.expr {
        found.insert(name);
    }
    parts(expression).into_iter().for_each(|part| identifiers(part, found));
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}

/// The number of levels. The real server has 250, and unoptimised code evaluates fewer on the stack of a task.
const MAX_DEPTH: u16 = 100;
/// The length of sources that cannot be nested deeply enough for a large stack.
const SHORT: usize = 24;
/// Only the part that is used takes memory.
const STACK: usize = 256 << 20;
