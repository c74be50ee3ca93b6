//! Three versions of a shop: the hub, one that lacks a field, and one that has it under another name and type.

use k8s_openapi::{
    Metadata, NamespaceResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient_core::ApiResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::custom::private::Definition;

/// Writes by hand, in this crate, what the derive generates elsewhere.
macro_rules! shop {
    ($name:ident, $spec:ident, $version:literal, $schema:expr, { $($field:ident: $type:ty),* }) => {
        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $name {
            metadata: ObjectMeta,
            spec: $spec,
        }

        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $spec {
            $($field: $type),*
        }

        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = concat!("example.com/", $version);
            const GROUP: &'static str = "example.com";
            const KIND: &'static str = "Shop";
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = "shops";
            type Scope = NamespaceResourceScope;
        }

        impl Metadata for $name {
            type Ty = ObjectMeta;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }

        impl CustomResourceExt for $name {
            fn crd() -> CustomResourceDefinition {
                let schema: JSONSchemaProps = serde_json::from_value(json!({
                    "type": "object", "required": ["spec"],
                    "properties": {"spec": {"type": "object", "properties": $schema,
                        "required": [$(stringify!($field)),*]}},
                }))
                .unwrap();
                Definition {
                    group: "example.com", version: $version, kind: "Shop", plural: "shops", singular: "shop",
                    namespaced: true, categories: &[], shortnames: &[], annotations: &[], labels: &[], columns: &[],
                    selectable: &[], status: false, scale: None, served: true, storage: true, deprecated: None,
                }
                .build(Some(schema))
            }

            fn crd_name() -> &'static str {
                "shops.example.com"
            }

            fn api_resource() -> ApiResource {
                ApiResource::of::<Self>()
            }

            fn shortnames() -> &'static [&'static str] {
                &[]
            }
        }
    };
}

shop!(Hub, HubSpec, "v1", json!({"size": {"type": "integer"}, "color": {"type": "string"}}), { size: i64, color: String });
shop!(Small, SmallSpec, "v1beta1", json!({"size": {"type": "integer"}}), { size: i64 });
shop!(Lossy, LossySpec, "v1alpha1", json!({"size": {"type": "integer"}}), { size: i64 });

const COLOR: &str = "example.com/v1-color";

impl Spoke for Small {
    type Hub = Hub;

    fn into_hub(mut self) -> Result<Hub, BoxError> {
        let color = take_stash(&mut self.metadata, COLOR)?.unwrap_or_default();
        Ok(Hub { metadata: self.metadata, spec: HubSpec { size: self.spec.size, color } })
    }

    fn from_hub(mut hub: Hub) -> Result<Self, BoxError> {
        // The default needs no annotation, so that a spoke that was never a hub gets none.
        if !hub.spec.color.is_empty() {
            stash(&mut hub.metadata, COLOR, &hub.spec.color)?;
        }
        Ok(Self { metadata: hub.metadata, spec: SmallSpec { size: hub.spec.size } })
    }
}

impl Spoke for Lossy {
    type Hub = Hub;

    fn into_hub(self) -> Result<Hub, BoxError> {
        let size = if self.spec.size == 13 { panic!("unlucky") } else { self.spec.size };
        Ok(Hub { metadata: ObjectMeta::default(), spec: HubSpec { size, color: String::new() } })
    }

    fn from_hub(hub: Hub) -> Result<Self, BoxError> {
        if hub.spec.size < 0 {
            return Err("negative sizes do not exist in v1alpha1".into());
        }
        Ok(Self { metadata: ObjectMeta::default(), spec: LossySpec { size: hub.spec.size } })
    }
}

fn object(version: &str, size: i64) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Shop",
        "metadata": {"name": "corner", "namespace": "shop", "uid": "u", "managedFields": [{"manager": "m"}], "new": 1,
            "labels": {"a": "b"}},
        "spec": {"size": size, "color": "red"},
    })
}

#[test]
fn merged_definition_has_all_versions_and_the_webhook() {
    let versions = Versions::of::<Hub>().and::<Small>().and::<Lossy>();
    let definition = versions.crd().unwrap();
    let names: Vec<_> = definition.spec.versions.iter().map(|version| (&*version.name, version.storage)).collect();
    assert_eq!(names, [("v1", true), ("v1alpha1", false), ("v1beta1", false)]);
    assert_eq!(definition.spec.conversion, None);
    crate::custom::check(&definition).unwrap();

    let versions = versions.stored::<Small>().webhook(WebhookClientConfig::default());
    let definition = versions.crd().unwrap();
    assert_eq!((&*definition.spec.versions[0].name, definition.spec.versions[0].storage), ("v1beta1", true));
    assert_eq!(definition.spec.conversion.unwrap().strategy, "Webhook");
    assert_eq!(
        Versions::of::<Hub>().and::<Small>().and::<Small>().crd().unwrap_err().to_string(),
        "two definitions have version v1beta1"
    );
}

#[test]
fn conversion_goes_through_the_hub_and_keeps_metadata() {
    let versions = Versions::of::<Hub>().and::<Small>().and::<Lossy>();
    let small = versions.convert_object(object("v1", 3), "example.com/v1beta1").unwrap();
    assert_eq!(small["metadata"]["annotations"][COLOR], "\"red\"");
    assert_eq!(small["metadata"]["new"], 1);
    let lossy = versions.convert_object(small.clone(), "example.com/v1alpha1").unwrap();
    assert_eq!((&lossy["apiVersion"], &lossy["spec"]), (&json!("example.com/v1alpha1"), &json!({"size": 3})));
    // The conversion left labels out, which deletes them. All else is the original's.
    assert_eq!(
        lossy["metadata"],
        json!({"name": "corner", "namespace": "shop", "uid": "u", "managedFields": [{"manager": "m"}], "new": 1})
    );
    assert_eq!(versions.convert_object(small, "example.com/v1").unwrap()["spec"], json!({"size": 3, "color": "red"}));
}

#[test]
fn failed_conversion_fails_the_whole_review() {
    let versions = Versions::of::<Hub>().and::<Lossy>();
    let review = |objects: Vec<Value>, desired: &str| ConversionReview {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "ConversionReview".to_owned(),
        request: Some(ConversionRequest { uid: "42".to_owned(), desired_api_version: desired.to_owned(), objects }),
        response: None,
    };
    let message = |review: ConversionReview| {
        let response = versions.convert(review).response.unwrap();
        assert_eq!((&*response.uid, response.converted_objects.len()), ("42", 0));
        assert_eq!(response.result["status"], "Failure");
        response.result["message"].as_str().unwrap().to_owned()
    };
    let prefix = "cannot convert Shop \"shop/corner\" from example.com/v1 to example.com/v1alpha1: ";
    let negative = message(review(vec![object("v1", 1), object("v1", -1)], "example.com/v1alpha1"));
    assert_eq!(negative, format!("{prefix}negative sizes do not exist in v1alpha1"));
    let panicked = message(review(vec![object("v1alpha1", 13)], "example.com/v1"));
    assert!(panicked.ends_with("the conversion panicked"), "{panicked}");
    let unknown = message(review(vec![object("v1", 1)], "example.com/v2"));
    assert!(
        unknown.ends_with("unknown version \"example.com/v2\": expected one of example.com/v1, example.com/v1alpha1")
    );

    let response = versions.convert(review(vec![object("v1", 1), object("v1alpha1", 2)], "example.com/v1alpha1"));
    let response = response.response.unwrap();
    assert_eq!((response.result, response.converted_objects.len()), (json!({"status": "Success"}), 2));
    assert_eq!(response.converted_objects[1]["spec"]["color"], "red");
}

#[test]
fn round_trips_pass_for_lossless_conversions_alone() {
    Versions::of::<Hub>().and::<Small>().check_round_trips(200, 7).unwrap();
    let error = Versions::of::<Hub>().and::<Lossy>().check_round_trips(200, 7).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("Shop \"default/random\" changed on the way from example.com/v1 to example.com/v1alpha1"),
        "{error}"
    );
    assert_eq!(error.object()["kind"], "Shop");
}
