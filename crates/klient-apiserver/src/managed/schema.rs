//! The schemas of kinds, by which server-side apply merges them.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use klient_core::fields::{Atom, ListType, MapField, MapType, Scalar, Schema, SchemaBuilder, TypeId};
use serde_json::Value;

use crate::registry::{self, Field, MergeRule, Resource, Shape, TypeDef};

/// A schema and the type of a kind's objects in it.
#[derive(Clone, Debug)]
pub(crate) struct SchemaOf {
    pub(super) schema: Arc<Schema>,
    pub(super) root: TypeId,
}

/// Returns the schema of a resource.
pub(super) fn of(resource: &Resource) -> Option<SchemaOf> {
    match &resource.schema {
        registry::Schema::Custom(custom) => Some(custom.merge_schema().clone()),
        registry::Schema::BuiltIn(_) => {
            let built_in = built_in();
            let kinds = built_in.roots.get(&resource.api_version())?;
            Some(SchemaOf { schema: Arc::clone(&built_in.schema), root: *kinds.get(&resource.kind)? })
        }
    }
}

struct BuiltIn {
    schema: Arc<Schema>,
    /// The types of kinds, by version and kind.
    roots: HashMap<String, HashMap<String, TypeId>>,
}

/// Returns the schema of all built-in kinds, which is built at the first write.
fn built_in() -> &'static BuiltIn {
    static SCHEMA: OnceLock<BuiltIn> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut builder = Builder::default();
        let mut roots: HashMap<String, HashMap<String, TypeId>> = HashMap::new();
        for (name, def) in registry::types().iter() {
            let id = builder.define(name, def);
            if let Some((group, version, kind)) = &def.kind {
                roots.entry(registry::api_version(group, version)).or_default().insert(kind.clone(), id);
            }
        }
        BuiltIn { schema: Arc::new(builder.inner.build()), roots }
    })
}

/// Returns the schema of a custom kind, from the structural schema of its definition.
pub(crate) fn custom(structural: Option<&Value>) -> SchemaOf {
    let mut builder = Builder::default();
    let root = match structural {
        None => {
            let element = Some(builder.inner.deduced());
            builder.inner.add(Atom::map(MapType { element, ..MapType::default() }))
        }
        Some(structural) => {
            let mut structural = structural.clone();
            structural["properties"]["metadata"] = Value::Null;
            structural["x-kubernetes-embedded-resource"] = Value::Bool(true);
            let atom = builder.atom(&structural, false);
            builder.inner.add(atom)
        }
    };
    SchemaOf { schema: Arc::new(builder.inner.build()), root }
}

#[derive(Default)]
struct Builder {
    inner: SchemaBuilder,
    /// Whether the types of metadata were added.
    has_metadata: bool,
}

impl Builder {
    /// Defines a built-in type.
    fn define(&mut self, name: &str, def: &TypeDef) -> TypeId {
        let id = self.inner.named(name);
        let atom = match &def.is {
            _ if name.ends_with(".RawExtension") => self.untyped_atom(),
            Some(shape) => self.shape_atom(shape, &MergeRule::default()),
            None => {
                let mut map = MapType { is_atomic: def.atomic, ..MapType::default() };
                for (field_name, field) in &def.fields {
                    let is_required = def.required.contains(field_name);
                    map.fields.insert(field_name.clone(), self.field(field, is_required));
                }
                if map.fields.is_empty() {
                    map.element = Some(self.inner.deduced());
                }
                Atom::map(map)
            }
        };
        self.inner.define(id, atom);
        id
    }

    fn field(&mut self, field: &Field, is_required: bool) -> MapField {
        let none = MergeRule::default();
        let rule = field.merge.as_deref().unwrap_or(&none);
        // Go's zero value identifies items in which a required key is absent.
        let zero = match &field.shape {
            Shape::Text => Some(Value::from("")),
            Shape::Int32 | Shape::Int64 => Some(Value::from(0)),
            _ => None,
        };
        let default = rule.default.clone().or(zero.filter(|_| is_required));
        MapField { ty: self.shape(&field.shape, rule), default }
    }

    fn shape(&mut self, shape: &Shape, rule: &MergeRule) -> TypeId {
        if let Shape::Ref(name) = shape {
            let id = self.inner.named(name);
            return match rule.map.as_deref() {
                Some(map) => self.inner.with_atomicity(id, map == "atomic"),
                None => id,
            };
        }
        let atom = self.shape_atom(shape, rule);
        self.inner.add(atom)
    }

    fn shape_atom(&mut self, shape: &Shape, rule: &MergeRule) -> Atom {
        let is_atomic = rule.map.as_deref() == Some("atomic");
        match shape {
            Shape::Text | Shape::Bytes => Atom::scalar(Scalar::String),
            Shape::Int32 | Shape::Int64 | Shape::Number => Atom::scalar(Scalar::Numeric),
            Shape::Bool => Atom::scalar(Scalar::Boolean),
            Shape::Time | Shape::Quantity => Atom::scalar(Scalar::Untyped),
            // The real server's document has no type for a number or a string, which allows everything.
            Shape::Any | Shape::IntOrText => {
                let list = ListType { element: Some(self.inner.untyped()), is_atomic: true, keys: Vec::new() };
                let map = MapType { element: Some(self.inner.deduced()), is_atomic, ..MapType::default() };
                Atom::any(list, map)
            }
            Shape::Object => {
                Atom::map(MapType { element: Some(self.inner.deduced()), is_atomic, ..MapType::default() })
            }
            Shape::Ref(name) => {
                // A type that is only another name.
                let element = self.inner.named(name);
                Atom::map(MapType { element: Some(element), is_atomic, ..MapType::default() })
            }
            Shape::List(item) => {
                let element = Some(self.shape(item, &MergeRule::default()));
                let is_atomic = !matches!(rule.list.as_deref(), Some("set" | "map"));
                Atom::list(ListType { element, is_atomic, keys: rule.keys.clone() })
            }
            Shape::Map(entry) => {
                let element = Some(self.shape(entry, &MergeRule::default()));
                Atom::map(MapType { element, is_atomic, ..MapType::default() })
            }
        }
    }

    fn untyped_atom(&mut self) -> Atom {
        let element = Some(self.inner.untyped());
        let list = ListType { element, is_atomic: true, keys: Vec::new() };
        let map = MapType { element, is_atomic: true, ..MapType::default() };
        Atom::any(list, map)
    }

    /// Returns the forms of a node of a structural schema. `keeps_unknown` says whether a node above keeps unknown fields.
    fn atom(&mut self, node: &Value, keeps_unknown: bool) -> Atom {
        let keeps_unknown = keeps_unknown || node["x-kubernetes-preserve-unknown-fields"] == true;
        match node["type"].as_str() {
            // A node without a type allows everything: int-or-string, and unknown fields.
            None => {
                let list = self.list(node, keeps_unknown);
                let map = self.map(node, keeps_unknown);
                Atom::any(list, map)
            }
            Some("object") => Atom::map(self.map(node, keeps_unknown)),
            Some("array") => Atom::list(self.list(node, keeps_unknown)),
            Some("integer" | "number") => Atom::scalar(Scalar::Numeric),
            Some("boolean") => Atom::scalar(Scalar::Boolean),
            Some("string") if matches!(node["format"].as_str(), None | Some("" | "byte")) => {
                Atom::scalar(Scalar::String)
            }
            Some(_) => Atom::scalar(Scalar::Untyped),
        }
    }

    fn node(&mut self, node: &Value, keeps_unknown: bool) -> TypeId {
        let atom = self.atom(node, keeps_unknown);
        self.inner.add(atom)
    }

    fn list(&mut self, node: &Value, keeps_unknown: bool) -> ListType {
        let element = match node.get("items") {
            Some(items) => self.node(items, keeps_unknown),
            None => self.inner.untyped(),
        };
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (is_atomic, keys) = match node["x-kubernetes-list-type"].as_str() {
            Some("set") => (false, Vec::new()),
            Some("map") => (false, texts(&node["x-kubernetes-list-map-keys"])),
            _ => (true, Vec::new()),
        };
        ListType { element: Some(element), is_atomic, keys }
    }

    fn map(&mut self, node: &Value, keeps_unknown: bool) -> MapType {
        let mut map = MapType { is_atomic: node["x-kubernetes-map-type"] == "atomic", ..MapType::default() };
        for (name, property) in node["properties"].as_object().into_iter().flatten().filter(|(_, node)| !node.is_null())
        {
            let default = property.get("default").filter(|default| !default.is_null()).cloned();
            map.fields.insert(name.clone(), MapField { ty: self.node(property, keeps_unknown), default });
        }
        if node["x-kubernetes-embedded-resource"] == true {
            let text = self.inner.add(Atom::scalar(Scalar::String));
            for name in ["apiVersion", "kind"] {
                map.fields.insert(name.to_owned(), MapField { ty: text, default: None });
            }
            map.fields.insert("metadata".to_owned(), MapField { ty: self.metadata(), default: None });
        }
        map.element = match node.get("additionalProperties") {
            None | Some(Value::Null) if keeps_unknown || map.fields.is_empty() => Some(self.inner.deduced()),
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(self.inner.deduced()),
            Some(entry) => Some(self.node(entry, keeps_unknown)),
        };
        map
    }

    /// Returns the type of metadata, which is that of built-in kinds.
    fn metadata(&mut self) -> TypeId {
        const NAMES: [&str; 5] = ["FieldsV1", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "Time"];
        let full = |name: &str| format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
        if !std::mem::replace(&mut self.has_metadata, true) {
            for name in NAMES.map(full) {
                if let Some(def) = registry::types().get(&name) {
                    self.define(&name, def);
                }
            }
        }
        self.inner.named(&full("ObjectMeta"))
    }
}
