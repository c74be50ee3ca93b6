//! Configurations of derived kinds with parts of built-in types, from `klient-apply`.

#![allow(clippy::unwrap_used)]

use k8s_openapi::{
    api::core::v1::{Container, PodTemplateSpec, Toleration},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use klient::{Apply, CustomResource, CustomResourceExt as _, KubeSchema, custom::check};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Apply, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Job", namespaced, status = "JobStatus")]
struct JobSpec {
    #[apply(with = "klient_apply::core::v1::PodTemplateSpecApply")]
    template: PodTemplateSpec,
    #[apply(with = "klient_apply::core::v1::ContainerApply")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    sidecars: Vec<Container>,
    #[apply(value)]
    toleration: Option<Toleration>,
    tolerations: Vec<Toleration>,
}

#[derive(Apply, KubeSchema, Clone, Debug, Deserialize, Serialize)]
struct JobStatus {
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    conditions: Vec<Condition>,
}

#[test]
fn conditions_are_added_by_type() {
    let condition = |status: &str| {
        let time = "2026-01-01T00:00:00Z";
        let condition =
            json!({"type": "Ready", "status": status, "lastTransitionTime": time, "reason": "", "message": ""});
        serde_json::from_value::<Condition>(condition).unwrap()
    };
    let job = JobApply::new("job", "shop")
        .status(|status| status.conditions([condition("False")]).conditions([condition("True")]));
    let conditions = &job.to_value()["status"]["conditions"];
    assert_eq!((&conditions[0]["status"], conditions.as_array().unwrap().len()), (&json!("True"), 1));
}

#[test]
fn fields_of_built_in_types_take_their_configurations() {
    let exists = Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() };
    let job = JobApply::new("job", "shop").spec(|spec| {
        spec.template(|template| template.spec(|pod| pod.container("main", |main| main.image("x:1"))))
            .sidecar("log", |log| log.image("y:1"))
            .sidecar("log", |log| log.env("LEVEL", |level| level.value("debug")))
            .toleration(exists.clone())
            .tolerations([exists])
    });
    let expected = json!({
        "template": {"spec": {"containers": [{"name": "main", "image": "x:1"}]}},
        "sidecars": [{"name": "log", "image": "y:1", "env": [{"name": "LEVEL", "value": "debug"}]}],
        "toleration": {"operator": "Exists"},
        "tolerations": [{"operator": "Exists"}],
    });
    assert_eq!(job.to_value()["spec"], expected);
    check(&Job::crd()).unwrap();
}
