//! The fields in which two values differ.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    super::{
        element::PathElement,
        problem::Problems,
        schema::{ListType, MapType, Scalar, Schema, TypeId},
        set::FieldSet,
        value as go,
    },
    Typed,
    form::{Form, Forms, item_element, items, resolve},
    validate::scalar_problem,
};

/// The fields in which two values differ. No path is in more than one of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The fields that only the first value has.
    pub removed: FieldSet,
    /// The fields that both values have, and that are not equal.
    pub modified: FieldSet,
    /// The fields that only the second value has.
    pub added: FieldSet,
}

impl Typed {
    /// Compares two values of the same type.
    ///
    /// # Errors
    ///
    /// Returns the fields that do not fit the type.
    pub fn compare(&self, with: &Self) -> Result<Comparison, Problems> {
        let mut walk = Walk { schema: &self.schema, problems: Problems::default() };
        let difference = walk.values(Some(self.ty), Some(&self.value), Some(&with.value));
        walk.problems.into_result(difference.below)
    }
}

impl Comparison {
    /// Returns whether the values are equal.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Returns the comparison without the fields of a set and those below them.
    #[must_use]
    pub fn without(self, fields: &FieldSet) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }
}

/// The difference between two values: their own, and that of their fields.
#[derive(Default)]
struct Difference {
    is_removed: bool,
    is_modified: bool,
    is_added: bool,
    below: Comparison,
}

impl Difference {
    /// Adds the difference between two fields or items.
    fn put(&mut self, element: &PathElement, inner: Self) {
        let sets = [
            (&mut self.below.removed, inner.is_removed, inner.below.removed),
            (&mut self.below.modified, inner.is_modified, inner.below.modified),
            (&mut self.below.added, inner.is_added, inner.below.added),
        ];
        for (set, is_member, below) in sets {
            if is_member {
                set.insert_member(element.clone());
            }
            if !below.is_empty() {
                set.insert_child(element.clone(), below);
            }
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    problems: Problems,
}

impl<'a> Walk<'a> {
    fn values(&mut self, ty: Option<TypeId>, left: Option<&Value>, right: Option<&Value>) -> Difference {
        let mut out = Difference::default();
        if left.is_some() && left == right {
            return out;
        }
        let atom = match resolve(self.schema, ty) {
            Ok(atom) => atom,
            Err(problems) => {
                self.problems.extend(problems);
                return out;
            }
        };
        let (left_forms, right_forms) = (Forms::of(atom, left), Forms::of(atom, right));
        let mut is_leaf = false;
        if right.is_none() {
            self.form(left_forms.first(atom), left, right, &mut out, &mut is_leaf);
        } else if left.is_none() || left_forms == right_forms {
            self.form(right_forms.first(atom), left, right, &mut out, &mut is_leaf);
        } else {
            self.form(left_forms.first(atom), left, right, &mut out, &mut false);
            self.form(right_forms.first(atom), left, right, &mut out, &mut is_leaf);
        }
        if !is_leaf {
            out.is_added |= left.is_none();
            out.is_removed |= left.is_some() && right.is_none();
        }
        out
    }

    fn form(
        &mut self,
        form: Result<Form<'a>, Problems>,
        left: Option<&Value>,
        right: Option<&Value>,
        out: &mut Difference,
        is_leaf: &mut bool,
    ) {
        match form {
            Err(problems) => self.problems.extend(problems),
            Ok(Form::Scalar(scalar)) => self.scalars(scalar, left, right, out, is_leaf),
            Ok(Form::List(list)) => {
                let (lefts, rights) = (items(left), items(right));
                if list.is_atomic || (lefts.is_empty() && rights.is_empty()) {
                    leaf(left, right, out, is_leaf);
                } else {
                    self.lists(list, lefts, rights, out);
                }
            }
            Ok(Form::Map(map)) => {
                let empty = serde_json::Map::new();
                let lefts = left.and_then(Value::as_object).unwrap_or(&empty);
                let rights = right.and_then(Value::as_object).unwrap_or(&empty);
                if map.is_atomic || (lefts.is_empty() && rights.is_empty()) {
                    leaf(left, right, out, is_leaf);
                } else {
                    self.maps(map, lefts, rights, out);
                }
            }
        }
    }

    fn scalars(
        &mut self,
        scalar: Scalar,
        left: Option<&Value>,
        right: Option<&Value>,
        out: &mut Difference,
        is_leaf: &mut bool,
    ) {
        let mut problems = scalar_problem(scalar, left, "lhs: ");
        let others = scalar_problem(scalar, right, "rhs: ");
        // One side is enough.
        if !problems.0.is_empty() && !others.0.is_empty() {
            problems.extend(others);
            self.problems.extend(problems);
            return;
        }
        leaf(left, right, out, is_leaf);
    }

    fn maps(
        &mut self,
        map: &'a MapType,
        lefts: &serde_json::Map<String, Value>,
        rights: &serde_json::Map<String, Value>,
        out: &mut Difference,
    ) {
        let (mut left, mut right) = (lefts.iter().peekable(), rights.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((name, _)), Some((other, _))) => name.cmp(other),
            };
            let of_left = if order.is_le() { left.next() } else { None };
            let of_right = if order.is_ge() { right.next() } else { None };
            let Some((name, _)) = of_left.or(of_right) else { return };
            let ty = map.type_of(name);
            self.part(
                ty,
                || PathElement::field(name),
                of_left.map(|(_, value)| value),
                of_right.map(|(_, value)| value),
                out,
            );
        }
    }

    /// Compares two fields or items, and adds the difference to their parent's.
    fn part(
        &mut self,
        ty: Option<TypeId>,
        element: impl FnOnce() -> PathElement,
        left: Option<&Value>,
        right: Option<&Value>,
        out: &mut Difference,
    ) {
        let known = self.problems.0.len();
        let inner = self.values(ty, left, right);
        let has_problems = self.problems.0.len() > known;
        let Difference { is_removed, is_modified, is_added, below } = &inner;
        if !has_problems && !is_removed && !is_modified && !is_added && below.is_same() {
            return;
        }
        let element = element();
        for problem in &mut self.problems.0[known..] {
            problem.path.insert_str(0, &element.to_string());
        }
        out.put(&element, inner);
    }

    fn lists(&mut self, list: &'a ListType, lefts: &[Value], rights: &[Value], out: &mut Difference) {
        // Equal lists have no differences, whatever their keys.
        if lefts == rights {
            return;
        }
        let mut by_key: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (is_right, values) in [(false, lefts), (true, rights)] {
            for (index, item) in values.iter().enumerate() {
                match item_element(self.schema, list, item) {
                    Ok(element) => {
                        let (left, right) = by_key.entry(element).or_default();
                        if is_right { right.push(item) } else { left.push(item) }
                    }
                    Err(why) => self.problems.extend(Problems::one(format!("element {index}: {why}"))),
                }
            }
        }
        for (element, (left, right)) in by_key {
            let one = |values: &[&Value]| values.first().map(|value| (*value).clone());
            match (&left[..], &right[..]) {
                ([] | [_], [] | [_]) => {
                    let (left, right) = (left.first().copied(), right.first().copied());
                    if left != right {
                        self.part(list.element, || element, left, right, out);
                    }
                }
                ([_, _, ..], [_, _, ..]) => {
                    let same = left.len() == right.len()
                        && left.iter().zip(&right).all(|(left, right)| go::equals(left, right));
                    if !same {
                        out.below.modified.insert_member(element);
                    }
                }
                // An item that was there several times is compared as if it were new.
                ([_, _, ..], _) => {
                    if let Some(right) = one(&right) {
                        self.part(list.element, || element.clone(), None, Some(&right), out);
                    }
                    out.below.removed.insert_member(element);
                }
                (_, [_, _, ..]) => {
                    if let Some(left) = one(&left) {
                        self.part(list.element, || element.clone(), Some(&left), None, out);
                    }
                    out.below.added.insert_member(element);
                }
            }
        }
    }
}

fn leaf(left: Option<&Value>, right: Option<&Value>, out: &mut Difference, is_leaf: &mut bool) {
    *is_leaf = true;
    match (left, right) {
        (None, _) => out.is_added = true,
        (_, None) => out.is_removed = true,
        (Some(left), Some(right)) => out.is_modified |= !go::equals(left, right),
    }
}
