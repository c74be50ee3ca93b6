//! The registry: the table of served kinds, their names and their rules.
//!
//! Built-in kinds come from a table that was generated from a real server. Custom kinds are added and removed while the server
//! runs. No code is for one kind alone, except the hooks in `builtin/`.

mod types;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use klient_core::{GroupResource, Verb, compare_versions};
use klient_proto::Codec;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::types::{Field, MergeRule, Shape, TypeDef, Types};
use crate::{
    builtin::{self, Hooks},
    custom::CustomSchema,
};

/// The kinds that a server serves, which change when custom kinds are defined.
pub(crate) struct Registry {
    groups: RwLock<Arc<Groups>>,
}

/// The served kinds at one time.
#[derive(Clone, Default)]
pub(crate) struct Groups {
    /// The versions of groups, in the order of discovery.
    pub(crate) versions: Vec<Arc<GroupVersion>>,
    index: Index,
}

/// A version of a group.
#[derive(Clone)]
pub(crate) struct GroupVersion {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resources: Vec<Arc<Resource>>,
}

/// A resource in one version of its group.
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<Verb>,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) storage_version_hash: Option<String>,
    /// The columns of tables. Columns of custom kinds are in their schema.
    pub(crate) columns: Vec<TableColumn>,
    /// The name of the resource's table in the store.
    pub(crate) table: Arc<str>,
    /// Whether `metadata.generation` counts changes of the desired state.
    pub(crate) has_generation: bool,
    /// Whether the status can only be written through its subresource.
    pub(crate) has_status: bool,
    pub(crate) hooks: &'static Hooks,
    pub(crate) schema: Schema,
    /// The protobuf codec, which custom kinds do not have.
    pub(crate) codec: Option<&'static Codec>,
    /// An empty object, which new objects are compared with.
    pub(crate) zero: OnceLock<Arc<Value>>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
}

/// The schema of a kind's objects.
#[derive(Clone)]
pub(crate) enum Schema {
    BuiltIn(&'static TypeDef),
    Custom(Arc<CustomSchema>),
}

/// A subresource, such as `status`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<Verb>,
}

#[derive(Deserialize)]
struct Document {
    version: Value,
    groups: Vec<DocumentGroup>,
    /// The descriptions of columns, each text once.
    descriptions: Vec<String>,
    types: Types,
}

#[derive(Deserialize)]
struct DocumentGroup {
    group: String,
    version: String,
    resources: Vec<DocumentResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentResource {
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<Verb>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
    storage_version_hash: Option<String>,
    /// Name, type, format, index of the description, and priority.
    #[serde(default)]
    columns: Vec<(String, String, String, usize, i64)>,
}

impl Registry {
    /// Returns a registry of all built-in kinds.
    pub(crate) fn built_in() -> Self {
        Self { groups: RwLock::new(Arc::clone(built_in_groups())) }
    }

    /// Returns the kinds that are served now.
    pub(crate) fn groups(&self) -> Arc<Groups> {
        Arc::clone(&self.groups.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a resource, if it is served.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.groups().find(group, version, plural)
    }

    /// Replaces the resources of a custom kind, one for each version.
    pub(crate) fn replace_custom(&self, group: &str, plural: &str, resources: Vec<Arc<Resource>>) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Groups::clone(&groups);
        changed.replace(group, plural, resources);
        *groups = Arc::new(changed);
    }
}

impl Groups {
    /// Returns a resource, if it is served.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.index.get(&index_key(group, version, plural)).cloned()
    }

    /// Returns whether a group is served in a version.
    pub(crate) fn has_version(&self, group: &str, version: &str) -> bool {
        self.versions.iter().any(|found| found.group == group && found.version == version)
    }

    /// Returns whether all kinds of a group in a version are custom.
    pub(crate) fn is_custom(&self, group: &str, version: &str) -> bool {
        let found = self.versions.iter().find(|found| found.group == group && found.version == version);
        found.is_some_and(|found| found.resources.iter().all(|resource| resource.is_custom()))
    }

    /// Returns all resources, each once, in the preferred version of their group.
    pub(crate) fn preferred(&self) -> Vec<Arc<Resource>> {
        let mut seen = std::collections::HashSet::new();
        let resources = self.versions.iter().flat_map(|version| &version.resources);
        resources.filter(|resource| seen.insert(Arc::clone(&resource.table))).cloned().collect()
    }

    /// Returns the resource of a kind, as owner references name it.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let version = self.versions.iter().find(|found| found.group == group && found.version == version)?;
        version.resources.iter().find(|resource| resource.kind == kind).cloned()
    }

    fn replace(&mut self, group: &str, plural: &str, resources: Vec<Arc<Resource>>) {
        for version in self.versions.iter_mut().filter(|version| version.group == group) {
            if version.resources.iter().any(|resource| resource.plural == plural) {
                Arc::make_mut(version).resources.retain(|resource| resource.plural != plural);
            }
        }
        for resource in resources {
            let found =
                self.versions.iter_mut().find(|found| found.group == group && found.version == resource.version);
            match found {
                Some(version) => {
                    let version = Arc::make_mut(version);
                    let at = version.resources.partition_point(|other| other.plural < resource.plural);
                    version.resources.insert(at, resource);
                }
                None => self.insert_version(GroupVersion {
                    group: group.to_owned(),
                    version: resource.version.clone(),
                    resources: vec![resource],
                }),
            }
        }
        self.versions.retain(|version| !version.resources.is_empty());
        self.index = index(&self.versions);
    }

    /// Inserts a version among those of its group, the best first. A new group comes last.
    fn insert_version(&mut self, version: GroupVersion) {
        let mut same = self.versions.iter().enumerate().filter(|(_, other)| other.group == version.group);
        let at = match same.clone().find(|(_, other)| compare_versions(&version.version, &other.version).is_gt()) {
            Some((better_than, _)) => better_than,
            None => same.next_back().map_or(self.versions.len(), |(last, _)| last + 1),
        };
        self.versions.insert(at, Arc::new(version));
    }
}

impl Resource {
    /// Returns `apps/v1`, or `v1` for the core group.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Returns the group and plural, as messages name the resource.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.group.clone(), self.plural.clone())
    }

    /// Returns a subresource by name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Returns whether the resource supports a verb. Custom kinds support all verbs, also those that discovery hides.
    pub(crate) fn has_verb(&self, verb: Verb) -> bool {
        self.is_custom() || self.verbs.contains(&verb)
    }

    /// Returns the key of an object in the store.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Returns the warning of a deprecated version, which responses have.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        match &self.schema {
            Schema::Custom(schema) => schema.deprecation.as_deref(),
            Schema::BuiltIn(_) => self.hooks.deprecation,
        }
    }

    /// Returns whether the resource is custom.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.schema, Schema::Custom(_))
    }
}

/// Returns `apps/v1`, or `v1` for the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns the name of a resource's table in the store, which all versions share.
pub(crate) fn table_name(group: &str, plural: &str) -> Arc<str> {
    if group.is_empty() { Arc::from(plural) } else { Arc::from(format!("{plural}.{group}")) }
}

/// Returns the response to `/version`.
pub(crate) fn server_version() -> &'static Value {
    &document().version
}

/// Returns the types of all built-in kinds.
pub(crate) fn types() -> &'static Types {
    &document().types
}

fn document() -> &'static Document {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        serde_json::from_str(include_str!("registry/kubernetes.json")).expect("the table is generated and tested")
    })
}

fn built_in_groups() -> &'static Arc<Groups> {
    static GROUPS: OnceLock<Arc<Groups>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let versions: Vec<Arc<GroupVersion>> = document().groups.iter().map(|found| Arc::new(version(found))).collect();
        Arc::new(Groups { index: index(&versions), versions })
    })
}

fn version(found: &DocumentGroup) -> GroupVersion {
    let DocumentGroup { group, version, resources } = found;
    let resources = resources.iter().filter_map(|resource| {
        let types = &document().types;
        let schema = types.of_kind(group, version, &resource.kind)?;
        let api_version = api_version(group, version);
        let hooks = builtin::hooks(group, version, &resource.plural);
        Some(Arc::new(Resource {
            group: group.clone(),
            version: version.clone(),
            kind: resource.kind.clone(),
            list_kind: format!("{}List", resource.kind),
            plural: resource.plural.clone(),
            singular: resource.singular.clone(),
            namespaced: resource.namespaced,
            verbs: resource.verbs.clone(),
            short_names: resource.short_names.clone(),
            categories: resource.categories.clone(),
            subresources: resource.subresources.clone(),
            storage_version_hash: resource.storage_version_hash.clone(),
            columns: resource.columns.iter().map(column).collect(),
            table: hooks.table.map_or_else(|| table_name(group, &resource.plural), Arc::from),
            has_generation: hooks.has_generation.unwrap_or_else(|| schema.fields.contains_key("spec")),
            has_status: schema.fields.contains_key("status"),
            hooks,
            schema: Schema::BuiltIn(schema),
            codec: Codec::find(&api_version, &resource.kind),
            zero: OnceLock::new(),
        }))
    });
    GroupVersion { group: group.clone(), version: version.clone(), resources: resources.collect() }
}

/// Returns the resource by which the object of a subresource is encoded, such as a `Scale`.
pub(crate) fn part(type_name: &str, group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: String::new(),
        plural: plural.to_owned(),
        singular: String::new(),
        namespaced: true,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
        storage_version_hash: None,
        columns: Vec::new(),
        table: Arc::from(""),
        has_generation: false,
        has_status: false,
        hooks: &Hooks::NONE,
        schema: Schema::BuiltIn(types().get(type_name).expect("the table has every type")),
        codec: Codec::find(&api_version(group, version), kind),
        zero: OnceLock::new(),
    }
}

fn column((name, kind, format, description, priority): &(String, String, String, usize, i64)) -> TableColumn {
    TableColumn {
        name: name.clone(),
        kind: kind.clone(),
        format: format.clone(),
        description: document().descriptions.get(*description).cloned().unwrap_or_default(),
        priority: *priority,
    }
}

/// Returns the columns for name and age, which every kind has.
pub(crate) fn common_columns() -> &'static [TableColumn] {
    let accounts = built_in_groups().find("", "v1", "serviceaccounts");
    static COLUMNS: OnceLock<Vec<TableColumn>> = OnceLock::new();
    COLUMNS.get_or_init(|| accounts.map_or_else(Vec::new, |accounts| accounts.columns.clone()))
}

/// Resources by group, version and plural name, in one text.
type Index = HashMap<String, Arc<Resource>, foldhash::fast::RandomState>;

fn index(versions: &[Arc<GroupVersion>]) -> Index {
    let resources = versions.iter().flat_map(|version| &version.resources);
    let entry = |resource: &Arc<Resource>| {
        (index_key(&resource.group, &resource.version, &resource.plural), Arc::clone(resource))
    };
    resources.map(entry).collect()
}

fn index_key(group: &str, version: &str, plural: &str) -> String {
    // No part contains a slash.
    [group, version, plural].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_type() {
        let served: usize = document().groups.iter().map(|group| group.resources.len()).sum();
        let known: usize = built_in_groups().versions.iter().map(|version| version.resources.len()).sum();
        assert_eq!(known, served);
        assert!(known > 60, "{known}");
    }

    #[test]
    fn every_built_in_kind_has_a_protobuf_codec() {
        let missing: Vec<_> = built_in_groups()
            .versions
            .iter()
            .flat_map(|version| &version.resources)
            .filter(|resource| resource.codec.is_none())
            .map(|resource| format!("{} {}", resource.api_version(), resource.kind))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
