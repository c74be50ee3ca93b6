//! Merging: a value with the fields of another one on top.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    super::{
        element::PathElement,
        problem::Problems,
        schema::{ListType, MapType, Schema, TypeId},
    },
    Typed,
    form::{Form, Forms, item_element, items, resolve},
    validate::scalar_problem,
};

impl Typed {
    /// Returns the value with the fields of a configuration on top. Nothing is removed.
    ///
    /// Items that both lists have are in the order of the configuration.
    ///
    /// # Errors
    ///
    /// Returns the fields that do not fit the type.
    pub fn merge(&self, config: &Self) -> Result<Self, Problems> {
        let merged = merge(&self.schema, Some(self.ty), Some(&self.value), Some(&config.value))?;
        Ok(self.with(merged.unwrap_or(Value::Null)))
    }
}

fn merge(
    schema: &Schema,
    ty: Option<TypeId>,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Result<Option<Value>, Problems> {
    let atom = resolve(schema, ty)?;
    let (left_forms, right_forms) = (Forms::of(atom, left), Forms::of(atom, right));
    if right.is_none() {
        return of_form(schema, left_forms.first(atom)?, left, right);
    }
    if left.is_some() && left_forms != right_forms {
        // The result is that of the configuration, but both sides must fit.
        let others = of_form(schema, left_forms.first(atom)?, left, right);
        let merged = of_form(schema, right_forms.first(atom)?, left, right);
        return match (others, merged) {
            (Err(mut problems), Err(more)) => {
                problems.extend(more);
                Err(problems)
            }
            (Err(problems), Ok(_)) => Err(problems),
            (Ok(_), merged) => merged,
        };
    }
    of_form(schema, right_forms.first(atom)?, left, right)
}

fn of_form(
    schema: &Schema,
    form: Form<'_>,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Result<Option<Value>, Problems> {
    let newest = || Ok(right.or(left).cloned());
    match form {
        Form::Scalar(scalar) => {
            let mut problems = scalar_problem(scalar, left, "lhs: ");
            let others = scalar_problem(scalar, right, "rhs: ");
            // One side is enough.
            if !problems.0.is_empty() && !others.0.is_empty() {
                problems.extend(others);
                return Err(problems);
            }
            newest()
        }
        Form::List(list) => {
            let (lefts, rights) = (items(left), items(right));
            if list.is_atomic || (lefts.is_empty() && rights.is_empty()) {
                return newest();
            }
            let merged = merge_lists(schema, list, lefts, rights)?;
            Ok(Some(merged).filter(|items| !items.is_empty()).map(Value::Array))
        }
        Form::Map(map) => {
            let empty = Map::new();
            let lefts = left.and_then(Value::as_object).unwrap_or(&empty);
            let rights = right.and_then(Value::as_object).unwrap_or(&empty);
            if map.is_atomic || (lefts.is_empty() && rights.is_empty()) {
                return newest();
            }
            let merged = merge_maps(schema, map, lefts, rights)?;
            Ok(Some(merged).filter(|fields| !fields.is_empty()).map(Value::Object))
        }
    }
}

fn merge_maps(
    schema: &Schema,
    map: &MapType,
    lefts: &Map<String, Value>,
    rights: &Map<String, Value>,
) -> Result<Map<String, Value>, Problems> {
    let mut out = Map::new();
    let mut problems = Problems::default();
    let only_right = rights.keys().filter(|name| !lefts.contains_key(*name));
    for name in lefts.keys().chain(only_right) {
        match merge(schema, map.type_of(name), lefts.get(name), rights.get(name)) {
            Ok(merged) => drop(merged.map(|merged| out.insert(name.clone(), merged))),
            Err(found) => problems.extend(found.below(&PathElement::field(name))),
        }
    }
    problems.into_result(out)
}

/// A list's path elements in order, and the item of each. An element with several items has none.
struct Indexed<'a> {
    elements: Vec<PathElement>,
    items: BTreeMap<PathElement, Option<&'a Value>>,
}

impl<'a> Indexed<'a> {
    fn new(schema: &Schema, list: &ListType, items: &'a [Value], duplicates: bool, problems: &mut Problems) -> Self {
        let mut out = Self { elements: Vec::with_capacity(items.len()), items: BTreeMap::new() };
        for (index, item) in items.iter().enumerate() {
            let element = match item_element(schema, list, item) {
                Ok(element) => element,
                Err(why) => {
                    problems.extend(Problems::one(format!("element {index}: {why}")));
                    continue;
                }
            };
            if !out.items.contains_key(&element) {
                out.items.insert(element.clone(), Some(item));
            } else if duplicates {
                out.items.insert(element.clone(), None);
            } else {
                problems.extend(Problems::one(format!("duplicate entries for key {element}")));
                continue;
            }
            out.elements.push(element);
        }
        out
    }

    fn item(&self, element: &PathElement) -> Option<&'a Value> {
        self.items.get(element).copied().flatten()
    }
}

/// Merges two lists. Items of the left list keep their places between the items that both have, and those follow the right list.
fn merge_lists(schema: &Schema, list: &ListType, lefts: &[Value], rights: &[Value]) -> Result<Vec<Value>, Problems> {
    let mut problems = Problems::default();
    let right = Indexed::new(schema, list, rights, false, &mut problems);
    let left = Indexed::new(schema, list, lefts, true, &mut problems);
    if !problems.0.is_empty() {
        return Err(problems);
    }
    let mut shared: VecDeque<&PathElement> =
        right.elements.iter().filter(|element| left.items.contains_key(element)).collect();
    let mut next_shared = shared.pop_front();
    let mut out = Vec::with_capacity(lefts.len().max(rights.len()));
    let mut merged = BTreeSet::new();
    // Problems inside of an item are not reported here: the items were validated before.
    let mut push = |of_left: Option<&Value>, of_right: Option<&Value>| {
        out.extend(merge(schema, list.element, of_left, of_right).ok().flatten());
    };
    let (mut l, mut r) = (0, 0);
    while l < left.elements.len() || r < right.elements.len() {
        if let (Some(element), Some(wanted)) = (left.elements.get(l), right.elements.get(r)) {
            if element == wanted {
                merged.insert(element);
                push(left.item(element), right.item(element));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.pop_front();
                continue;
            }
            if right.items.contains_key(element) && next_shared.is_some_and(|next| next != element) {
                l += 1;
                continue;
            }
        }
        if let Some(element) = left.elements.get(l) {
            if !right.items.contains_key(element) {
                push(lefts.get(l), None);
                l += 1;
                continue;
            }
            if merged.contains(element) {
                l += 1;
            }
        }
        if let Some(element) = right.elements.get(r) {
            merged.insert(element);
            push(left.item(element), right.item(element));
            r += 1;
            if next_shared == Some(element) {
                next_shared = shared.pop_front();
            }
        }
    }
    Ok(out)
}
