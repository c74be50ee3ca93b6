//! Definitions as YAML, for `kubectl apply` and for a chart.

use std::{borrow::Borrow, io::Write as _};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{Error, ErrorKind, Result};

/// Prints definitions as YAML to standard output: the whole `main` of a program that generates manifests.
///
/// ```
/// # #[derive(klient::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// # #[kube(group = "example.com", version = "v1", kind = "Shop")]
/// # struct ShopSpec { size: u32 }
/// use klient::CustomResourceExt;
///
/// fn main() -> klient::Result<()> {
///     klient::custom::print_crds([Shop::crd()])
/// }
/// ```
///
/// # Errors
///
/// Returns an error if a definition fails [`check`](crate::custom::check()), or if standard output cannot be written.
pub fn print_crds<D: Borrow<CustomResourceDefinition>>(definitions: impl IntoIterator<Item = D>) -> Result<()> {
    let definitions: Vec<D> = definitions.into_iter().collect();
    for definition in &definitions {
        let invalid = |error| Error::new(ErrorKind::Invalid, "definition is not valid").with_source(error);
        super::check(definition.borrow()).map_err(invalid)?;
    }
    let text = to_yaml(definitions)?;
    let failed =
        |error| Error::new(ErrorKind::Config, "cannot write definitions to standard output").with_source(error);
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(failed)
}

/// Returns definitions as YAML documents.
///
/// # Errors
///
/// Returns an error if a definition cannot be encoded.
pub fn to_yaml<D: Borrow<CustomResourceDefinition>>(definitions: impl IntoIterator<Item = D>) -> Result<String> {
    let mut text = String::new();
    for (index, definition) in definitions.into_iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        let document = serde_saphyr::to_string(definition.borrow()).map_err(|error| {
            Error::new(ErrorKind::Invalid, "cannot encode the definition as YAML").with_source(error)
        })?;
        text.push_str(&document);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}
