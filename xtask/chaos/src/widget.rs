//! The custom resource of the worlds, and its definition.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::{
    Metadata, NamespaceResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A custom object. One whose size is not a number cannot be represented.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Widget {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: WidgetSpec,
}

/// The state of a widget.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WidgetSpec {
    /// The value that writers set.
    #[serde(default)]
    pub(crate) n: String,
    /// A number. Writers of poison set a text.
    #[serde(default)]
    pub(crate) size: i32,
}

impl k8s_openapi::Resource for Widget {
    const API_VERSION: &'static str = "chaos.klient.invalid/v1";
    const GROUP: &'static str = "chaos.klient.invalid";
    const KIND: &'static str = "Widget";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "widgets";
    type Scope = NamespaceResourceScope;
}

impl Metadata for Widget {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Creates the definition, and waits until widgets are served.
pub(crate) async fn install(client: &Client, namespace: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "chaos.klient.invalid", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    }))?;
    let widgets: Api<Widget> = Api::namespaced(client.clone(), namespace);
    let mut last = None;
    for _ in 0..600 {
        // A definition that is still being deleted cannot be created.
        match definitions.create(&definition).await {
            Ok(_) => {}
            Err(error) if error.is_already_exists() => {}
            Err(error) => last = Some(error),
        }
        let is_established = definitions.get(DEFINITION).await.is_ok_and(|found| {
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            found.metadata.deletion_timestamp.is_none()
                && conditions.iter().any(|one| one.type_ == "Established" && one.status == "True")
        });
        if is_established {
            match widgets.metadata().list().await {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(last.map_or_else(|| anyhow::anyhow!("definition was not established"), Into::into))
        .context("widgets are not served")
}

/// Deletes the definition, and with it all widgets.
pub(crate) async fn remove(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    definitions.delete(DEFINITION).await.context("cannot delete the definition of widgets")?;
    Ok(())
}

const DEFINITION: &str = "widgets.chaos.klient.invalid";
