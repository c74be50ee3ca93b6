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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::Value;

    use super::*;

    /// Returns what was recorded of a kind by `cargo xtask field-sets`.
    fn recorded(kind: &str) -> Vec<Value> {
        let mut text = String::new();
        let compressed = &include_bytes!("../../testdata/field-sets.jsonl.gz")[..];
        flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
        let is_of_kind = |line: &&str| line.starts_with(&format!(r#"{{"kind":"{kind}","#));
        text.lines()
            .filter(is_of_kind)
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["call"].take())
            .collect()
    }

    #[test]
    fn declared_parents_are_those_of_go() {
        let (schemas, calls) = (recorded("schema"), recorded("parents"));
        assert!(calls.len() > 400, "only {} calls", calls.len());
        for call in calls {
            let definition = &schemas.iter().find(|schema| schema["id"] == call["schema"]).unwrap()["definition"];
            let schema = Schema::from_value(&definition["schema"]);
            let root = schema.find(definition["root"].as_str().unwrap());
            assert!(root.is_some(), "{definition}");
            let set: FieldSet = call["of"].as_str().unwrap().parse().unwrap();
            let found = set.with_declared_parents(&schema, root);
            assert_eq!(found.to_string(), call["set"].as_str().unwrap(), "{call}");
        }
    }
}
