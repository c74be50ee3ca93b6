//! A custom resource with a status and a scale, as a Rust type.

use k8s_openapi::{
    Metadata, NamespaceResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient::{
    Api, Client, Error,
    options::WatchOptions,
    resource::ApiResource,
    retry::{Backoff, retry_on_error},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::OnceCell;

// It has neither `apiVersion` nor `kind`, because the client adds them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Widget {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: WidgetSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<WidgetStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetSpec {
    pub(crate) size: i32,
    #[serde(default)]
    pub(crate) replicas: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetStatus {
    #[serde(default)]
    pub(crate) replicas: i32,
}

impl k8s_openapi::Resource for Widget {
    const API_VERSION: &'static str = "e2e.klient.invalid/v1";
    const GROUP: &'static str = "e2e.klient.invalid";
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

/// Installs widgets on the shared server, if no test has yet, and waits until they can be created.
pub(crate) async fn widgets(client: &Client) -> ApiResource {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    INSTALLED.get_or_init(|| install(client)).await;
    ApiResource::of::<Widget>()
}

/// Installs widgets on a server.
pub(crate) async fn install(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.e2e.klient.invalid"},
        "spec": {
            "group": "e2e.klient.invalid", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "minimum": 1}, "replicas": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                }}}}],
        },
    }))
    .unwrap();
    let made: CustomResourceDefinition = definitions.create(&definition).await.unwrap();
    let schema = made.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    assert_eq!(schema.properties.as_ref().unwrap()["spec"].type_.as_deref(), Some("object"));
    let options = WatchOptions::initial_events().fields("metadata.name=widgets.e2e.klient.invalid");
    let mut watch = definitions.watch().options(options.clone()).await.unwrap();
    while let Some(event) = watch.next().await {
        let established = event.unwrap().object().is_some_and(|definition| {
            let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"))
        });
        if established {
            // The condition is set shortly before the resource is served.
            let backoff = Backoff::default().factor(2.0).steps(11);
            let all: Api<Widget> = Api::all(client.clone());
            let list = async || all.list().await;
            retry_on_error(backoff, Error::is_not_found, list).await.expect("widgets are served");
            return;
        }
    }
    panic!("the watch ended before the definition was established");
}
