//! Tests of the conversion of autoscalers.

use serde_json::{Value, json};

use super::*;

fn to_v1_of(spec: &Value, status: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
    to_v1(&mut object);
    object
}

fn to_v2_of(annotations: &Value, spec: &Value, status: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "a", "annotations": annotations}, "spec": spec, "status": status});
    to_v2(&mut object);
    object
}

fn memory(percent: u32) -> Value {
    json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": percent}}})
}

#[test]
fn first_cpu_target_becomes_field_of_v1() {
    let metrics = json!([memory(60), cpu_metric(&json!(50)), cpu_metric(&json!(70))]);
    let object = to_v1_of(&json!({"metrics": metrics}), &json!({}));
    assert_eq!(object["spec"], json!({"targetCPUUtilizationPercentage": 50}));
    let text = r#"[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":60}}]"#;
    assert_eq!(object["metadata"]["annotations"], json!({METRICS: text}));
}

#[test]
fn last_current_cpu_becomes_field_of_v1() {
    let current = |percent: Value| json!({"type": "Resource", "resource": {"name": "cpu", "current": percent}});
    let metrics = json!([
        current(json!({"averageUtilization": 0, "averageValue": "1"})),
        current(json!({"averageUtilization": 7})),
        current(json!({"averageValue": "5m"})),
    ]);
    let object = to_v1_of(&json!({}), &json!({"currentMetrics": metrics}));
    assert_eq!(object["status"], json!({"currentCPUUtilizationPercentage": 7}));
    let text = object["metadata"]["annotations"][CURRENT].as_str().unwrap();
    assert!(text.contains(r#"{"name":"cpu","currentAverageUtilization":7,"currentAverageValue":"0"}"#), "{text}");
    assert!(text.contains(r#"{"name":"cpu","currentAverageValue":"5m"}"#), "{text}");
}

#[test]
fn metrics_of_all_types_survive_round_trip() {
    let selector =
        json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]});
    let reference = json!({"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"});
    let metrics = json!([
        memory(60),
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "AverageValue", "averageValue": "500m"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m", "selector": selector}, "target": {"type": "AverageValue", "averageValue": "3"}}},
        {"type": "Object", "object": {"metric": {"name": "m"}, "describedObject": reference, "target": {"type": "Value", "value": "2k"}}},
        {"type": "Object", "object": {"metric": {"name": "m"}, "describedObject": reference, "target": {"type": "AverageValue", "averageValue": "2"}}},
        {"type": "External", "external": {"metric": {"name": "m", "selector": {}}, "target": {"type": "Value", "value": "1"}}},
        {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
        cpu_metric(&json!(50)),
    ]);
    let rules = json!({"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}], "tolerance": "50m"});
    let spec = json!({"metrics": metrics, "behavior": {"scaleUp": rules}});
    let status = json!({
        "currentMetrics": [
            {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "3"}}},
            {"type": "External", "external": {"metric": {"name": "m"}, "current": {"value": "1", "averageValue": "2"}}},
        ],
        "conditions": [{"type": "A", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "message": "a < b"}],
    });
    let object = json!({"metadata": {"name": "a", "annotations": {"note": "n"}}, "spec": spec, "status": status});
    let mut converted = object.clone();
    to_v1(&mut converted);
    assert_eq!(converted["spec"], json!({"targetCPUUtilizationPercentage": 50}));
    assert_eq!(converted["metadata"]["annotations"].as_object().unwrap().len(), 5);
    to_v2(&mut converted);
    assert_eq!(converted, object);
}

#[test]
fn behavior_is_written_with_names_of_go() {
    let object = to_v1_of(&json!({"behavior": {"scaleDown": {"selectPolicy": "Max"}}}), &json!({}));
    let text = r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":null,"Tolerance":null}}"#;
    assert_eq!(object["metadata"]["annotations"], json!({BEHAVIORS: text}));
}

#[test]
fn condition_is_written_with_escapes_of_go() {
    let object =
        to_v1_of(&json!({}), &json!({"conditions": [{"type": "A", "status": "True", "message": "a<b>&\u{2028}\n"}]}));
    let text = r#"[{"type":"A","status":"True","lastTransitionTime":null,"message":"a\u003cb\u003e\u0026\u2028\n"}]"#;
    assert_eq!(object["metadata"]["annotations"], json!({CONDITION_LIST: text}));
}

#[test]
fn malformed_annotations_are_dropped() {
    for text in ["", "[", "{}", "7", "[] x", r#"[{"type":7}]"#] {
        let annotations = json!({METRICS: text, CURRENT: text, CONDITION_LIST: text, BEHAVIORS: "[]", "note": "n"});
        let object = to_v2_of(&annotations, &json!({}), &json!({}));
        let expected = json!({"metadata": {"name": "a", "annotations": {"note": "n"}},
            "spec": {"metrics": [cpu_metric(&json!(80))]}, "status": {}});
        assert_eq!(object, expected, "{text}");
    }
}

#[test]
fn annotation_is_read_as_go_reads_it() {
    let read = |text: &str| to_v2_of(&json!({METRICS: text}), &json!({}), &json!({}))["spec"]["metrics"][0].clone();
    let pods = |amount: &str| json!({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": amount}}});
    assert_eq!(read(r#"[{"TYPE":"Pods","pods":{"metricname":"m","targetAverageValue":1500}}]"#), pods("1500"));
    assert_eq!(read(r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":" 0.5 "}}]"#), pods("500m"));
    assert_eq!(read(r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":null,"x":1}}]"#), pods("0"));
    assert_eq!(read("[null]"), json!({}));
    assert_eq!(read("null"), cpu_metric(&json!(80)));
}

#[test]
fn tolerances_of_older_versions_are_dropped() {
    let annotations = json!({"autoscaling.alpha.kubernetes.io/scale-up-tolerance": "1"});
    assert_eq!(to_v2_of(&annotations, &json!({}), &json!({}))["metadata"], json!({"name": "a"}));
}

#[test]
fn conversions_accept_any_shape() {
    for part in [json!(null), json!([]), json!("x"), json!({"metrics": 7, "behavior": [], "currentMetrics": {}})] {
        let mut object = json!({"metadata": part, "spec": part, "status": part});
        to_v2(&mut object);
        to_v1(&mut object);
        let mut object = part;
        to_v1(&mut object);
        to_v2(&mut object);
    }
}
