//! CustomResourceDefinitions of types that derive `CustomResource`.

use std::collections::BTreeMap;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
        CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
        CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
        SelectableField,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient_core::ApiResource;
use serde_json::json;

/// A type that `#[derive(CustomResource)]` generated.
///
/// A type that kube-derive generated in another crate has the same methods in kube's trait of this name.
/// [`structural_schema`](crate::custom::structural_schema) and the other functions of this module take the definition that they return.
pub trait CustomResourceExt {
    /// Returns the CustomResourceDefinition: a value that can be changed before it is installed.
    fn crd() -> CustomResourceDefinition;

    /// Returns the name of the CustomResourceDefinition, such as `shops.example.com`.
    fn crd_name() -> &'static str;

    /// Returns the resource that serves the type.
    fn api_resource() -> ApiResource;

    /// Returns the short names that the attributes declare.
    fn shortnames() -> &'static [&'static str];
}

/// An object with a specification.
pub trait HasSpec {
    /// The type of the specification.
    type Spec;

    /// Returns the specification.
    fn spec(&self) -> &Self::Spec;

    /// Returns the specification for changing.
    fn spec_mut(&mut self) -> &mut Self::Spec;
}

/// An object with a status.
pub trait HasStatus {
    /// The type of the status.
    type Status;

    /// Returns the status, if a controller has set it.
    fn status(&self) -> Option<&Self::Status>;

    /// Returns the status for changing.
    fn status_mut(&mut self) -> &mut Option<Self::Status>;
}

/// The values of the attributes, as generated code passes them.
#[derive(Debug)]
#[allow(missing_docs, reason = "not public: the macro fills the fields")]
pub struct Definition<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    pub plural: &'a str,
    pub singular: &'a str,
    pub namespaced: bool,
    pub categories: &'a [&'a str],
    pub shortnames: &'a [&'a str],
    pub annotations: &'a [(&'a str, &'a str)],
    pub labels: &'a [(&'a str, &'a str)],
    pub columns: &'a [Column<'a>],
    pub selectable: &'a [&'a str],
    pub status: bool,
    pub scale: Option<Scale<'a>>,
    pub served: bool,
    pub storage: bool,
    pub deprecated: Option<Option<&'a str>>,
}

/// A printer column.
#[derive(Debug)]
#[allow(missing_docs, reason = "not public: the macro fills the fields")]
pub struct Column<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub json_path: &'a str,
    pub description: Option<&'a str>,
    pub format: Option<&'a str>,
    pub priority: Option<i32>,
}

/// The paths of the scale subresource.
#[derive(Debug)]
#[allow(missing_docs, reason = "not public: the macro fills the fields")]
pub struct Scale<'a> {
    pub spec: &'a str,
    pub status: &'a str,
    pub selector: Option<&'a str>,
}

impl Definition<'_> {
    /// Builds the definition. Attributes that are not set are absent from it.
    pub fn build(&self, schema: Option<JSONSchemaProps>) -> CustomResourceDefinition {
        let texts = |texts: &[&str]| list(texts.iter().map(|&text| text.to_owned()));
        let version = CustomResourceDefinitionVersion {
            additional_printer_columns: list(self.columns.iter().map(Column::build)),
            deprecated: self.deprecated.map(|_| true),
            deprecation_warning: self.deprecated.flatten().map(str::to_owned),
            name: self.version.to_owned(),
            schema: Some(CustomResourceValidation { open_api_v3_schema: schema }),
            selectable_fields: list(self.selectable.iter().map(|&path| SelectableField { json_path: path.to_owned() })),
            served: self.served,
            storage: self.storage,
            subresources: self.status.then(|| CustomResourceSubresources {
                scale: self.scale.as_ref().map(Scale::build),
                status: Some(CustomResourceSubresourceStatus(json!({}))),
            }),
        };
        CustomResourceDefinition {
            metadata: metadata(&format!("{}.{}", self.plural, self.group), self.annotations, self.labels),
            spec: CustomResourceDefinitionSpec {
                group: self.group.to_owned(),
                names: CustomResourceDefinitionNames {
                    categories: texts(self.categories),
                    kind: self.kind.to_owned(),
                    plural: self.plural.to_owned(),
                    short_names: texts(self.shortnames),
                    singular: Some(self.singular.to_owned()),
                    ..CustomResourceDefinitionNames::default()
                },
                scope: if self.namespaced { "Namespaced" } else { "Cluster" }.to_owned(),
                versions: vec![version],
                ..CustomResourceDefinitionSpec::default()
            },
            ..CustomResourceDefinition::default()
        }
    }
}

impl Column<'_> {
    fn build(&self) -> CustomResourceColumnDefinition {
        CustomResourceColumnDefinition {
            description: self.description.map(str::to_owned),
            format: self.format.map(str::to_owned),
            json_path: self.json_path.to_owned(),
            name: self.name.to_owned(),
            priority: self.priority,
            type_: self.kind.to_owned(),
        }
    }
}

impl Scale<'_> {
    fn build(&self) -> CustomResourceSubresourceScale {
        CustomResourceSubresourceScale {
            label_selector_path: self.selector.map(str::to_owned),
            spec_replicas_path: self.spec.to_owned(),
            status_replicas_path: self.status.to_owned(),
        }
    }
}

/// Returns the metadata of a new object.
pub fn metadata(name: &str, annotations: &[(&str, &str)], labels: &[(&str, &str)]) -> ObjectMeta {
    ObjectMeta {
        annotations: map(annotations),
        labels: map(labels),
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn map(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let map = || pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    (!pairs.is_empty()).then(map)
}

fn list<T>(items: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    (items.len() > 0).then(|| items.collect())
}
