//! Configurations of derived kinds: their JSON, and two managers on the embedded server.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use klient::{Apply, CustomResource};
use klient_apiserver::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::embedded;

#[path = "../shared/typed_apply.rs"]
mod scenario;

#[tokio::test]
async fn derived_configurations_share_an_object() {
    let server = ApiServer::start().await.unwrap();
    let client = embedded::client(&server);
    scenario::two_managers_share_an_object(&client, "default").await;
}

#[tokio::test]
async fn conflicts_of_derived_configurations_are_values() {
    let server = ApiServer::start().await.unwrap();
    scenario::conflicts_are_values(&embedded::client(&server), "default").await;
}

#[tokio::test]
async fn status_of_derived_kind_is_applied_by_condition() {
    let server = ApiServer::start().await.unwrap();
    scenario::status_is_applied_by_condition(&embedded::client(&server), "default").await;
}

/// A kind without a specification, whose fields have each of the remaining forms.
#[derive(CustomResource, Apply, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1alpha1", kind = "Flat", no_spec)]
#[serde(rename_all = "kebab-case")]
struct FlatFields {
    #[serde(with = "seconds")]
    #[schemars(with = "u64")]
    max_wait: Duration,
    #[schemars(with = "String")]
    port: IntOrString,
    by_number: BTreeMap<u8, bool>,
    #[apply(value)]
    by_level: BTreeMap<Level, Level>,
    maybe: Option<Option<i32>>,
    r#type: char,
    #[apply(method = "annotated")]
    annotations: Vec<Vec<String>>,
    #[apply(skip)]
    hidden: String,
    #[serde(flatten)]
    rest: BTreeMap<String, i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
enum Level {
    Low,
    High,
}

mod seconds {
    use std::time::Duration;

    pub(super) fn serialize<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration.as_secs())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        serde::Deserialize::deserialize(deserializer).map(Duration::from_secs)
    }
}

#[test]
fn derived_configuration_has_serdes_names_and_forms() {
    let flat = FlatApply::new("a")
        .finalizers(["x/y"])
        .max_wait(Duration::from_secs(9))
        .port(IntOrString::String("http".to_owned()))
        .by_number([(7, true)])
        .by_level([(Level::Low, Level::High)])
        .maybe(None)
        .r#type('x')
        .annotated([vec!["a".to_owned()]])
        .rest([("other", 1)]);
    let expected = json!({"apiVersion": "example.com/v1alpha1", "kind": "Flat", "metadata": {"name": "a", "finalizers": ["x/y"]},
        "max-wait": 9, "port": "http", "by-number": {"7": true}, "by-level": {"Low": "High"}, "maybe": null, "type": "x",
        "annotations": [["a"]], "other": 1});
    assert_eq!(serde_json::to_value(&flat).unwrap(), expected);
    assert_eq!(flat.to_value(), expected);
    // The type reads what its configuration writes.
    let mut whole = expected;
    whole["hidden"] = json!("h");
    // serde does not read keys that are numbers beside flattened fields.
    whole["by-number"] = json!({});
    whole.as_object_mut().unwrap().retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    let read: FlatFields = serde_json::from_value(whole).unwrap();
    assert_eq!((read.max_wait, read.rest["other"]), (Duration::from_secs(9), 1));
}
