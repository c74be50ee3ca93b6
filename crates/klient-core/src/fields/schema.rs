//! Schemas: how values of a type are merged.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// The types of a group of kinds, by name.
///
/// A schema says how values are merged. It says little about which values are valid.
#[doc(alias("schema.Schema"))]
#[derive(Clone, Debug, Default)]
pub struct Schema {
    atoms: Vec<Atom>,
    names: HashMap<String, TypeId>,
}

/// A type of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// The forms that a value of a type can have. Most types have exactly one.
#[doc(alias("schema.Atom"))]
#[derive(Clone, Debug, Default)]
pub struct Atom {
    /// Values that are not merged.
    pub scalar: Option<Scalar>,
    /// Lists.
    pub list: Option<ListType>,
    /// Objects and maps.
    pub map: Option<MapType>,
    name: Option<String>,
    is_missing: bool,
}

/// The type of a value that is not merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any of them.
    Untyped,
}

/// The type of a list.
#[derive(Clone, Debug)]
pub struct ListType {
    /// The type of its items.
    pub element: Option<TypeId>,
    /// Whether the list is replaced as a whole. Otherwise it is a map if it has keys, and a set if not.
    pub is_atomic: bool,
    /// The fields that identify an item.
    pub keys: Vec<String>,
}

/// The type of an object or a map.
#[derive(Clone, Debug, Default)]
pub struct MapType {
    /// The declared fields.
    pub fields: BTreeMap<String, MapField>,
    /// The type of all other fields. Without it, there can be no others.
    pub element: Option<TypeId>,
    /// Whether the value is replaced as a whole.
    pub is_atomic: bool,
}

/// A declared field.
#[derive(Clone, Debug)]
pub struct MapField {
    /// The type of the field.
    pub ty: TypeId,
    /// The value that identifies a list item in which this key field is absent.
    pub default: Option<Value>,
}

/// A [`Schema`] under construction.
///
/// Types can be referred to before they are defined.
#[derive(Debug, Default)]
pub struct SchemaBuilder {
    atoms: Vec<Option<Atom>>,
    names: HashMap<String, TypeId>,
    /// Types that are another type, atomic or not.
    overrides: Vec<(TypeId, TypeId, bool)>,
}

impl Schema {
    /// Returns a type by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied().filter(|id| !self.atom(*id).is_missing)
    }

    /// Returns the forms of a type.
    #[must_use]
    pub fn atom(&self, id: TypeId) -> &Atom {
        &self.atoms[id.0 as usize]
    }

    /// Parses a schema in the YAML format of Go's `structured-merge-diff`, given as a value.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let mut builder = SchemaBuilder::default();
        for definition in value["types"].as_array().into_iter().flatten() {
            let id = builder.named(definition["name"].as_str().unwrap_or_default());
            let atom = builder.parse_atom(definition);
            builder.define(id, atom);
        }
        builder.build()
    }
}

impl Atom {
    /// Returns the type of a value that is not merged.
    #[must_use]
    pub fn scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), ..Self::default() }
    }

    /// Returns the type of a list.
    #[must_use]
    pub fn list(list: ListType) -> Self {
        Self { list: Some(list), ..Self::default() }
    }

    /// Returns the type of an object or a map.
    #[must_use]
    pub fn map(map: MapType) -> Self {
        Self { map: Some(map), ..Self::default() }
    }

    /// Returns the type of scalars, lists and maps alike.
    #[must_use]
    pub fn any(list: ListType, map: MapType) -> Self {
        Self { scalar: Some(Scalar::Untyped), list: Some(list), map: Some(map), ..Self::default() }
    }

    /// Returns why the type has no form.
    pub(super) fn problem(&self) -> String {
        match &self.name {
            name if self.is_missing => {
                format!("schema error: no type found matching: {}", name.as_deref().unwrap_or("inlined type"))
            }
            Some(name) => format!("schema error: invalid atom: named type: {name}"),
            None => "schema error: invalid atom: inlined".to_owned(),
        }
    }

    /// Returns whether the type is not defined.
    pub(super) fn is_missing(&self) -> bool {
        self.is_missing
    }
}

impl MapType {
    /// Returns the type of a field or entry.
    pub(super) fn type_of(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).map(|field| field.ty).or(self.element)
    }
}

impl SchemaBuilder {
    /// Returns the type with a name, which can be defined later.
    pub fn named(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.push(None);
        self.names.insert(name.to_owned(), id);
        id
    }

    /// Defines a named type.
    pub fn define(&mut self, id: TypeId, atom: Atom) {
        self.atoms[id.0 as usize] = Some(atom);
    }

    /// Adds a type without a name.
    pub fn add(&mut self, atom: Atom) -> TypeId {
        self.push(Some(atom))
    }

    /// Adds a type that differs from another only in that it is atomic, or not.
    pub fn with_atomicity(&mut self, of: TypeId, is_atomic: bool) -> TypeId {
        let id = self.push(None);
        self.overrides.push((id, of, is_atomic));
        id
    }

    /// Adds the type of values without a schema: objects are merged, and lists are atomic.
    pub fn deduced(&mut self) -> TypeId {
        let id = self.named(DEDUCED);
        let list = ListType { element: Some(self.named(UNTYPED)), is_atomic: true, keys: Vec::new() };
        let map = MapType { element: Some(id), ..MapType::default() };
        self.define(id, Atom::any(list, map));
        self.untyped();
        id
    }

    /// Adds the type of values that are replaced as a whole.
    pub fn untyped(&mut self) -> TypeId {
        let id = self.named(UNTYPED);
        let list = ListType { element: Some(id), is_atomic: true, keys: Vec::new() };
        let map = MapType { element: Some(id), is_atomic: true, ..MapType::default() };
        self.define(id, Atom::any(list, map));
        id
    }

    /// Returns the schema.
    #[must_use]
    pub fn build(mut self) -> Schema {
        for (id, of, is_atomic) in std::mem::take(&mut self.overrides) {
            let mut atom = self.atoms[of.0 as usize].clone().unwrap_or_default();
            match &mut atom {
                Atom { map: Some(map), .. } => map.is_atomic = is_atomic,
                Atom { list: Some(list), .. } => list.is_atomic = is_atomic,
                _ => atom.is_missing = true,
            }
            self.atoms[id.0 as usize] = Some(atom);
        }
        let missing = || Atom { is_missing: true, ..Atom::default() };
        let mut atoms: Vec<Atom> = self.atoms.into_iter().map(|atom| atom.unwrap_or_else(missing)).collect();
        for (name, id) in &self.names {
            atoms[id.0 as usize].name = Some(name.clone());
        }
        Schema { atoms, names: self.names }
    }

    fn push(&mut self, atom: Option<Atom>) -> TypeId {
        let id = TypeId(u32::try_from(self.atoms.len()).expect("a schema has fewer than four billion types"));
        self.atoms.push(atom);
        id
    }

    fn parse_atom(&mut self, value: &Value) -> Atom {
        let scalar = value.get("scalar").and_then(Value::as_str).and_then(|name| match name {
            "numeric" => Some(Scalar::Numeric),
            "string" => Some(Scalar::String),
            "boolean" => Some(Scalar::Boolean),
            "untyped" => Some(Scalar::Untyped),
            _ => None,
        });
        let list = value.get("list").map(|list| ListType {
            element: self.parse_ref(&list["elementType"]),
            is_atomic: list["elementRelationship"] != "associative",
            keys: list["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        });
        let map = value.get("map").map(|map| {
            let mut fields = BTreeMap::new();
            for field in map["fields"].as_array().into_iter().flatten() {
                let name = field["name"].as_str().unwrap_or_default().to_owned();
                if let Some(ty) = self.parse_ref(&field["type"]) {
                    let default = field.get("default").filter(|default| !default.is_null()).cloned();
                    fields.insert(name, MapField { ty, default });
                }
            }
            let is_atomic = map["elementRelationship"] == "atomic";
            MapType { fields, element: self.parse_ref(&map["elementType"]), is_atomic }
        });
        Atom { scalar, list, map, ..Atom::default() }
    }

    fn parse_ref(&mut self, value: &Value) -> Option<TypeId> {
        let fields = value.as_object().filter(|fields| !fields.is_empty())?;
        let id = match fields.get("namedType").and_then(Value::as_str) {
            Some(name) => self.named(name),
            None => {
                let atom = self.parse_atom(value);
                self.add(atom)
            }
        };
        Some(match fields.get("elementRelationship").and_then(Value::as_str) {
            Some(relationship) => self.with_atomicity(id, relationship == "atomic"),
            None => id,
        })
    }
}

/// The name of the type of values without a schema.
const DEDUCED: &str = "__untyped_deduced_";
/// The name of the type of values that are replaced as a whole.
const UNTYPED: &str = "__untyped_atomic_";

impl Schema {
    /// Returns whether a map type stands for values without a schema.
    pub(super) fn is_deduced(&self, map: &MapType) -> bool {
        map.fields.is_empty()
            && map.element.is_some_and(|element| {
                let atom = self.atom(element);
                match &atom.name {
                    Some(name) => name == DEDUCED,
                    None => atom.scalar == Some(Scalar::Untyped),
                }
            })
    }
}
