//! Calls that bind variables: comprehensions, `sortBy`, `optMap` and the forms with two variables.

use std::sync::Arc;

use kube_cel::cel::{
    Value as Cel,
    common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, operators},
    objects::{Key, Map},
};

use super::{Evaluation, Outcome, Variables, cost, operator, optional_of, unique};
use crate::EvaluationError;

impl Evaluation<'_> {
    pub(super) fn comprehension(&mut self, it: &ComprehensionExpr, variables: &Variables<'_>) -> Outcome {
        let range = unique::plain(self.of(&it.iter_range, variables)?);
        let pairs = pairs(&range)?;
        if let Some((condition, items)) = appended(it) {
            return self.collected(it, &range, pairs, condition, items, variables);
        }
        // An error may be outweighed by a later item.
        let mut accumulated = self.of(&it.accu_init, variables);
        for pair in pairs {
            let mut inner = variables.inner();
            inner.values.insert(it.accu_var.clone(), accumulated);
            bind(&mut inner, it, &range, pair);
            if self.of(&it.loop_cond, &inner)? == Cel::Bool(false) {
                accumulated = inner.values.remove(&it.accu_var).unwrap_or(Ok(Cel::Null));
                break;
            }
            accumulated = self.of(&it.loop_step, &inner);
            if matches!(&accumulated, Err(error) if error.is_too_expensive()) {
                return accumulated;
            }
        }
        let mut inner = variables.inner();
        inner.values.insert(it.accu_var.clone(), accumulated);
        self.of(&it.result, &inner)
    }

    /// Evaluates a comprehension that only appends to a list, without copying the list for each item.
    fn collected(
        &mut self,
        it: &ComprehensionExpr,
        range: &Cel,
        pairs: Vec<(Cel, Cel)>,
        condition: Option<&IdedExpr>,
        items: &[IdedExpr],
        variables: &Variables<'_>,
    ) -> Outcome {
        let mut list = Vec::new();
        // Each step reads the list. One that appends creates a list of its items, and adds it.
        let appending = 1 + if items.iter().all(cost::is_constant) { 0 } else { cost::LIST };
        self.budget.spend(1)?;
        for pair in pairs {
            self.budget.spend(1)?;
            let mut inner = variables.inner();
            bind(&mut inner, it, range, pair);
            match condition.map(|condition| self.of(condition, &inner)).transpose()? {
                None | Some(Cel::Bool(true)) => {}
                Some(Cel::Bool(false)) => continue,
                Some(_) => return Err(EvaluationError::no_such_overload()),
            }
            self.budget.spend(appending)?;
            for item in items {
                list.push(self.of(item, &inner)?);
            }
        }
        Ok(Cel::List(Arc::new(list)))
    }

    /// Evaluates a call that binds variables. Returns `None` for other calls.
    pub(super) fn bound_call(&mut self, call: &CallExpr, variables: &Variables<'_>) -> Option<Outcome> {
        let target = call.target.as_deref()?;
        let name = |at: usize| match &call.args.get(at)?.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        match (call.func_name.as_str(), &call.args[..]) {
            ("sortBy", [_, by]) => Some(self.sort_by(target, &name(0)?, by, variables)),
            ("optMap", [_, body]) => Some(self.opt_map(target, name(0)?, body, variables, true)),
            ("optFlatMap", [_, body]) => Some(self.opt_map(target, name(0)?, body, variables, false)),
            ("all" | "exists" | "existsOne" | "exists_one", [_, _, body]) => {
                Some(self.quantified(&call.func_name, target, &[name(0)?, name(1)?], body, variables))
            }
            ("transformList" | "transformMap" | "transformMapEntry", [_, _, rest @ ..]) if !rest.is_empty() => {
                Some(self.transformed(&call.func_name, target, &[name(0)?, name(1)?], rest, variables))
            }
            _ => None,
        }
    }

    fn sort_by(&mut self, target: &IdedExpr, name: &str, by: &IdedExpr, variables: &Variables<'_>) -> Outcome {
        let Cel::List(items) = unique::plain(self.of(target, variables)?) else {
            return Err(EvaluationError::no_such_overload());
        };
        let mut keyed = Vec::with_capacity(items.len());
        // The real server reads the list twice, and collects the keys in another list.
        self.budget.spend(3)?;
        for item in items.iter() {
            self.budget.spend(cost::LIST + 2)?;
            let mut inner = variables.inner();
            inner.set(name, item.clone());
            keyed.push((self.of(by, &inner)?, item.clone()));
        }
        let keys = Cel::List(Arc::new(keyed.iter().map(|(key, _)| key.clone()).collect()));
        self.budget.spend(cost::comparisons(&keys))?;
        let first = keyed.first().map(|(key, _)| key.clone());
        if let Some(first) = first
            && keyed.iter().any(|(key, _)| operator::order(&first, key).is_none())
        {
            return Err(EvaluationError::no_such_overload());
        }
        keyed.sort_by(|(left, _), (right, _)| operator::order(left, right).unwrap_or(std::cmp::Ordering::Equal));
        Ok(Cel::List(Arc::new(keyed.into_iter().map(|(_, item)| item).collect())))
    }

    fn opt_map(
        &mut self,
        target: &IdedExpr,
        name: String,
        body: &IdedExpr,
        variables: &Variables<'_>,
        wraps: bool,
    ) -> Outcome {
        let before = self.budget.spent();
        let target = self.of(target, variables)?;
        self.budget.spend(2)?;
        let Some(value) = operator::optional(&target)? else { return Ok(target) };
        // The real server evaluates the optional value a second time.
        self.budget.spend(self.budget.spent() - before - if wraps { 1 } else { 2 })?;
        let mut inner = variables.inner();
        inner.set(name, value.clone());
        let result = self.of(body, &inner)?;
        Ok(if wraps { optional_of(Some(result)) } else { result })
    }

    fn quantified(
        &mut self,
        function: &str,
        target: &IdedExpr,
        names: &[String; 2],
        body: &IdedExpr,
        variables: &Variables<'_>,
    ) -> Outcome {
        let range = unique::plain(self.of(target, variables)?);
        let mut count = 0;
        let mut failed = None;
        // Each step reads the result so far, and tests whether it decides.
        let (step, end) = match function {
            "all" => (3, 1),
            "exists" => (4, 1),
            _ => (1, 2),
        };
        self.budget.spend(end)?;
        let mut pairs = pairs(&range)?.into_iter();
        while let Some(pair) = pairs.next() {
            self.budget.spend(step)?;
            match (self.with_pair(names, pair, body, variables), function) {
                (Ok(Cel::Bool(found)), "all" | "exists") if found == (function == "exists") => {
                    // The test before the next step finds the decision.
                    self.budget.spend(if pairs.next().is_some() { step - 1 } else { 0 })?;
                    return Ok(Cel::Bool(found));
                }
                (Ok(Cel::Bool(true)), "existsOne" | "exists_one") => {
                    self.budget.spend(1)?;
                    count += 1;
                }
                (Ok(Cel::Bool(_)), _) => {}
                (Ok(_), _) => failed = Some(EvaluationError::no_such_overload()),
                (Err(error), _) if error.is_too_expensive() => return Err(error),
                (Err(error), _) => failed = Some(error),
            }
        }
        match (failed, function) {
            (Some(error), _) => Err(error),
            (None, "all") => Ok(Cel::Bool(true)),
            (None, "exists") => Ok(Cel::Bool(false)),
            (None, _) => Ok(Cel::Bool(count == 1)),
        }
    }

    fn transformed(
        &mut self,
        function: &str,
        target: &IdedExpr,
        names: &[String; 2],
        rest: &[IdedExpr],
        variables: &Variables<'_>,
    ) -> Outcome {
        let range = unique::plain(self.of(target, variables)?);
        let (filter, body) = match rest {
            [body] => (None, body),
            [filter, body] => (Some(filter), body),
            _ => return Err(EvaluationError::no_such_overload()),
        };
        let (mut list, mut map) = (Vec::new(), std::collections::HashMap::new());
        // A step without a new item reads the result so far; others add to it, too.
        let adding = match function {
            "transformList" if cost::is_constant(body) => 1,
            "transformList" => 1 + cost::LIST,
            "transformMap" => 2,
            _ => 1,
        };
        self.budget.spend(1)?;
        for pair in pairs(&range)? {
            self.budget.spend(1)?;
            if let Some(filter) = filter
                && self.with_pair(names, pair.clone(), filter, variables)? != Cel::Bool(true)
            {
                continue;
            }
            self.budget.spend(adding)?;
            let value = self.with_pair(names, pair.clone(), body, variables)?;
            match function {
                "transformList" => list.push(value),
                "transformMap" => drop(map.insert(operator::key(&pair.0)?, value)),
                _ => {
                    let Cel::Map(_) = value else { return Err(EvaluationError::no_such_overload()) };
                    for (key, value) in pairs(&value)? {
                        if map.insert(operator::key(&key)?, value).is_some() {
                            let problem = format!("insert failed: key {} already exists", operator::shown(&key));
                            return Err(EvaluationError::new(problem));
                        }
                    }
                }
            }
        }
        Ok(if function == "transformList" { Cel::List(Arc::new(list)) } else { Cel::Map(Map { map: Arc::new(map) }) })
    }

    fn with_pair(
        &mut self,
        names: &[String; 2],
        (key, value): (Cel, Cel),
        body: &IdedExpr,
        variables: &Variables<'_>,
    ) -> Outcome {
        let mut inner = variables.inner();
        inner.set(names[0].clone(), key);
        inner.set(names[1].clone(), value);
        self.of(body, &inner)
    }
}

/// Sets the variables of a comprehension.
fn bind(inner: &mut Variables<'_>, it: &ComprehensionExpr, range: &Cel, (key, value): (Cel, Cel)) {
    match &it.iter_var2 {
        Some(second) => {
            inner.set(it.iter_var.clone(), key);
            inner.set(second.clone(), value);
        }
        // A map is iterated over by its keys, and a list by its items.
        None if matches!(range, Cel::Map(_)) => inner.set(it.iter_var.clone(), key),
        None => inner.set(it.iter_var.clone(), value),
    }
}

/// Returns the condition and the items of a comprehension that only appends to a list, as those of `map` and `filter` do.
fn appended(it: &ComprehensionExpr) -> Option<(Option<&IdedExpr>, &[IdedExpr])> {
    let is_accumulator = |expression: &IdedExpr| matches!(&expression.expr, Expr::Ident(name) if *name == it.accu_var);
    let starts_empty = matches!(&it.accu_init.expr, Expr::List(list) if list.elements.is_empty());
    if !starts_empty || !is_accumulator(&it.result) {
        return None;
    }
    let (condition, step) = match &it.loop_step.expr {
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => match &call.args[..] {
            [condition, step, otherwise] if is_accumulator(otherwise) => (Some(condition), step),
            _ => return None,
        },
        _ => (None, &it.loop_step),
    };
    let Expr::Call(call) = &step.expr else { return None };
    match &call.args[..] {
        _ if call.func_name != operators::ADD => None,
        [list, IdedExpr { expr: Expr::List(added), .. }]
            if is_accumulator(list) && added.optional_indices.is_empty() =>
        {
            Some((condition, &added.elements))
        }
        _ => None,
    }
}

/// Returns the indexes and items of a list, or the keys and values of a map in their order.
fn pairs(range: &Cel) -> Result<Vec<(Cel, Cel)>, EvaluationError> {
    match range {
        Cel::List(items) => Ok((0..).map(Cel::Int).zip(items.iter().cloned()).collect()),
        Cel::Map(map) => {
            let mut entries: Vec<_> = map.map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Ok(entries.into_iter().map(|(key, value)| (key_value(key), value.clone())).collect())
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn key_value(key: &Key) -> Cel {
    match key {
        Key::Int(number) => Cel::Int(*number),
        Key::Uint(number) => Cel::UInt(*number),
        Key::Bool(value) => Cel::Bool(*value),
        Key::String(text) => Cel::String(Arc::clone(text)),
    }
}
