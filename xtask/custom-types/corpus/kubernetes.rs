//! Types of Kubernetes.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, EnvVar, LocalObjectReference, ObjectReference, PodTemplateSpec, ResourceRequirements,
        SecretKeySelector, Toleration, Volume,
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, LabelSelector, MicroTime, ObjectMeta, Time},
        util::intstr::IntOrString,
    },
};

use super::derives::*;

specs! {
    IntOrStrings IntOrStringsSpec "IntOrStrings" {
        a: IntOrString,
        b: Option<IntOrString>,
        c: Vec<IntOrString>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        d: Option<IntOrString>,
        /// Words.
        e: Option<IntOrString>,
    }
    Quantities QuantitiesSpec "Quantities" { a: Quantity, b: Option<Quantity>, c: BTreeMap<String, Quantity> }
    Times TimesSpec "Times" { a: Time, b: Option<Time>, c: MicroTime, d: Option<MicroTime> }
    Metadata MetadataSpec "Metadata" { a: ObjectMeta, b: Option<ObjectMeta> }
    Conditions ConditionsSpec "Conditions" { conditions: Vec<Condition>, b: Option<Vec<Condition>> }
    Selectors SelectorsSpec "Selectors" { a: LabelSelector, b: Option<LabelSelector> }
    References ReferencesSpec "References" { a: SecretKeySelector, b: LocalObjectReference, c: Option<ObjectReference> }
    Variables VariablesSpec "Variables" { env: Vec<EnvVar>, tolerations: Option<Vec<Toleration>> }
    Resources ResourcesSpec "Resources" { a: ResourceRequirements, b: Option<ResourceRequirements> }
    Volumes VolumesSpec "Volumes" { volumes: Vec<Volume> }
    Containers ContainersSpec "Containers" { container: Container }
    Templates TemplatesSpec "Templates" { template: PodTemplateSpec }
    #[kube(namespaced, status = "ConditionStatus")]
    WithStatus WithStatusSpec "WithStatus" { size: i32 }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionStatus {
    conditions: Vec<Condition>,
    last_seen: Option<Time>,
}
