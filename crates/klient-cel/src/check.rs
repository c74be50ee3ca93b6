//! A check of types before an expression is evaluated: unknown variables and fields, operators on the wrong types, the type of the result.
//!
//! The check knows the types of schemas, operators and common functions. What it does not know has the type `dyn`, which fits everywhere: it
//! refuses nothing that the real server accepts.

mod function;
mod place;
mod types;

use std::{collections::HashMap, fmt};

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, StructExpr, operators,
};

pub use self::types::{Type, with_metadata};
use crate::{
    Expression,
    evaluate::{NAMESPACES, TYPES},
};

/// The variables that an expression may read, and their types.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    variables: HashMap<String, Type>,
}

/// An error of an expression that does not fit its scope, in the words of the real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckError {
    message: String,
}

impl Scope {
    /// Returns a scope without variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, kind: Type) -> Self {
        self.variables.insert(name.into(), kind);
        self
    }

    fn inner(&self, variables: impl IntoIterator<Item = (String, Type)>) -> Self {
        let mut inner = self.clone();
        inner.variables.extend(variables);
        inner
    }
}

/// Checks an expression, and returns the type of its result.
///
/// # Errors
///
/// Returns an error if the expression reads unknown variables or fields, or applies an operator to values that it cannot have.
pub fn check(expression: &Expression, scope: &Scope) -> Result<Type, CheckError> {
    Check { source: expression.source() }.of(expression.root(), scope)
}

struct Check<'a> {
    source: &'a str,
}

impl Check<'_> {
    fn of(&self, expression: &IdedExpr, scope: &Scope) -> Result<Type, CheckError> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::String,
                LiteralValue::UInt(_) => Type::UInt,
            }),
            Expr::Ident(name) => match scope.variables.get(name) {
                Some(known) => Ok(known.clone()),
                None if TYPES.contains(&name.as_str()) => Ok(Type::Dyn),
                None => Err(self.undeclared(name)),
            },
            Expr::Select(select) => {
                if is_type_name(expression, scope) {
                    return Ok(Type::Dyn);
                }
                let operand = self.of(&select.operand, scope)?;
                let at = match select.test {
                    true => place::has(self.source, &select.field),
                    false => place::select(self.source, &select.field),
                };
                let field = self.field(operand, &select.field, at)?;
                Ok(if select.test { Type::Bool } else { field })
            }
            Expr::List(list) => {
                let item = self.common(list.elements.iter(), scope)?;
                Ok(Type::List(Box::new(if list.optional_indices.is_empty() { item } else { Type::Dyn })))
            }
            Expr::Map(map) => {
                let mut values = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.of(&entry.key, scope)?;
                        values.push(&entry.value);
                    }
                }
                let has_optional =
                    map.entries.iter().any(|entry| matches!(&entry.expr, EntryExpr::MapEntry(entry) if entry.optional));
                let value = self.common(values.into_iter(), scope)?;
                Ok(Type::Map(Box::new(if has_optional { Type::Dyn } else { value })))
            }
            Expr::Struct(object) => self.object(object, scope),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, scope),
            Expr::Call(call) => self.call(call, scope),
            Expr::Unspecified => Ok(Type::Dyn),
        }
    }

    /// Returns the type that the values of a literal have in common. Literals of different types are mistakes.
    fn common<'a>(&self, values: impl Iterator<Item = &'a IdedExpr>, scope: &Scope) -> Result<Type, CheckError> {
        let mut common = None;
        for value in values {
            let found = self.of(value, scope)?;
            match &common {
                None => common = Some(found),
                Some(known) if *known == found => {}
                Some(known) => match &value.expr {
                    Expr::Literal(literal) if !known.fits(&found) => {
                        let message = format!("expected type '{known}' but found '{found}'");
                        return Err(self.error(place::of_literal(self.source, literal), &message));
                    }
                    _ => common = Some(Type::Dyn),
                },
            }
        }
        Ok(common.unwrap_or(Type::Dyn))
    }

    /// Checks an object of a mutation: a part of the mutated object, or an operation of a patch.
    fn object(&self, object: &StructExpr, scope: &Scope) -> Result<Type, CheckError> {
        let name = &object.type_name;
        if name != "JSONPatch" && name != "Object" && !name.starts_with("Object.") {
            let message = format!("undeclared reference to '{name}' (in container '')");
            return Err(self.error(place::after(self.source, name, '{'), &message));
        }
        for entry in &object.entries {
            let EntryExpr::StructField(field) = &entry.expr else { continue };
            let found = self.of(&field.value, scope)?;
            let is_text = name == "JSONPatch" && matches!(field.field.as_str(), "op" | "path" | "from");
            if is_text && !found.fits(&Type::String) {
                let name = &field.field;
                let message = format!("expected type of field '{name}' is 'string' but provided type is '{found}'");
                return Err(self.error(place::after(self.source, name, ':'), &message));
            }
        }
        Ok(Type::Named(name.clone()))
    }

    fn field(&self, operand: Type, field: &str, at: usize) -> Result<Type, CheckError> {
        match operand {
            Type::Object(schema) => types::field(&schema, field).ok_or_else(|| self.error(at, &undefined(field))),
            Type::Map(value) => Ok(*value),
            Type::Optional(value) => self.field(*value, field, at).map(|field| Type::Optional(Box::new(field))),
            Type::Dyn | Type::Named(_) => Ok(Type::Dyn),
            other => {
                let message = format!("type '{other}' does not support field selection");
                Err(self.error(at, &message))
            }
        }
    }

    fn comprehension(&self, it: &ComprehensionExpr, scope: &Scope) -> Result<Type, CheckError> {
        let range = self.of(&it.iter_range, scope)?;
        let (key, value) = self.items(range)?;
        let is_filter = matches!(&it.accu_init.expr, Expr::List(_));
        let accumulated = self.of(&it.accu_init, scope)?;
        let accumulated = if is_filter { Type::List(Box::new(Type::Dyn)) } else { accumulated };
        let mut variables = vec![(it.accu_var.clone(), accumulated)];
        match &it.iter_var2 {
            Some(second) => {
                variables.extend([(it.iter_var.clone(), key.unwrap_or(Type::Int)), (second.clone(), value)]);
            }
            // A map is iterated over by its keys.
            None => variables.push((it.iter_var.clone(), key.unwrap_or(value))),
        }
        let inner = scope.inner(variables);
        self.of(&it.loop_cond, &inner)?;
        let step = self.of(&it.loop_step, &inner)?;
        let inner = inner.inner([(it.accu_var.clone(), step)]);
        self.of(&it.result, &inner)
    }

    /// Returns the types of the keys, if the range is a map, and of the items.
    fn items(&self, range: Type) -> Result<(Option<Type>, Type), CheckError> {
        match range {
            Type::List(item) => Ok((None, *item)),
            Type::Map(value) => Ok((Some(Type::String), *value)),
            Type::Dyn | Type::Named(_) => Ok((None, Type::Dyn)),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                Err(self.error(0, &message))
            }
        }
    }

    fn call(&self, call: &CallExpr, scope: &Scope) -> Result<Type, CheckError> {
        if let Some(bound) = self.bound(call, scope)? {
            return Ok(bound);
        }
        let mut types = Vec::new();
        let mut is_namespace = false;
        if let Some(target) = &call.target {
            is_namespace = match &target.expr {
                Expr::Ident(name) => !scope.variables.contains_key(name) && NAMESPACES.contains(&name.as_str()),
                _ => false,
            };
            if !is_namespace {
                types.push(self.of(target, scope)?);
            }
        }
        for argument in &call.args {
            match &argument.expr {
                // The values of a format may have any types.
                Expr::List(list) if call.func_name == "format" => {
                    list.elements.iter().try_for_each(|element| self.of(element, scope).map(drop))?;
                    types.push(Type::List(Box::new(Type::Dyn)));
                }
                _ => types.push(self.of(argument, scope)?),
            }
        }
        if !function::is_known(&call.func_name) {
            let message = format!("undeclared reference to '{}' (in container '')", call.func_name);
            return Err(self.error(place::call(self.source, &call.func_name), &message));
        }
        self.literal(call)?;
        if is_namespace {
            return Ok(Type::Dyn);
        }
        match function::result(&call.func_name, &types) {
            Some(result) => Ok(result),
            None => {
                let shown: Vec<String> = types.iter().map(Type::to_string).collect();
                let applied = match call.target {
                    Some(_) if !is_operator(&call.func_name) => format!("{}.({})", shown[0], shown[1..].join(", ")),
                    _ => format!("({})", shown.join(", ")),
                };
                let message = format!("found no matching overload for '{}' applied to '{applied}'", call.func_name);
                Err(self.error(place::call(self.source, &call.func_name), &message))
            }
        }
    }

    /// Checks a call that binds variables. Returns `None` for other calls.
    fn bound(&self, call: &CallExpr, scope: &Scope) -> Result<Option<Type>, CheckError> {
        let Some(target) = call.target.as_deref() else { return Ok(None) };
        let names: Vec<String> = call
            .args
            .iter()
            .map_while(|argument| match &argument.expr {
                Expr::Ident(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        let name = call.func_name.as_str();
        let binds = match (name, call.args.len()) {
            ("sortBy" | "optMap" | "optFlatMap", 2) => 1,
            ("all" | "exists" | "existsOne" | "exists_one", 3)
            | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => 2,
            _ => return Ok(None),
        };
        if names.len() < binds {
            return Ok(None);
        }
        let declared = names.into_iter().take(binds);
        let target = self.of(target, scope)?;
        let item = match &target {
            Type::List(item) | Type::Optional(item) => (**item).clone(),
            _ => Type::Dyn,
        };
        let types = if binds == 1 { vec![item] } else { vec![Type::Dyn, Type::Dyn] };
        let inner = scope.inner(declared.zip(types));
        let mut last = Type::Dyn;
        for body in &call.args[binds..] {
            last = self.of(body, &inner)?;
        }
        Ok(Some(match name {
            "sortBy" => target,
            "optMap" => Type::Optional(Box::new(last)),
            "optFlatMap" => last,
            "transformList" => Type::List(Box::new(last)),
            "transformMap" | "transformMapEntry" => Type::Map(Box::new(Type::Dyn)),
            _ => Type::Bool,
        }))
    }

    /// Refuses a text that is no duration, time or pattern.
    fn literal(&self, call: &CallExpr) -> Result<(), CheckError> {
        let name = call.func_name.as_str();
        let [IdedExpr { expr: Expr::Literal(LiteralValue::String(text)), .. }] = &call.args[..] else { return Ok(()) };
        if !matches!((name, &call.target), ("duration" | "timestamp", None) | ("matches", Some(_))) {
            return Ok(());
        }
        let mut variables = crate::Variables::new();
        variables.set("text", kube_cel::cel::Value::String(std::sync::Arc::new(text.inner().to_owned())));
        let source = if name == "matches" { "''.matches(text)".to_owned() } else { format!("{name}(text)") };
        let is_valid = Expression::parse(&source)
            .is_ok_and(|expression| expression.evaluate(&variables, &mut crate::Budget::new(u64::MAX)).is_ok());
        if is_valid {
            return Ok(());
        }
        Err(self.error(place::literal(self.source, text.inner()), &format!("invalid {name} argument")))
    }

    fn undeclared(&self, name: &str) -> CheckError {
        self.error(place::name(self.source, name), &format!("undeclared reference to '{name}' (in container '')"))
    }

    /// Returns an error that shows its place, a number of bytes from the start.
    fn error(&self, at: usize, message: &str) -> CheckError {
        let before = &self.source[..at.min(self.source.len())];
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let text = self.source.split('\n').nth(line).unwrap_or_default().replace('\t', " ");
        let dots = ".".repeat(column);
        let message = format!("ERROR: <input>:{}:{}: {message}\n | {text}\n | {dots}^", line + 1, column + 1);
        CheckError { message }
    }
}

/// Returns whether an expression is the name of a type, such as `google.protobuf.Duration`.
fn is_type_name(expression: &IdedExpr, scope: &Scope) -> bool {
    match &expression.expr {
        Expr::Ident(name) => {
            matches!(name.as_str(), "google" | "net" | "kubernetes") && !scope.variables.contains_key(name)
        }
        Expr::Select(select) => !select.test && is_type_name(&select.operand, scope),
        _ => false,
    }
}

fn undefined(field: &str) -> String {
    format!("undefined field '{field}'")
}

fn is_operator(name: &str) -> bool {
    name.contains('_') && (name.starts_with('_') || name.starts_with('@') || name.ends_with('_'))
        || name == operators::IN
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CheckError {}
