//! Lists whose items are unique: sets, and lists of objects with keys. Two of them are equal in any order, and adding one to another joins
//! their items.

use std::sync::Arc;

use kube_cel::cel::{
    Value as Cel,
    common::ast::operators,
    objects::{Key, Map, Opaque},
};

use super::{Outcome, operator};

/// A list with unique items. Without keys, an item is identified by its value.
#[derive(Debug, PartialEq)]
pub(crate) struct UniqueList {
    items: Arc<Vec<Cel>>,
    keys: Vec<String>,
}

impl Eq for UniqueList {}

impl Opaque for UniqueList {
    fn runtime_type_name(&self) -> &str {
        "list"
    }
}

impl UniqueList {
    /// Returns a list as a value.
    pub(crate) fn value(items: Vec<Cel>, keys: Vec<String>) -> Cel {
        Cel::Opaque(Arc::new(Self { items: Arc::new(items), keys }))
    }

    fn is_same(&self, left: &Cel, right: &Cel) -> bool {
        if self.keys.is_empty() {
            return operator::equal(left, right);
        }
        let (Cel::Map(left), Cel::Map(right)) = (left, right) else { return false };
        let value = |map: &Map, key: &String| map.map.get(&Key::String(Arc::new(key.clone()))).cloned();
        self.keys.iter().all(|key| match (value(left, key), value(right, key)) {
            (Some(left), Some(right)) => operator::equal(&left, &right),
            (None, None) => true,
            _ => false,
        })
    }

    fn equals(&self, other: &[Cel]) -> bool {
        let has = |items: &[Cel], item: &Cel| items.iter().any(|known| operator::equal(known, item));
        self.items.len() == other.len()
            && self.items.iter().all(|item| has(other, item))
            && other.iter().all(|item| has(&self.items, item))
    }

    /// Returns the list with the items of another one, which replace those with the same keys.
    fn joined(&self, other: &[Cel]) -> Cel {
        let mut items = self.items.to_vec();
        for item in other {
            match items.iter_mut().find(|known| self.is_same(known, item)) {
                Some(known) => *known = item.clone(),
                None => items.push(item.clone()),
            }
        }
        Self::value(items, self.keys.clone())
    }
}

fn as_unique(value: &Cel) -> Option<&UniqueList> {
    match value {
        Cel::Opaque(opaque) => opaque.downcast_ref::<UniqueList>(),
        _ => None,
    }
}

/// Returns a value without the property that its items are unique.
pub(crate) fn plain(value: Cel) -> Cel {
    match as_unique(&value) {
        Some(list) => Cel::List(Arc::clone(&list.items)),
        None => value,
    }
}

/// Compares or adds lists with unique items. Returns `None` for other values and operators.
pub(super) fn apply(name: &str, values: &[Cel]) -> Option<Outcome> {
    let [left, right] = values else { return None };
    let items = |value: &Cel| match plain(value.clone()) {
        Cel::List(items) => Some(items),
        _ => None,
    };
    // The first list decides how the second is added; either decides how they are compared.
    match name {
        operators::EQUALS | operators::NOT_EQUALS => {
            let (list, other) = match (as_unique(left), as_unique(right)) {
                (Some(list), _) => (list, items(right)?),
                (None, Some(list)) => (list, items(left)?),
                (None, None) => return None,
            };
            let is_equal = list.equals(&other);
            Some(Ok(Cel::Bool(is_equal == (name == operators::EQUALS))))
        }
        operators::ADD => {
            let list = as_unique(left)?;
            Some(Ok(list.joined(&items(right)?)))
        }
        _ => None,
    }
}
