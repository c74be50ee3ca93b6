//! The structs of k8s-openapi, read from its source: field names, types, and the JSON name of each field.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A type of k8s-openapi for one Kubernetes minor.
pub(crate) struct RustType {
    pub(crate) shape: RustShape,
    pub(crate) has_default: bool,
    /// The `apiVersion` and `kind` of a type that is a resource.
    pub(crate) resource: Option<(String, String)>,
    /// The scope and the plural of a resource. Subresources have neither.
    pub(crate) place: Option<Place>,
}

/// The scope of a kind, with its plural name in paths.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Namespace(String),
    Cluster(String),
}

pub(crate) enum RustShape {
    /// A struct, with its fields by JSON name.
    Struct(BTreeMap<String, RustField>),
    /// A newtype around `serde_json::Value`.
    Json,
    /// Another newtype, or an enum: its codec is hand-written.
    Special,
}

#[derive(Clone, Debug)]
pub(crate) struct RustField {
    pub(crate) ident: String,
    /// The type, with all paths shortened to their last segment: `Option<Vec<Container>>`.
    pub(crate) ty: String,
}

/// Reads all types of a minor, by path below the crate root (`api::core::v1::Pod`).
pub(crate) fn read(source: &Path, minor: u32) -> Result<BTreeMap<String, RustType>> {
    let root = source.join(format!("v1_{minor}"));
    let mut types = BTreeMap::new();
    let mut pending = vec![root.clone()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("mod.rs") {
                read_file(&root, &path, &mut types).with_context(|| path.display().to_string())?;
            }
        }
    }
    Ok(types)
}

fn read_file(root: &Path, path: &PathBuf, types: &mut BTreeMap<String, RustType>) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    let file = syn::parse_file(&text)?;
    let module = path.parent().unwrap_or(root).strip_prefix(root)?;
    let module: Vec<_> = module.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let json_names = json_names(&text);
    for item in &file.items {
        let (name, shape, attributes) = match item {
            syn::Item::Struct(item) if item.generics.params.is_empty() => {
                (item.ident.to_string(), struct_shape(&item.fields, &json_names), &item.attrs)
            }
            syn::Item::Enum(item) if item.generics.params.is_empty() => {
                (item.ident.to_string(), RustShape::Special, &item.attrs)
            }
            _ => continue,
        };
        let has_default = attributes.iter().any(derives_default);
        let resource = constant(&text, "API_VERSION").zip(constant(&text, "KIND"));
        let place = place(&text);
        types.insert(format!("{}::{name}", module.join("::")), RustType { shape, has_default, resource, place });
    }
    Ok(())
}

fn struct_shape(fields: &syn::Fields, json_names: &BTreeMap<String, String>) -> RustShape {
    match fields {
        syn::Fields::Named(fields) => {
            let fields = fields.named.iter().filter_map(|field| {
                let ident = field.ident.as_ref()?.to_string();
                let json_name = json_names.get(ident.trim_start_matches("r#"))?.clone();
                Some((json_name, RustField { ident, ty: short_type(&field.ty) }))
            });
            RustShape::Struct(fields.collect())
        }
        syn::Fields::Unnamed(fields) if fields.unnamed.iter().all(|field| short_type(&field.ty) == "Value") => {
            RustShape::Json
        }
        _ => RustShape::Special,
    }
}

fn derives_default(attribute: &syn::Attribute) -> bool {
    let mut found = false;
    if attribute.path().is_ident("derive") {
        // A derive that does not parse as a list of paths has no `Default`.
        let _ = attribute.parse_nested_meta(|derive| {
            found |= derive.path.is_ident("Default");
            Ok(())
        });
    }
    found
}

/// Shortens `std::vec::Vec<crate::api::core::v1::Container>` to `Vec<Container>`.
fn short_type(ty: &syn::Type) -> String {
    let syn::Type::Path(path) = ty else { return "?".to_owned() };
    let Some(last) = path.path.segments.last() else { return "?".to_owned() };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return last.ident.to_string() };
    let inner: Vec<_> = arguments
        .args
        .iter()
        .map(|argument| match argument {
            syn::GenericArgument::Type(ty) => short_type(ty),
            _ => "?".to_owned(),
        })
        .collect();
    format!("{}<{}>", last.ident, inner.join(", "))
}

/// Returns the JSON names by field identifier, from the lines `"nodeName" => Field::Key_node_name,`.
fn json_names(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| {
        let (name, key) = line.trim().split_once(" => Field::Key_")?;
        Some((key.trim_end_matches(',').to_owned(), name.trim_matches('"').to_owned()))
    });
    lines.collect()
}

fn place(text: &str) -> Option<Place> {
    let plural = constant(text, "URL_PATH_SEGMENT").filter(|plural| !plural.is_empty())?;
    if text.contains("type Scope = crate::NamespaceResourceScope;") {
        Some(Place::Namespace(plural))
    } else if text.contains("type Scope = crate::ClusterResourceScope;") {
        Some(Place::Cluster(plural))
    } else {
        None
    }
}

fn constant(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("const {name}: &'static str = \""))?;
    rest.split('"').next().map(str::to_owned)
}
