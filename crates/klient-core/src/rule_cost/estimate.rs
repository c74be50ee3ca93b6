//! The highest cost of an expression, in the units of the server.

use super::{
    calls,
    declared::Declared,
    expression::{Expression, Literal, Loop, RESULT},
    path::Path,
    types::Type,
};

/// Returns the highest cost of an expression in which `self` and `oldSelf` have a schema.
pub(super) fn estimate(expression: &Expression, declared: Option<&Declared>, has_optional_old: bool) -> u64 {
    let own = declared.map_or(Type::Dyn, Declared::kind);
    let old = if has_optional_old { Type::optional(own.clone()) } else { own.clone() };
    let globals = vec![("self", own), ("oldSelf", old)];
    Estimator { declared, texts: None, globals, variables: Vec::new() }.operand(expression).cost
}

/// The lowest and the highest size of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    pub(super) fn exactly(size: u64) -> Self {
        Self { least: size, most: size }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { least: self.least.saturating_mul(other.least), most: self.most.saturating_mul(other.most) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// The sizes of the elements of a list or map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    is_list: bool,
    keys: Size,
    pub(super) values: Size,
}

impl Elements {
    pub(super) fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, keys: self.keys.or(other.keys), values: self.values.or(other.values) }
    }
}

/// An evaluated expression.
#[derive(Clone, Debug)]
pub(super) struct Operand<'s> {
    pub(super) cost: u64,
    /// The number of characters, bytes, items or entries, if it is known.
    pub(super) size: Option<Size>,
    pub(super) elements: Option<Elements>,
    pub(super) path: Path,
    pub(super) kind: Type<'s>,
    /// The value of a literal.
    pub(super) number: Option<i64>,
}

impl<'s> Operand<'s> {
    pub(super) fn new(cost: u64, kind: Type<'s>) -> Self {
        Self { cost, size: None, elements: None, path: Path::default(), kind, number: None }
    }

    pub(super) fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

struct Variable<'s> {
    name: String,
    value: Operand<'s>,
}

pub(super) struct Estimator<'s> {
    declared: Option<&'s Declared>,
    /// The highest size of texts, in Kubernetes' tests of libraries, which have no schema.
    pub(super) texts: Option<u64>,
    globals: Vec<(&'static str, Type<'s>)>,
    variables: Vec<Variable<'s>>,
}

impl<'s> Estimator<'s> {
    #[cfg(test)]
    pub(super) fn without_schema(texts: u64) -> Self {
        Self { declared: None, texts: Some(texts), globals: Vec::new(), variables: Vec::new() }
    }

    /// Returns the size that the schema has for a path. The server does not look at the variable with which the path begins.
    pub(super) fn declared_size(&self, path: &Path, kind: &Type<'s>) -> Option<Size> {
        if let Some(most) = self.texts {
            return matches!(kind, Type::Text | Type::Bytes).then_some(Size { least: 0, most });
        }
        let declared = self.declared?;
        path.after_variable(|steps| declared.at(steps)).map(|declared| Size { least: 0, most: declared.most })
    }

    /// Fills in the size of an operand of which only the path and the type are known.
    fn sized(&self, mut operand: Operand<'s>) -> Operand<'s> {
        let declared = operand.size.or_else(|| self.declared_size(&operand.path, &operand.kind));
        operand.size = declared.or_else(|| operand.kind.is_scalar().then(|| Size::exactly(1)));
        operand
    }

    /// Evaluates an expression. Those that others begin with are evaluated one after the other, since there may be many.
    pub(super) fn operand(&mut self, expression: &Expression) -> Operand<'s> {
        let mut outer = Vec::new();
        let mut first = expression;
        while let Some(inner) = self.begin(first) {
            outer.push(first);
            first = inner;
        }
        let innermost = self.whole(first);
        outer.into_iter().rev().fold(innermost, |first, expression| self.around(expression, first))
    }

    /// Returns the expression that another begins with.
    fn begin<'e>(&self, expression: &'e Expression) -> Option<&'e Expression> {
        match expression {
            Expression::Field(inner, _) if self.type_name(expression).is_none() => Some(inner),
            Expression::OptionalField(inner, _) | Expression::Has(inner) => Some(inner),
            Expression::OptionalMap { target, .. } => Some(target),
            Expression::Call { target: None, arguments, .. } => arguments.first(),
            Expression::Call { target: Some(target), .. } if self.library(target).is_none() => Some(target),
            _ => None,
        }
    }

    /// Returns the name of a type, such as `net.IP`.
    fn type_name(&self, expression: &Expression) -> Option<()> {
        match expression {
            Expression::Field(inner, _) => self.type_name(inner),
            Expression::Name(name) => {
                let is_package = matches!(name.as_str(), "google" | "net" | "kubernetes");
                (is_package && !self.is_variable(name)).then_some(())
            }
            _ => None,
        }
    }

    /// Returns the library whose name stands where a target would.
    fn library(&self, target: &Expression) -> Option<&'static str> {
        match target {
            Expression::Name(name) if !self.is_variable(name) => {
                calls::LIBRARIES.iter().find(|library| *library == name).copied()
            }
            _ => None,
        }
    }

    fn is_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable.name == name)
    }

    /// Evaluates an expression that does not begin with another.
    fn whole(&mut self, expression: &Expression) -> Operand<'s> {
        match expression {
            Expression::Literal(literal) => literal_operand(*literal),
            Expression::Name(name) => self.variable(name),
            Expression::List(items) => self.list(items),
            Expression::Map(entries) => self.map(entries),
            Expression::Loop(one) => self.looped(one),
            Expression::Call { target, function, arguments } => {
                let arguments: Vec<Operand<'s>> = arguments.iter().map(|argument| self.operand(argument)).collect();
                let library = target.as_deref().and_then(|target| self.library(target));
                let name = library.map_or_else(|| function.clone(), |library| format!("{library}.{function}"));
                self.call(&name, None, &arguments)
            }
            Expression::Bind { name, value, result } => {
                let value = self.operand(value);
                let cost = value.cost.saturating_add(EMPTY_LIST);
                self.bound(name, value, result, cost)
            }
            // The name of a type; the others begin with another expression.
            Expression::Field(..)
            | Expression::OptionalField(..)
            | Expression::Has(_)
            | Expression::OptionalMap { .. } => {
                let mut operand = Operand::new(1, Type::Kind);
                operand.path = Path::of("type");
                self.sized(operand)
            }
        }
    }

    /// Evaluates an expression that begins with an evaluated one.
    fn around(&mut self, expression: &Expression, first: Operand<'s>) -> Operand<'s> {
        match expression {
            Expression::Field(_, name) => {
                let step = u64::from(matches!(first.kind, Type::Map(..) | Type::Object(_)));
                let mut field = Operand::new(first.cost.saturating_add(step), first.kind.field(name));
                field.path = first.path.below(name);
                self.sized(field)
            }
            Expression::OptionalField(_, name) => {
                let found = match first.kind.field(name) {
                    optional @ Type::Optional(_) => optional,
                    kind => Type::optional(kind),
                };
                self.sized(Operand::new(first.cost.saturating_add(1), found))
            }
            Expression::Call { target, function, arguments } => {
                let rest = arguments.iter().skip(usize::from(target.is_none()));
                let rest: Vec<Operand<'s>> = rest.map(|argument| self.operand(argument)).collect();
                match target {
                    Some(_) => self.call(function, Some(&first), &rest),
                    None => self.call(function, None, &std::iter::once(first).chain(rest).collect::<Vec<_>>()),
                }
            }
            Expression::OptionalMap { name, body, is_flat, .. } => self.optional_map(&first, name, body, *is_flat),
            _ => self.sized(Operand::new(first.cost, Type::Bool)),
        }
    }

    fn optional_map(&mut self, target: &Operand<'s>, name: &str, body: &Expression, is_flat: bool) -> Operand<'s> {
        let inner = match &target.kind {
            Type::Optional(inner) => Type::clone(inner),
            _ => Type::Dyn,
        };
        // The server evaluates the target twice: `target.hasValue() ? target.value() ...`.
        let condition = target.cost.saturating_add(1);
        let value = self.sized(Operand::new(condition, inner));
        let cost = condition.saturating_add(EMPTY_LIST);
        let body = self.bound(name, value, body, cost);
        let (cost, kind) = match is_flat {
            true => (body.cost, body.kind),
            false => (body.cost.saturating_add(1), Type::optional(body.kind)),
        };
        let mut whole = Operand::new(condition.saturating_add(cost.max(1)), kind);
        whole.size = Some(Size::UNKNOWN);
        whole
    }

    fn variable(&self, name: &str) -> Operand<'s> {
        if let Some(found) = self.variables.iter().rev().find(|variable| variable.name == name) {
            let value = &found.value;
            let mut operand = Operand::new(1, value.kind.clone());
            operand.path = value.path.clone();
            operand.elements = value.elements;
            let mut operand = self.sized(operand);
            operand.size = operand.size.or(value.size);
            return operand;
        }
        let global = self.globals.iter().find(|(known, _)| *known == name);
        let kind = global.map_or(if TYPES.contains(&name) { Type::Kind } else { Type::Dyn }, |(_, kind)| kind.clone());
        let mut operand = Operand::new(1, kind);
        operand.path = Path::of(name);
        self.sized(operand)
    }

    fn list(&mut self, items: &[Expression]) -> Operand<'s> {
        let mut cost = EMPTY_LIST;
        let mut kind = Type::Unset;
        let mut values: Option<Size> = None;
        for item in items {
            let item = self.operand(item);
            cost = cost.saturating_add(item.cost);
            kind = kind.joined(&item.kind);
            values = Some(values.map_or(item.size(), |known| known.or(item.size())));
        }
        let mut list = Operand::new(cost, Type::list(kind));
        list.size = Some(Size::exactly(items.len() as u64));
        let values = values.unwrap_or(Size::exactly(0));
        list.elements = Some(Elements { is_list: true, keys: Size::exactly(1), values });
        list
    }

    fn map(&mut self, entries: &[(Expression, Expression)]) -> Operand<'s> {
        let mut cost = EMPTY_MAP;
        let (mut key_kind, mut value_kind) = (Type::Unset, Type::Unset);
        let mut sizes: Option<(Size, Size)> = None;
        for (key, value) in entries {
            let (key, value) = (self.operand(key), self.operand(value));
            cost = cost.saturating_add(key.cost).saturating_add(value.cost);
            key_kind = key_kind.joined(&key.kind);
            value_kind = value_kind.joined(&value.kind);
            let (keys, values) = sizes.unwrap_or((key.size(), value.size()));
            sizes = Some((keys.or(key.size()), values.or(value.size())));
        }
        let mut map = Operand::new(cost, Type::map(key_kind, value_kind));
        map.size = Some(Size::exactly(entries.len() as u64));
        let (keys, values) = sizes.unwrap_or((Size::exactly(0), Size::exactly(0)));
        map.elements = Some(Elements { is_list: false, keys, values });
        map
    }

    fn call(&self, name: &str, target: Option<&Operand<'s>>, arguments: &[Operand<'s>]) -> Operand<'s> {
        let operands = arguments.iter().chain(target);
        let costs = operands.fold(0_u64, |sum, operand| sum.saturating_add(operand.cost));
        if name == "dyn" && target.is_none() {
            let (size, elements) = arguments.first().map_or((None, None), |inner| (inner.size, inner.elements));
            return Operand { size, elements, ..Operand::new(costs.saturating_add(1), Type::Dyn) };
        }
        let mut operand = calls::call(self, name, target, arguments);
        // Of two results, only one is evaluated.
        operand.cost = if name == "?:" { operand.cost } else { operand.cost.saturating_add(costs) };
        self.sized(operand)
    }

    /// Returns an expression in which a name stands for a value.
    fn bound(&mut self, name: &str, value: Operand<'s>, result: &Expression, cost: u64) -> Operand<'s> {
        self.variables.push(Variable { name: name.to_owned(), value });
        let result = self.operand(result);
        self.variables.pop();
        Operand { path: Path::default(), cost: result.cost.saturating_add(cost), ..result }
    }

    fn looped(&mut self, one: &Loop) -> Operand<'s> {
        let range = self.operand(&one.range);
        let first = self.operand(&one.first);
        let mut cost = range.cost.saturating_add(first.cost);
        let depth = self.variables.len();
        self.variables.push(Variable { name: RESULT.to_owned(), value: first.clone() });
        let is_list = range.elements.map_or(matches!(range.kind, Type::List(_)), |elements| elements.is_list);
        let element = |is_key: bool| {
            let kind = if is_key { range.kind.keys() } else { range.kind.element() };
            let mut element = Operand::new(0, kind);
            element.size = range.elements.map(|sizes| if is_key { sizes.keys } else { sizes.values });
            let step = match (is_key, is_list) {
                (true, true) => "@indices",
                (true, false) => "@keys",
                (false, true) => "@items",
                (false, false) => "@values",
            };
            element.path = range.path.below(step);
            element
        };
        match &one.second {
            None => {
                let value = element(!is_list);
                self.variables.push(Variable { name: one.variable.clone(), value });
            }
            Some(second) => {
                self.variables.push(Variable { name: one.variable.clone(), value: element(true) });
                self.variables.push(Variable { name: second.clone(), value: element(false) });
            }
        }
        let condition = self.operand(&one.condition);
        let step = self.operand(&one.step);
        self.variables.truncate(depth + 1);
        cost = cost.saturating_add(self.operand(&one.result).cost);
        self.variables.truncate(depth);
        // The server looks up the size of a field or variable only now, by a path that may have changed.
        let size = match one.range {
            Expression::Name(_) | Expression::Field(..) => self.declared_size(&range.path, &range.kind).or(range.size),
            _ => range.size,
        };
        let size = size.unwrap_or(Size::UNKNOWN);
        let steps = size.most.saturating_mul(step.cost.saturating_add(condition.cost));
        let is_collection = matches!(first.kind, Type::List(_) | Type::Map(..));
        let kind = match (&one.result, is_collection) {
            // The result of the macro that counts.
            (Expression::Call { .. }, _) => Type::Bool,
            (_, true) => first.kind.joined(&step.kind),
            (_, false) => first.kind,
        };
        let mut whole = Operand::new(cost.saturating_add(steps), kind);
        whole.size = Some(if is_collection { size } else { Size::exactly(1) });
        whole.elements = if is_collection { step.elements } else { None };
        whole
    }
}

fn literal_operand<'s>(literal: Literal) -> Operand<'s> {
    let (kind, size) = match literal {
        Literal::Int(_) => (Type::Int, 1),
        Literal::Uint => (Type::Uint, 1),
        Literal::Double => (Type::Double, 1),
        Literal::Bool => (Type::Bool, 1),
        Literal::Null => (Type::Null, 1),
        Literal::Text(size) => (Type::Text, size),
        Literal::Bytes(size) => (Type::Bytes, size),
    };
    let mut operand = Operand::new(0, kind);
    operand.size = Some(Size::exactly(size));
    if let Literal::Int(number) = literal {
        operand.number = Some(number);
    }
    operand
}

/// The costs of creating a list and a map.
const EMPTY_LIST: u64 = 10;
const EMPTY_MAP: u64 = 30;

/// The names of types, which are values.
const TYPES: [&str; 10] = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
