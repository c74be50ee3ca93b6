//! Field sets that were written with an older schema.

use super::{
    super::{
        element::{Path, PathElement},
        problem::Problems,
        schema::{Schema, TypeId},
        set::FieldSet,
    },
    Typed,
    form::{Form, Forms, resolve},
};

impl Typed {
    /// Returns a field set in which paths inside of values that have become atomic are replaced by those values.
    ///
    /// Returns nothing if the set fits the schema.
    ///
    /// # Errors
    ///
    /// Returns an error if a type of the schema is not defined.
    pub fn reconcile(&self, set: &FieldSet) -> Result<Option<FieldSet>, Problems> {
        let mut walk =
            Walk { schema: &self.schema, path: Vec::new(), atomic: FieldSet::new(), problems: Problems::default() };
        walk.visit(Some(self.ty), Some(set), false);
        let Walk { atomic, problems, .. } = walk;
        let changed = (!atomic.is_empty()).then(|| set.recursive_difference(&atomic).union(&atomic));
        problems.into_result(changed)
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Path,
    /// The values that have become atomic.
    atomic: FieldSet,
    problems: Problems,
}

impl Walk<'_> {
    /// Visits a node of the set. `is_leaf` says whether the value is a member without an inside.
    fn visit(&mut self, ty: Option<TypeId>, set: Option<&FieldSet>, is_leaf: bool) {
        let form = resolve(self.schema, ty).and_then(|atom| Forms::of(atom, None).first(atom));
        match form {
            Err(problems) => self.problems.extend(problems),
            Ok(Form::Scalar(_)) => {}
            Ok(Form::List(list)) => {
                if list.is_atomic && !is_leaf {
                    self.atomic.insert(&self.path);
                } else if let Some(set) = set {
                    self.parts(set, |_| Some(list.element));
                }
            }
            Ok(Form::Map(map)) if self.schema.is_deduced(map) => {}
            Ok(Form::Map(map)) => {
                if map.is_atomic && !is_leaf {
                    if set.is_some_and(|set| !set.is_empty()) {
                        self.atomic.insert(&self.path);
                    }
                } else if let Some(set) = set {
                    self.parts(set, |element| match element {
                        PathElement::Field(name) => map.type_of(name).map(Some),
                        _ => map.element.map(Some),
                    });
                }
            }
        }
    }

    fn parts(&mut self, set: &FieldSet, type_of: impl Fn(&PathElement) -> Option<Option<TypeId>>) {
        let only_children =
            set.children.iter().filter(|(element, _)| !set.has_member(element)).map(|(element, _)| (element, false));
        let members = set.members.iter().map(|element| (element, true));
        for (element, is_member) in only_children.chain(members) {
            // Fields that the schema does not declare are left alone.
            let Some(ty) = type_of(element) else { continue };
            let below = set.child(element);
            self.path.push(element.clone());
            self.visit(ty, below, is_member && below.is_none());
            self.path.pop();
        }
    }
}
