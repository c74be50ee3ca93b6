//! Field sets in which parents of declared fields are members, too.

use super::{
    element::PathElement,
    schema::{Schema, TypeId},
    set::FieldSet,
};

impl FieldSet {
    /// Returns the set with every declared field that has paths of the set below it.
    pub(super) fn with_declared_parents(&self, schema: &Schema, ty: Option<TypeId>) -> Self {
        let atom = ty.map(|ty| schema.atom(ty));
        let map = atom.and_then(|atom| atom.map.as_ref());
        let list = atom.and_then(|atom| atom.list.as_ref());
        let mut out = Self { members: self.members.clone(), children: Vec::with_capacity(self.children.len()) };
        for (element, child) in &self.children {
            let mut inner = None;
            match element {
                PathElement::Field(name) => {
                    if let Some(map) = map {
                        if map.fields.contains_key(name) {
                            out.insert_member(element.clone());
                        }
                        inner = map.type_of(name);
                    }
                }
                PathElement::Key(_) => inner = list.and_then(|list| list.element),
                PathElement::Value(_) | PathElement::Index(_) => {}
            }
            out.children.push((element.clone(), child.with_declared_parents(schema, inner)));
        }
        out
    }
}
