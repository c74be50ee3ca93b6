//! The evaluation of an expression.
//!
//! This code walks over the parsed expression. Functions that take plain values are those of `kube-cel`, called one by one.

mod binding;
mod conversion;
mod cost;
mod format;
mod operator;
pub(crate) mod unique;

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use kube_cel::{
    KubeCelExt as _,
    cel::{
        Context, ExecutionError, Value as Cel,
        common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators},
        objects::{Key, Map, OptionalValue},
    },
};

use crate::{Budget, EvaluationError, Expression, authorizer};

type Outcome = Result<Cel, EvaluationError>;

/// A variable that is evaluated when it is first read.
type Lazy<'a> = Box<dyn Fn() -> Outcome + 'a>;

/// The variables of an evaluation.
#[derive(Default)]
pub struct Variables<'a> {
    parent: Option<&'a Variables<'a>>,
    values: HashMap<String, Outcome>,
    lazy: HashMap<String, (Lazy<'a>, OnceCell<Outcome>)>,
    /// The expressions of the variable `variables`, and how many of them can be read.
    composed: Option<(&'a Composed<'a>, usize)>,
}

/// The fields of `variables` in policies: expressions, each of which is evaluated at most once.
struct Composed<'a> {
    base: &'a Variables<'a>,
    expressions: &'a [(String, Expression)],
    known: RefCell<HashMap<usize, Outcome>>,
}

impl<'a> Variables<'a> {
    /// Returns no variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<String>, value: Cel) {
        self.values.insert(name.into(), Ok(value));
    }

    /// Sets a variable that is computed when it is first read.
    pub fn set_lazy(&mut self, name: impl Into<String>, value: impl Fn() -> Cel + 'a) {
        self.lazy.insert(name.into(), (Box::new(move || Ok(value())), OnceCell::new()));
    }

    fn inner<'b>(&'b self) -> Variables<'b> {
        Variables { parent: Some(self), ..Variables::default() }
    }

    fn get(&self, name: &str) -> Option<Outcome> {
        if let Some(value) = self.values.get(name) {
            return Some(value.clone());
        }
        if let Some((compute, known)) = self.lazy.get(name) {
            return Some(known.get_or_init(compute).clone());
        }
        self.parent?.get(name)
    }

    /// Returns the value of a field of `variables`, if there are such fields.
    fn composed(&self, field: &str, budget: &mut Budget) -> Option<Outcome> {
        let Some((composed, limit)) = self.composed else { return self.parent?.composed(field, budget) };
        let place = composed.expressions[..limit].iter().position(|(name, _)| name == field)?;
        if let Some(known) = composed.known.borrow().get(&place) {
            return Some(known.clone());
        }
        // An expression reads those before it, so that there are no cycles.
        let variables =
            Variables { parent: Some(composed.base), composed: Some((composed, place)), ..Variables::default() };
        let value = composed.expressions[place].1.evaluate(&variables, budget);
        composed.known.borrow_mut().insert(place, value.clone());
        Some(value)
    }

    /// Calls a function with these variables and `variables.NAME` for each expression. Each is evaluated when it is first read.
    pub fn with_expressions<T>(
        &self,
        expressions: &[(String, Expression)],
        call: impl FnOnce(&Variables<'_>) -> T,
    ) -> T {
        let composed = Composed { base: self, expressions, known: RefCell::default() };
        let composed = Some((&composed, expressions.len()));
        call(&Variables { parent: Some(self), composed, ..Variables::default() })
    }
}

impl std::fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values may be those of a Secret.
        f.debug_set().entries(self.values.keys().chain(self.lazy.keys())).finish()
    }
}

/// One evaluation.
pub(crate) struct Evaluation<'b> {
    budget: &'b mut Budget,
}

/// The functions of `kube-cel`.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

impl<'b> Evaluation<'b> {
    pub(crate) fn new(budget: &'b mut Budget) -> Self {
        Self { budget }
    }

    pub(crate) fn of(&mut self, expression: &IdedExpr, variables: &Variables<'_>) -> Outcome {
        match &expression.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => {
                self.budget.spend(1)?;
                match variables.get(name) {
                    Some(value) => value,
                    None if TYPES.contains(&name.as_str()) => Ok(text(name)),
                    None => Err(EvaluationError::undeclared(name)),
                }
            }
            Expr::Select(select) => {
                if let Some(name) = qualified_type(expression, variables) {
                    return Ok(text(name));
                }
                if let Expr::Ident(name) = &select.operand.expr
                    && name == "variables"
                    && let Some(value) = variables.composed(&select.field, self.budget)
                {
                    self.budget.spend(2)?;
                    return if select.test { Ok(Cel::Bool(true)) } else { value };
                }
                let operand = unique::plain(self.of(&select.operand, variables)?);
                // The real server has one variable with a name of two parts.
                if let Some(value) = authorizer::select(&operand, &select.field) {
                    return Ok(value);
                }
                self.budget.spend(u64::from(!cost::is_attribute(&select.operand)))?;
                if select.test {
                    return operator::has(&operand, &select.field).map(Cel::Bool);
                }
                self.read(operator::select(&operand, &select.field))
            }
            Expr::List(list) => {
                self.budget.spend(if cost::is_constant(expression) { 0 } else { cost::LIST })?;
                let mut items = Vec::with_capacity(list.elements.len());
                for (place, element) in list.elements.iter().enumerate() {
                    let value = self.of(element, variables)?;
                    if list.optional_indices.contains(&place) {
                        items.extend(operator::optional(&value)?.cloned());
                    } else {
                        items.push(value);
                    }
                }
                Ok(Cel::List(Arc::new(items)))
            }
            Expr::Map(map) => {
                self.budget.spend(if cost::is_constant(expression) { 0 } else { cost::MAP })?;
                self.entries(&map.entries, variables)
            }
            Expr::Struct(object) => {
                self.budget.spend(cost::STRUCT)?;
                self.entries(&object.entries, variables)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, variables),
            Expr::Call(_) if cost::is_constant(expression) => self.converted(expression, variables),
            Expr::Call(call) => self.call(call, variables),
            Expr::Unspecified => Err(EvaluationError::new("the expression is empty")),
        }
    }

    fn entries(&mut self, entries: &[IdedEntryExpr], variables: &Variables<'_>) -> Outcome {
        let mut map = HashMap::with_capacity(entries.len());
        for entry in entries {
            let (key, value, is_optional) = match &entry.expr {
                EntryExpr::StructField(field) => {
                    let key = Key::String(Arc::new(field.field.clone()));
                    (key, self.of(&field.value, variables)?, field.optional)
                }
                EntryExpr::MapEntry(entry) => {
                    let key = operator::key(&self.of(&entry.key, variables)?)?;
                    (key, self.of(&entry.value, variables)?, entry.optional)
                }
            };
            if !is_optional {
                map.insert(key, value);
            } else if let Some(value) = operator::optional(&value)? {
                map.insert(key, value.clone());
            }
        }
        Ok(Cel::Map(Map { map: Arc::new(map) }))
    }

    fn call(&mut self, call: &CallExpr, variables: &Variables<'_>) -> Outcome {
        if let Some(value) = self.bound_call(call, variables) {
            return value;
        }
        match (call.func_name.as_str(), &call.args[..]) {
            (operators::LOGICAL_AND, [left, right]) => return self.logical(left, right, false, variables),
            (operators::LOGICAL_OR, [left, right]) => return self.logical(left, right, true, variables),
            (operators::CONDITIONAL, [condition, yes, no]) => {
                return match self.of(condition, variables)? {
                    Cel::Bool(true) => self.of(yes, variables),
                    Cel::Bool(false) => self.of(no, variables),
                    _ => Err(EvaluationError::no_such_overload()),
                };
            }
            (operators::NOT_STRICTLY_FALSE, [condition]) => {
                return match self.of(condition, variables) {
                    Err(error) if error.is_too_expensive() => Err(error),
                    Ok(Cel::Bool(value)) => Ok(Cel::Bool(value)),
                    _ => Ok(Cel::Bool(true)),
                };
            }
            (operators::OPT_SELECT | operators::OPT_INDEX | operators::INDEX, [operand, key]) => {
                self.budget.spend(u64::from(!cost::is_attribute(operand)))?;
                let operand = unique::plain(self.of(operand, variables)?);
                let key = self.of(key, variables)?;
                return match call.func_name == operators::INDEX {
                    true => self.read(operator::index(&operand, &key)),
                    false => self.read(operator::optional_index(&operand, &key)),
                };
            }
            ("or" | "orValue", [other]) if let Some(target) = &call.target => {
                return self.or(target, other, call.func_name == "orValue", variables);
            }
            (operators::IN, [item, list]) if cost::is_constant_set(list) => {
                let values = [self.of(item, variables)?, self.of(list, variables)?];
                return operator::apply(operators::IN, &values).unwrap_or(Ok(Cel::Bool(false)));
            }
            _ => {}
        }
        self.function_call(call, variables)
    }

    fn function_call(&mut self, call: &CallExpr, variables: &Variables<'_>) -> Outcome {
        // A name that is no variable is the namespace of a function: `base64.decode(text)`.
        let namespace = call.target.as_deref().and_then(|target| namespace(target, variables));
        let target = call.target.as_deref().filter(|_| namespace.is_none());
        let name = namespace.map_or_else(|| call.func_name.clone(), |space| format!("{space}.{}", call.func_name));
        let is_method = target.is_some();
        let arguments: Vec<&IdedExpr> = target.into_iter().chain(&call.args).collect();
        let values = self.arguments(&arguments, variables)?;
        self.budget.spend(cost::of_call(&name, &values))?;
        if let Some(value) = unique::apply(&name, &values) {
            return value;
        }
        let values: Vec<Cel> = values.into_iter().map(unique::plain).collect();
        let own = operator::apply(&name, &values).or_else(|| conversion::apply(&name, &values));
        if let Some(value) = own.or_else(|| authorizer::call(&name, &values)).or_else(|| format::apply(&name, &values))
        {
            return value;
        }
        let values = conversion::arguments(&name, values);
        conversion::result(&name, function(&name, is_method, values))
    }

    fn arguments(&mut self, arguments: &[&IdedExpr], variables: &Variables<'_>) -> Result<Vec<Cel>, EvaluationError> {
        let mut values = Vec::with_capacity(arguments.len());
        let mut failed = None;
        for argument in arguments {
            match self.of(argument, variables) {
                Ok(value) => values.push(value),
                // The real server evaluates both arguments of a function with two, and counts the call.
                Err(error) if arguments.len() <= 2 && !error.is_too_expensive() => {
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match failed {
            None => Ok(values),
            Some(error) => {
                self.budget.spend(1)?;
                Err(error)
            }
        }
    }

    /// Evaluates an optional value, and the other one only if it is absent.
    fn or(&mut self, target: &IdedExpr, other: &IdedExpr, unwraps: bool, variables: &Variables<'_>) -> Outcome {
        let value = self.of(target, variables)?;
        match operator::optional(&value)? {
            Some(inner) => Ok(if unwraps { inner.clone() } else { value }),
            None => self.of(other, variables),
        }
    }

    /// Pays for a field or an item, unless it belongs to an optional value that is absent.
    fn read(&mut self, value: Outcome) -> Outcome {
        if !matches!(&value, Ok(value) if operator::is_none(value)) {
            self.budget.spend(1)?;
        }
        value
    }

    /// Evaluates a conversion of a constant, which is free.
    fn converted(&mut self, expression: &IdedExpr, variables: &Variables<'_>) -> Outcome {
        let Expr::Call(call) = &expression.expr else { return self.of(expression, variables) };
        Evaluation::new(&mut Budget::new(u64::MAX)).call(call, variables)
    }

    /// Evaluates `&&` or `||`: an error on one side does not matter if the other side decides.
    fn logical(&mut self, left: &IdedExpr, right: &IdedExpr, decides: bool, variables: &Variables<'_>) -> Outcome {
        let first = self.of(left, variables);
        match &first {
            Ok(Cel::Bool(value)) if *value == decides => return first,
            Err(error) if error.is_too_expensive() => return first,
            _ => {}
        }
        let second = self.of(right, variables);
        match (first, second) {
            (_, Ok(Cel::Bool(value))) if value == decides => Ok(Cel::Bool(value)),
            (_, Err(error)) if error.is_too_expensive() => Err(error),
            (Ok(Cel::Bool(_)), Ok(Cel::Bool(value))) => Ok(Cel::Bool(value)),
            (Err(error), _) | (Ok(Cel::Bool(_)), Err(error)) => Err(error),
            _ => Err(EvaluationError::no_such_overload()),
        }
    }
}

/// Returns the name of a type such as `google.protobuf.Duration`, if an expression is one.
fn qualified_type(expression: &IdedExpr, variables: &Variables<'_>) -> Option<&'static str> {
    fn parts<'a>(expression: &'a IdedExpr, found: &mut Vec<&'a str>) -> bool {
        match &expression.expr {
            Expr::Ident(name) => {
                found.push(name);
                true
            }
            Expr::Select(select) if !select.test => {
                let is_name = parts(&select.operand, found);
                found.push(&select.field);
                is_name
            }
            _ => false,
        }
    }
    let mut found = Vec::new();
    if !parts(expression, &mut found) || variables.get(found[0]).is_some() {
        return None;
    }
    let name = found.join(".");
    QUALIFIED_TYPES.iter().find(|known| **known == name).copied()
}

/// Returns the namespace that a target names, if it is no variable.
fn namespace<'a>(target: &'a IdedExpr, variables: &Variables<'_>) -> Option<&'a str> {
    match &target.expr {
        Expr::Ident(name) if NAMESPACES.contains(&name.as_str()) && variables.get(name).is_none() => Some(name),
        _ => None,
    }
}

/// Calls a function of `kube-cel`.
fn function(name: &str, is_method: bool, values: Vec<Cel>) -> Outcome {
    let mut context = FUNCTIONS.new_inner_scope();
    let names = (0..values.len()).map(|place| format!("@{place}"));
    let mut arguments: Vec<IdedExpr> = names.clone().map(|name| IdedExpr { id: 0, expr: Expr::Ident(name) }).collect();
    for (name, value) in names.zip(values) {
        context.add_variable_from_value(name, value);
    }
    let (target, name) = match name.rsplit_once('.') {
        Some((namespace, name)) if !is_method => {
            (Some(IdedExpr { id: 0, expr: Expr::Ident(namespace.to_owned()) }), name)
        }
        _ if is_method => (Some(arguments.remove(0)), name),
        _ => (None, name),
    };
    let call = CallExpr { func_name: name.to_owned(), target: target.map(Box::new), args: arguments };
    let outcome = Cel::resolve(&IdedExpr { id: 0, expr: Expr::Call(call) }, &context);
    outcome.map_err(|error| match error {
        ExecutionError::UndeclaredReference(_) => EvaluationError::no_such_overload(),
        error => error.into(),
    })
}

fn literal_value(literal: &LiteralValue) -> Cel {
    match literal {
        LiteralValue::Boolean(value) => Cel::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Cel::Bytes(Arc::new(value.inner().to_vec())),
        LiteralValue::Double(value) => Cel::Float(*value.inner()),
        LiteralValue::Int(value) => Cel::Int(*value.inner()),
        LiteralValue::Null => Cel::Null,
        LiteralValue::String(value) => text(value.inner()),
        LiteralValue::UInt(value) => Cel::UInt(*value.inner()),
    }
}

fn text(text: &str) -> Cel {
    Cel::String(Arc::new(text.to_owned()))
}

/// Returns an optional value.
#[must_use]
pub fn optional_of(value: Option<Cel>) -> Cel {
    Cel::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// The names of types. A type is represented by its name, because the `cel` crate has no types as values.
pub(crate) const TYPES: &[&str] = &["list", "map", "int", "uint", "double", "string", "bytes", "bool", "null_type"];
/// The types whose names have several parts.
const QUALIFIED_TYPES: &[&str] =
    &["google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR", "kubernetes.URL"];
/// The first parts of the names of functions.
pub(crate) const NAMESPACES: &[&str] =
    &["base64", "format", "ip", "jsonpatch", "lists", "math", "optional", "sets", "strings"];
