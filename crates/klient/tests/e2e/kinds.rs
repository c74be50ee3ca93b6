//! A table of built-in kinds with an object of each, for tests that treat all of them alike.
//!
//! Kinds that the API server itself writes are left out, because objects read by a test would be outdated soon.

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        autoscaling::{v1::HorizontalPodAutoscaler as OldAutoscaler, v2::HorizontalPodAutoscaler},
        batch::v1::{CronJob, Job},
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{
            ConfigMap, LimitRange, Node, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service,
            ServiceAccount,
        },
        discovery::v1::EndpointSlice,
        events::v1::Event,
        networking::v1::{Ingress, IngressClass, NetworkPolicy},
        node::v1::RuntimeClass,
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
        scheduling::v1::PriorityClass,
        storage::v1::{CSIDriver, StorageClass},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient::{Api, Client, Resource};
use serde_json::{Value, json};

/// An object of some kind, without its metadata.
#[derive(Clone)]
pub(crate) struct Sample {
    /// The fields.
    pub(crate) fields: Value,
    /// The status, if the kind has a status subresource.
    pub(crate) status: Option<Value>,
    /// Whether strategic patches are supported. Custom resources do not support them.
    pub(crate) strategic: bool,
}

impl Sample {
    pub(crate) fn new(fields: Value) -> Self {
        Self { fields, status: None, strategic: true }
    }

    fn status(mut self, status: Value) -> Self {
        self.status = Some(status);
        self
    }

    /// Returns an object of that name, with labels and annotations.
    pub(crate) fn object<K: Resource>(&self, name: &str, label: &str) -> K {
        let mut object = self.fields.clone();
        object["metadata"] = json!({
            "name": name, "labels": {"app": label}, "annotations": {"note": "a \"quoted\" \u{e9}"},
        });
        serde_json::from_value(object).unwrap()
    }
}

/// An operation on objects of any kind.
pub(crate) trait Visitor {
    /// Runs the operation on one kind, through any client.
    async fn visit<K: Resource + PartialEq>(&mut self, api: impl Fn(&Client) -> Api<K>, sample: Sample);
}

/// Visits every kind; namespaced objects are in this namespace.
pub(crate) async fn visit_all(visitor: &mut impl Visitor, namespace: &str) {
    visit_core(visitor, namespace).await;
    visit_workloads(visitor, namespace).await;
    visit_other_namespaced(visitor, namespace).await;
    visit_cluster_scoped(visitor).await;
}

/// Boxes each future, because together they would be too large for a thread's stack.
macro_rules! visit {
    ($visitor:ident in $namespace:ident: $($kind:ty => $sample:expr;)*) => {
        $(Box::pin($visitor.visit::<$kind>(|client| Api::namespaced(client.clone(), $namespace), $sample)).await;)*
    };
    ($visitor:ident: $($kind:ty => $sample:expr;)*) => {
        $(Box::pin($visitor.visit::<$kind>(|client| Api::cluster(client.clone()), $sample)).await;)*
    };
}

fn of(fields: Value) -> Sample {
    Sample::new(fields)
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "web"}})
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
        "name": "web", "image": "web:1", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
        "ports": [{"containerPort": 80}], "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }]}})
}

fn job() -> Value {
    json!({"backoffLimit": 0, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "j", "image": "j"}],
    }}})
}

async fn visit_core(visitor: &mut impl Visitor, namespace: &str) {
    visit! { visitor in namespace:
        ConfigMap => of(json!({"data": {"a": "b"}, "binaryData": {"c": "AAEC"}}));
        Secret => of(json!({"type": "Opaque", "data": {"password": "c2VjcmV0"}}));
        ServiceAccount => of(json!({"automountServiceAccountToken": false}));
        Service => of(json!({"spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}))
            .status(json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}}));
        Pod => of(json!({"spec": template()["spec"]})).status(json!({"phase": "Running", "podIP": "10.1.2.3"}));
        PodTemplate => of(json!({"template": template()}));
        ReplicationController => of(json!({"spec": {"replicas": 0, "selector": {"app": "web"}, "template": template()}}))
            .status(json!({"replicas": 0, "observedGeneration": 1}));
        LimitRange => of(json!({"spec": {"limits": [{"type": "Pod", "max": {"memory": "100Gi"}}]}}));
        ResourceQuota => of(json!({"spec": {"hard": {"count/widgets.none.invalid": "5"}}}))
            .status(json!({"hard": {"count/widgets.none.invalid": "5"}}));
    }
}

async fn visit_workloads(visitor: &mut impl Visitor, namespace: &str) {
    let set = || json!({"selector": selector(), "template": template()});
    let with = |mut spec: Value, name: &str, value: Value| {
        spec[name] = value;
        json!({"spec": spec})
    };
    visit! { visitor in namespace:
        Deployment => of(with(set(), "replicas", json!(0))).status(json!({"observedGeneration": 1}));
        ReplicaSet => of(with(set(), "replicas", json!(2))).status(json!({"replicas": 0, "observedGeneration": 1}));
        StatefulSet => of(with(set(), "serviceName", json!("web"))).status(json!({"replicas": 0, "currentRevision": "1"}));
        DaemonSet => of(with(set(), "minReadySeconds", json!(3))).status(json!({
            "currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 0}));
        ControllerRevision => of(json!({"revision": 3, "data": {"any": ["thing", 1]}}));
        Job => of(json!({"spec": job()})).status(json!({"active": 1, "startTime": "2026-11-15T10:00:00Z"}));
        CronJob => of(json!({"spec": {"schedule": "*/5 * * * *", "suspend": false, "jobTemplate": {"spec": job()}}}))
            .status(json!({"lastScheduleTime": "2026-11-15T10:00:00Z"}));
        HorizontalPodAutoscaler => of(json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"},
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}],
        }})).status(json!({"currentReplicas": 1, "desiredReplicas": 2}));
        OldAutoscaler => of(json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}}}))
            .status(json!({"currentReplicas": 1, "desiredReplicas": 2}));
    }
}

async fn visit_other_namespaced(visitor: &mut impl Visitor, namespace: &str) {
    visit! { visitor in namespace:
        Lease => of(json!({"spec": {
            "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-11-15T10:00:00.123456Z"}}));
        NetworkPolicy => of(json!({"spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": selector()}]}]}}));
        Ingress => of(json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}}))
            .status(json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}));
        PodDisruptionBudget => of(json!({"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "none"}}}}))
            .status(json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}));
        Role => of(json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}));
        RoleBinding => of(json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]}));
        EndpointSlice => of(json!({"addressType": "IPv4", "ports": [{"name": "http", "port": 80}],
            "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": false}}]}));
        Event => of(json!({
            "eventTime": "2026-11-15T10:00:00.123456Z", "reportingController": "klient.invalid/e2e",
            "reportingInstance": "one", "action": "Testing", "reason": "Test", "type": "Normal",
            "regarding": {"kind": "Pod", "namespace": namespace, "name": "web"}}));
    }
}

async fn visit_cluster_scoped(visitor: &mut impl Visitor) {
    let webhook = json!({
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"]}],
    });
    visit! { visitor:
        Node => of(json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}))
            .status(json!({"capacity": {"cpu": "4", "memory": "8Gi"}}));
        ClusterRole => of(json!({"rules": [{"nonResourceURLs": ["/none"], "verbs": ["get"]}]}));
        ClusterRoleBinding => of(json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "none"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]}));
        StorageClass => of(json!({"provisioner": "example.com/x", "parameters": {"a": "b"}}));
        CSIDriver => of(json!({"spec": {"attachRequired": false, "tokenRequests": [{"audience": "a"}]}}));
        IngressClass => of(json!({"spec": {"controller": "example.com/x"}}));
        RuntimeClass => of(json!({"handler": "x", "overhead": {"podFixed": {"cpu": "10m"}}}));
        PriorityClass => of(json!({"value": 1000, "description": "some"}));
        ValidatingWebhookConfiguration => of(json!({"webhooks": [webhook.clone()]}));
        MutatingWebhookConfiguration => of(json!({"webhooks": [webhook.clone()]}));
        CertificateSigningRequest => of(json!({"spec": {
            "request": certificate_request(), "signerName": "example.com/x", "usages": ["client auth"]}}))
            .status(json!({"certificate": certificate()}));
    }
}

/// Returns a certificate request, as such objects contain it.
pub(crate) fn certificate_request() -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::new(Vec::new()).unwrap().serialize_request(&key).unwrap().pem().unwrap();
    serde_json::to_value(k8s_openapi::ByteString(request.into_bytes())).unwrap()
}

fn certificate() -> Value {
    let made = rcgen::generate_simple_self_signed(Vec::new()).unwrap();
    serde_json::to_value(k8s_openapi::ByteString(made.cert.pem().into_bytes())).unwrap()
}

/// Returns an annotation of an object.
pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}
