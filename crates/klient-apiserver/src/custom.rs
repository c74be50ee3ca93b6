//! Custom kinds: the resources that a `CustomResourceDefinition` adds, and the schema of their objects.

pub(crate) mod defaults;
mod embedded;
pub(crate) mod formats;
mod keywords;
mod list_types;
mod path;
mod patterns;
mod prune;
mod ratchet;
mod replicas;
pub(crate) mod root;
mod rule_check;
mod rules;
mod storage;
pub(crate) mod structural;
mod unique;
mod validate;

use std::sync::{Arc, OnceLock};

use klient_core::{Status, StatusCause, Verb, compare_versions};
use serde_json::Value;

pub(crate) use self::storage::Storage;
use self::{prune::Nulls, rules::Rules};
use crate::{
    Result,
    builtin::{Hooks, definitions},
    causes::Causes,
    conversion::Conversion,
    decode::{self, Reading},
    managed::{self, SchemaOf},
    registry::{Resource, Schema, Subresource, api_version, table_name},
};

/// The schema of a custom kind in one version.
pub(crate) struct CustomSchema {
    /// The structural schema. Without one, objects can have any fields.
    schema: Option<Arc<Value>>,
    /// Whether objects can have embedded resources.
    embeds: bool,
    /// Whether the definition is being deleted, so that no objects can be created.
    pub(crate) is_terminating: bool,
    /// The versions in which objects are stored.
    pub(crate) storage: Arc<Storage>,
    /// The versions of the kind that are not served. Managers of objects can still name them.
    pub(crate) unserved: Arc<[Arc<Resource>]>,
    /// The warning of a deprecated version.
    pub(crate) deprecation: Option<String>,
    /// The columns of tables.
    pub(crate) columns: Vec<Column>,
    /// The fields that lists and watches can select by.
    pub(crate) selectable: Vec<String>,
    pub(crate) scale: Option<ScalePaths>,
    /// The conversion webhook.
    pub(crate) conversion: Option<Arc<Conversion>>,
    /// The schema by which server-side apply merges, which is built at the first write.
    merge_schema: OnceLock<SchemaOf>,
    /// The CEL rules of the schema, which are compiled at the first write.
    rules: OnceLock<Option<Rules>>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: String,
}

/// The paths of a kind's replicas.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
    /// Whether the kind is custom. Built-in kinds have no selector path.
    pub(crate) of_custom: bool,
}

impl CustomSchema {
    /// Returns the structural schema, if there is one.
    pub(crate) fn structural(&self) -> Option<&Value> {
        self.schema.as_deref()
    }

    /// Returns the schema by which server-side apply merges objects.
    pub(crate) fn merge_schema(&self) -> &SchemaOf {
        self.merge_schema.get_or_init(|| managed::custom_schema(self.structural()))
    }

    /// Removes unknown fields and adds defaults. Returns a warning for each removed field.
    pub(crate) fn shape(&self, object: &mut Value) -> Result<Vec<String>> {
        self.shape_with(object, Nulls::Dropped)
    }

    /// Removes unknown fields of an object that an applied configuration was merged into, and adds defaults.
    ///
    /// Such an object is not decoded again, so that nulls that the schema does not allow are still there when it is validated.
    pub(crate) fn shape_merged(&self, object: &mut Value) -> Result<Vec<String>> {
        self.shape_with(object, Nulls::Kept)
    }

    fn shape_with(&self, object: &mut Value, nulls: Nulls) -> Result<Vec<String>> {
        let mut problems = shape_metadata(object).map_err(|why| unreadable(object, &why))?;
        if let Some(schema) = &self.schema {
            let mut unknown = Vec::new();
            prune::prune_root(object, schema, &mut unknown);
            unknown.sort();
            let unknown = unknown.into_iter().map(|path| format!("unknown field \"{path}\""));
            problems.extend(unknown);
            if self.embeds {
                problems.extend(embedded::shape(object, schema)?);
            }
            prune::default_root(object, schema, nulls);
        }
        Ok(problems)
    }

    /// Removes the fields of a converted object that the version does not have.
    pub(crate) fn prune(&self, object: &mut Value) {
        if let Some(schema) = &self.schema {
            prune::prune_root(object, schema, &mut Vec::new());
        }
    }

    /// Validates an object. Invalid parts that are equal in `old` are accepted, with warnings if a CEL rule forbids them.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) -> Causes {
        let mut causes = Causes::new();
        if let Some(schema) = &self.schema {
            causes.extend(below("", validate::validate(object, schema, old)));
        }
        if let Some(scale) = &self.scale {
            causes.extend(replicas::check(object, &scale.spec));
            causes.extend(replicas::check_status(object, scale));
        }
        if let Some(schema) = self.schema.as_ref().filter(|_| self.embeds) {
            causes.extend(embedded::validate(object, schema));
        }
        causes.extend(self.duplicates(object, old));
        self.evaluate_rules(object, old, &mut causes, warnings);
        causes
    }

    /// Evaluates the CEL rules of the schema, unless the object is invalid in a way that they cannot handle.
    fn evaluate_rules(&self, object: &Value, old: Option<&Value>, causes: &mut Causes, warnings: &mut Vec<String>) {
        let rules = self.rules.get_or_init(|| self.structural().and_then(Rules::of));
        let Some(rules) = rules else { return };
        if causes.iter().any(rules::blocks) {
            causes.add(rules::not_checked);
            return;
        }
        let found = rules.evaluate(object, old);
        causes.extend(found.causes);
        warnings.extend(found.warnings);
    }

    /// Validates the status of an object by itself, and the rules of the whole object.
    pub(crate) fn validate_status(&self, object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) -> Causes {
        let mut causes = Causes::new();
        let schema = self.structural().and_then(|schema| schema["properties"].get("status"));
        if let (Some(schema), Some(status)) = (schema, object.get("status")) {
            let old = old.and_then(|old| old.get("status"));
            causes.extend(below("status", validate::validate(status, schema, old)));
        }
        causes.extend(self.scale.iter().flat_map(|scale| replicas::check_status(object, scale)));
        causes.extend(self.duplicates(object, old));
        self.evaluate_rules(object, old, &mut causes, warnings);
        causes
    }

    /// Returns the duplicate items of lists, unless the stored object has duplicates, too.
    fn duplicates(&self, object: &Value, old: Option<&Value>) -> Causes {
        let Some(schema) = &self.schema else { return Causes::new() };
        let found = unique::validate(object, schema, "");
        let is_known = || old.is_some_and(|old| !unique::validate(old, schema, "").is_empty());
        if found.is_empty() || is_known() { Causes::new() } else { found }
    }
}

/// Returns causes with their fields below a path. An error about the value itself has the path, which is `<nil>` for an object.
fn below(path: &str, causes: Causes) -> impl Iterator<Item = StatusCause> {
    causes.into_iter().map(move |mut cause| {
        let field = cause.field.strip_prefix('.').unwrap_or(&cause.field);
        cause.field = match (path, field) {
            ("", "") => "<nil>".to_owned(),
            ("", field) => field.to_owned(),
            (path, "") => path.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        cause
    })
}

/// Normalises metadata as in built-in kinds. Returns a warning for each unknown field, which is removed.
fn shape_metadata(object: &mut Value) -> std::result::Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let types = crate::registry::types().of_kind("", "v1", "ConfigMap");
    let (Some(codec), Some(types)) = (klient_proto::Codec::find("v1", "ConfigMap"), types) else {
        return Ok(Vec::new());
    };
    let mut alone = serde_json::json!({"metadata": metadata.take()});
    let problems = decode::normalise(&mut alone, (codec.descriptor)(), types, Reading::Json);
    *metadata = alone["metadata"].take();
    problems.map_err(|why| {
        let why = why.replace("Go struct field ConfigMap.metadata of", "Go value of");
        why.replace("field ConfigMap.metadata.", "field ObjectMeta.").replace("ObjectMeta.metadata.", "ObjectMeta.")
    })
}

/// Returns the error of an object that cannot be decoded.
fn unreadable(object: &Value, why: &str) -> Box<Status> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let version = object["apiVersion"].as_str().and_then(|version| version.rsplit('/').next()).unwrap_or_default();
    Box::new(Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")))
}

/// Returns the resources of a definition, one for each served version.
pub(crate) fn resources(definition: &Value) -> Vec<Arc<Resource>> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = accepted_names(definition);
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let conversion = Conversion::of(definition);
    let storage = Arc::new(Storage::of(definition));
    let is_terminating = definitions::has_condition(definition, "Terminating");
    let resource = |version: &Value, unserved: &Arc<[Arc<Resource>]>| {
        let scale = version["subresources"].get("scale").map(|scale| ScalePaths {
            spec: text(&scale["specReplicasPath"]),
            status: text(&scale["statusReplicasPath"]),
            selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
            of_custom: true,
        });
        let status = version["subresources"].get("status").is_some();
        let structural = storage.schema(&api_version(&group, &text(&version["name"])));
        let schema = CustomSchema {
            embeds: structural.as_deref().is_some_and(embedded::is_in),
            schema: structural,
            is_terminating,
            storage: Arc::clone(&storage),
            unserved: Arc::clone(unserved),
            deprecation: deprecation(version, versions, &group, &text(&names["kind"])),
            columns: version["additionalPrinterColumns"].as_array().map_or_else(Vec::new, |found| columns(found)),
            selectable: version["selectableFields"]
                .as_array()
                .map_or_else(Vec::new, |fields| fields.iter().map(|field| text(&field["jsonPath"])).collect()),
            scale,
            conversion: conversion.clone(),
            merge_schema: OnceLock::new(),
            rules: OnceLock::new(),
        };
        let name = text(&version["name"]);
        Arc::new(Resource {
            group: group.clone(),
            version: name.clone(),
            kind: text(&names["kind"]),
            list_kind: text(&names["listKind"]),
            singular: text(&names["singular"]),
            namespaced: spec["scope"] == "Namespaced",
            verbs: if is_terminating { TERMINATING_VERBS.to_vec() } else { VERBS.to_vec() },
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            subresources: subresources(&group, &name, &text(&names["kind"]), status, schema.scale.is_some()),
            // Clients only compare hashes, so its algorithm does not matter.
            storage_version_hash: Some(storage_hash(&group, &text(&names["kind"]))),
            columns: Vec::new(),
            table: table_name(&group, &plural),
            has_generation: true,
            has_status: status,
            hooks: &Hooks::CUSTOM,
            schema: Schema::Custom(Arc::new(schema)),
            codec: None,
            zero: OnceLock::new(),
            plural: plural.clone(),
        })
    };
    let (served, unserved): (Vec<_>, Vec<_>) = versions.iter().partition(|version| version["served"] == true);
    let unserved = unserved.into_iter().map(|version| resource(version, &Arc::default())).collect();
    served.into_iter().map(|version| resource(version, &unserved)).collect()
}

/// Returns the warning of a deprecated version.
fn deprecation(version: &Value, all: &[Value], group: &str, kind: &str) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned());
    }
    let name = version["name"].as_str().unwrap_or_default();
    let others = all.iter().filter(|other| other["served"] == true && other["deprecated"] != true);
    let newer = others
        .filter_map(|other| other["name"].as_str())
        .filter(|other| compare_versions(other, name).is_gt())
        .max_by(|a, b| compare_versions(a, b));
    let instead = newer.map(|newer| format!("; use {group}/{newer} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

/// Returns the accepted names, or the requested names if none were accepted yet.
fn accepted_names(definition: &Value) -> &Value {
    let accepted = &definition["status"]["acceptedNames"];
    if accepted["plural"].as_str().is_some_and(|plural| !plural.is_empty()) {
        accepted
    } else {
        &definition["spec"]["names"]
    }
}

fn columns(found: &[Value]) -> Vec<Column> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let column = |column: &Value| Column {
        name: text(&column["name"]),
        kind: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or_default(),
        path: text(&column["jsonPath"]),
    };
    found.iter().map(column).collect()
}

fn subresources(group: &str, version: &str, kind: &str, status: bool, scale: bool) -> Vec<Subresource> {
    let verbs = || vec![Verb::Get, Verb::Patch, Verb::Update];
    let mut found = Vec::new();
    if status {
        let (group, version, kind) = (group.to_owned(), version.to_owned(), kind.to_owned());
        found.push(Subresource { name: "status".to_owned(), group, version, kind, verbs: verbs() });
    }
    if scale {
        found.push(Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: verbs(),
        });
    }
    found
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The verbs of every custom kind, in the order of discovery.
const VERBS: [Verb; 8] =
    [Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Patch, Verb::Create, Verb::Update, Verb::Watch];

/// The verbs in discovery while the definition is being deleted.
const TERMINATING_VERBS: [Verb; 5] = [Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Watch];

fn storage_hash(group: &str, kind: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let text = format!("{group}/{kind}");
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    STANDARD.encode(hash.to_be_bytes())
}
