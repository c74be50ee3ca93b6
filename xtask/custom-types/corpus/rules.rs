//! CEL rules and merge strategies.

use std::collections::BTreeMap;

use super::derives::*;

#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "FieldRules")]
pub struct FieldRulesSpec {
    #[x_kube(validation = "self != 'bad'")]
    a: String,
    #[x_kube(validation = ("self > 0", "must be positive"))]
    b: i32,
    #[x_kube(validation = Rule::new("self < 10").message("must be small").reason(Reason::FieldValueForbidden))]
    #[x_kube(validation = Rule::new("self != 5").message(Message::Expression("self > 5 ? 'not five' : 'never'".into())))]
    c: i32,
    #[x_kube(validation = Rule::new("self == oldSelf").message("immutable"))]
    d: Option<String>,
    /// Words.
    #[x_kube(validation = Rule { rule: "self.size() < 9".into(), message: None, field_path: None, reason: None, optional_old_self: None })]
    #[schemars(length(max = 10))]
    e: Vec<String>,
    plain: bool,
}

#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "StructRules")]
#[x_kube(validation = "self.min <= self.max", validation = ("self.max < 1000", "too large"))]
#[serde(rename_all = "camelCase")]
pub struct StructRulesSpec {
    min: i32,
    max: i32,
    #[x_kube(validation = "self != 'x'")]
    #[serde(default)]
    with_default: String,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "RootRules", status = "RootRulesStatus")]
#[kube(validation = "self.metadata.name == 'singleton'")]
#[kube(validation = Rule::new("self.spec.size >= 0").field_path(".spec.size").reason(Reason::FieldValueInvalid))]
pub struct RootRulesSpec {
    size: i32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct RootRulesStatus {
    size: i32,
}

#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "OptionalOldSelf")]
#[kube(validation = Rule::new("oldSelf.hasValue() || self.spec.a != ''").optional_old_self(true))]
pub struct OptionalOldSelfSpec {
    #[x_kube(validation = Rule::new("!oldSelf.hasValue() || oldSelf.value() == self").optional_old_self(true).message("immutable"))]
    #[schemars(length(max = 20))]
    a: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Port {
    name: String,
    protocol: String,
    number: i32,
}

#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Merges")]
pub struct MergesSpec {
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    a: Vec<Port>,
    #[x_kube(merge_strategy = ListMerge::Set)]
    b: Vec<String>,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into(), "protocol".into()]))]
    c: Vec<Port>,
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    d: BTreeMap<String, String>,
    #[x_kube(merge_strategy = MapMerge::Granular)]
    e: BTreeMap<String, String>,
    #[x_kube(merge_strategy = StructMerge::Atomic)]
    f: Port,
    #[x_kube(merge_strategy = StructMerge::Granular)]
    g: Port,
    #[x_kube(merge_strategy = MapMerge::Atomic, validation = "self.number > 0")]
    h: Option<Port>,
}

#[derive(KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[x_kube(validation = "has(self.a) || has(self.b)")]
pub struct OneOfTwo {
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "self > 1")]
    b: Option<i32>,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "NestedRules")]
pub struct NestedRulesSpec {
    /// The words of the field.
    one: OneOfTwo,
    maybe: Option<OneOfTwo>,
    #[schemars(length(max = 10))]
    many: Vec<OneOfTwo>,
}

#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "FlattenedRules")]
pub struct FlattenedRulesSpec {
    name: String,
    #[serde(flatten)]
    #[x_kube(validation = "self != 'x'")]
    port: PortName,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct PortName {
    port: String,
    second: Option<String>,
}

#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "NoRules")]
pub struct NoRulesSpec {
    a: String,
}

pub fn all() -> Vec<crate::Entry> {
    vec![
        crate::entry("FieldRules", FieldRules::crd(), true),
        crate::entry("StructRules", StructRules::crd(), true),
        crate::entry("RootRules", RootRules::crd(), true),
        crate::entry("OptionalOldSelf", OptionalOldSelf::crd(), true),
        crate::entry("Merges", Merges::crd(), true),
        crate::entry("NestedRules", NestedRules::crd(), true),
        crate::entry("FlattenedRules", FlattenedRules::crd(), true),
        crate::entry("NoRules", NoRules::crd(), true),
    ]
}
