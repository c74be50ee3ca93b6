//! Derived types on the embedded server.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient::{
    Api, CustomResource, CustomResourceExt, Resource, ResourceExt as _,
    custom::{self, HasSpec, HasStatus, install},
};
use klient_apiserver::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::support::embedded;

#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[klient(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus", derive = "PartialEq")]
struct ShopSpec {
    #[schemars(range(min = 1))]
    size: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
struct ShopStatus {
    open: bool,
}

#[tokio::test]
async fn derived_type_is_written_read_and_validated() {
    let server = ApiServer::start().await.unwrap();
    let client = embedded::client(&server);
    Api::<CustomResourceDefinition>::cluster(client.clone()).create(&Shop::crd()).await.unwrap();
    let shops: Api<Shop> = Api::namespaced(client, "default");
    let mut shop = shops.create(&Shop::new("corner", ShopSpec { size: 3 })).await.unwrap();
    *shop.status_mut() = Some(ShopStatus { open: true });
    shops.update_status(&shop).await.unwrap();
    let read = shops.get("corner").await.unwrap();
    assert_eq!((read.spec().size, read.status().map(|status| status.open)), (3, Some(true)));
    assert!(shops.create(&Shop::new("none", ShopSpec { size: 0 })).await.is_err());
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = "ConfigMap")]
struct Settings {
    metadata: ObjectMeta,
    data: BTreeMap<String, String>,
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
#[resource(group = "example.com", version = "v1", kind = "Shop", plural = "shops", namespaced)]
struct Adapted(Shop);

#[tokio::test]
async fn types_of_existing_kinds_are_read() {
    let server = ApiServer::start().await.unwrap();
    let client = embedded::client(&server);
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() },
        data: Some([("k".to_owned(), "v".to_owned())].into()),
        ..ConfigMap::default()
    };
    Api::<ConfigMap>::namespaced(client.clone(), "default").create(&map).await.unwrap();
    let settings = Api::<Settings>::namespaced(client.clone(), "default").get("a").await.unwrap();
    assert_eq!((settings.name(), &*settings.data["k"]), ("a", "v"));

    Api::<CustomResourceDefinition>::cluster(client.clone()).create(&Shop::crd()).await.unwrap();
    let adapted: Api<Adapted> = Api::namespaced(client, "default");
    adapted.create(&Adapted(Shop::new("corner", ShopSpec { size: 3 }))).await.unwrap();
    assert_eq!(adapted.get("corner").await.unwrap().0.spec.size, 3);
}

#[test]
fn definition_is_a_value_that_can_be_changed_and_printed() {
    let mut definition = Shop::crd();
    definition.spec.names.short_names = Some(vec!["sh".to_owned()]);
    let yaml = custom::to_yaml([&definition, &Shop::crd()]).unwrap();
    let documents: Vec<&str> = yaml.split("---\n").collect();
    assert_eq!(documents.len(), 2);
    assert!(
        documents[0].starts_with("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"),
        "{yaml}"
    );
    assert!(documents[0].contains("shortNames:") && !documents[1].contains("shortNames:"));
    definition.spec.versions[0].storage = false;
    assert!(custom::print_crds([definition]).is_err());
}

#[tokio::test]
async fn install_works_on_the_embedded_server() {
    let server = ApiServer::start().await.unwrap();
    let client = embedded::client(&server);
    for _ in 0..2 {
        install(&client, Shop::crd()).await.unwrap();
        Api::<Shop>::namespaced(client.clone(), "default").list().await.unwrap();
    }
    let mut older = Shop::crd();
    older.spec.versions[0].name = "v1beta1".to_owned();
    assert!(install(&client, older).await.is_err());
}
