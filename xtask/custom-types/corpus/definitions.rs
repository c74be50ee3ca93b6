//! Attributes of the definition.

use super::derives::*;

macro_rules! definitions {
    ($($root:ident $is_accepted:literal)*) => {
        pub fn all() -> Vec<crate::Entry> {
            let mut all = vec![$(crate::entry(stringify!($root), $root::crd(), $is_accepted)),*];
            let versions = vec![v1alpha1::Shop::crd(), v1::Shop::crd(), v1beta1::Shop::crd()];
            all.push(crate::entry("merged", merge_crds(versions, "v1").unwrap_or_default(), true));
            all
        }
    };
}

definitions! {
    Minimal true Everything true Choice true Flat true FlatStatus true Proxy true Day true Box1 true Deprecated true
    DeprecatedWarning true Described true Root true Manual true Disabled false Unstored false Texts true Labelled true
    Derived true Unserved true
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Minimal")]
pub struct MinimalSpec {
    size: i32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    replicas: i32,
    selector: String,
}

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Everything", namespaced, status = "EverythingStatus")]
#[kube(singular = "everythingelse", plural = "everythings", shortname = "ev", shortname = "evs")]
#[kube(category = "all", category = "corpus", selectable = ".spec.name", selectable = ".spec.replicas")]
#[kube(
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.name", description = "The name", priority = 1),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas", format = "int32"),
    printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#
)]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(derive = "Default", derive = "PartialEq", storage = true, served = true)]
#[kube(annotation("corpus.klient.invalid/note", "a b"), label("app", "corpus"))]
pub struct EverythingSpec {
    name: String,
    replicas: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct EverythingStatus {
    replicas: i32,
    selector: String,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Choice")]
pub enum ChoiceSpec {
    One { a: i32 },
    Two { b: String },
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Flat", no_spec)]
pub struct FlatSpec {
    size: i32,
    /// Words.
    name: Option<String>,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "FlatStatus", no_spec, status = "Status")]
#[serde(rename_all = "camelCase")]
pub struct FlatStatusSpec {
    full_size: i32,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Proxy")]
pub struct ProxySpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1beta2", kind = "Day")]
pub struct DaySpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Box", root = "Box1")]
pub struct BoxSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Deprecated", deprecated)]
pub struct DeprecatedSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "DeprecatedWarning", deprecated = "use v2")]
pub struct DeprecatedWarningSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Described", doc = "Words about the kind")]
pub struct DescribedSpec {
    /// Words about the field.
    size: i32,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "RootKind", root = "Root", attr = "allow(dead_code)")]
pub struct RootSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Manual", schema = "manual")]
pub struct ManualSpec {
    size: i32,
}

impl JsonSchema for Manual {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Manual".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Disabled", schema = "disabled")]
pub struct DisabledSpec {
    size: i32,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Unstored", storage = false)]
pub struct UnstoredSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Unserved", served = false)]
pub struct UnservedSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "TextForms", root = "Texts", status = "Status")]
#[kube(scale = r#"{"specReplicasPath":".spec.replicas", "statusReplicasPath":".status.replicas"}"#)]
#[kube(printcolumn = r#"{"name":"Size", "type":"integer", "jsonPath":".spec.replicas", "priority": 2, "description": "d"}"#)]
pub struct TextsSpec {
    replicas: i32,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Labelled")]
#[kube(label("b", "2"), label("a", "1"), annotation("z", "text with \"quotes\""), annotation("y", ""))]
pub struct LabelledSpec {}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Derived", schema = "derived")]
#[kube(crates(serde = "serde", schemars = "schemars", k8s_openapi = "k8s_openapi", std = "std"))]
pub struct DerivedSpec {
    size: i32,
}

macro_rules! shop {
    ($module:ident, $version:literal, $($field:tt)*) => {
        pub mod $module {
            use super::super::derives::*;

            #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
            #[kube(group = "corpus.klient.invalid", version = $version, kind = "Shop", namespaced)]
            pub struct ShopSpec {
                $($field)*
            }
        }
    };
}

shop!(v1, "v1", pub size: i64);
shop!(v1beta1, "v1beta1", pub size: i32);
shop!(v1alpha1, "v1alpha1", pub size: String);
