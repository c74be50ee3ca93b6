//! Invalid and random requests: the server responds to all of them and continues.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};
use tokio::time::timeout;

/// An arbitrary request.
#[derive(Clone)]
struct Hostile {
    method: String,
    target: Vec<u8>,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

impl Hostile {
    /// Returns the request, unless it is not valid HTTP.
    fn request(&self) -> Option<Request<Bytes>> {
        let mut request = Request::builder().method(self.method.as_str()).uri(self.target.as_slice());
        for (name, value) in &self.headers {
            request = request.header(*name, HeaderValue::from_bytes(value).ok()?);
        }
        request.body(Bytes::from(self.body.clone())).ok()
    }
}

impl fmt::Debug for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.target.escape_ascii())?;
        for (name, value) in &self.headers {
            write!(f, " {name}: {}", value.escape_ascii())?;
        }
        write!(f, " {}", self.body.escape_ascii())
    }
}

fn bodies() -> Vec<Vec<u8>> {
    let meta = json!({"name": "a", "namespace": "default", "labels": {"a": "b"}, "finalizers": ["x/y"],
        "resourceVersion": "3", "generation": -1, "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "blockOwnerDeletion": true}],
        "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}]});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
        "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
        "selectableFields": [{"jsonPath": ".spec.n"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "n": {"type": "integer", "default": 1, "maximum": 9.5, "multipleOf": 0},
            "s": {"type": "string", "pattern": "^(a+)+$", "maxLength": 3, "enum": ["x"]}}}}}}}]}});
    let mut bodies: Vec<Vec<u8>> = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "v"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {"nodeName": "n",
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1e9"}}}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": -1, "strategy":
            {"rollingUpdate": {"maxSurge": "x%"}}, "selector": {}, "template": {"spec": {}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}),
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": 3}}),
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}),
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": i64::MIN, "propagationPolicy":
            "Foreground", "preconditions": {"uid": "x", "resourceVersion": "-1"}}),
        json!([{"op": "copy", "from": "", "path": "/data/x"}, {"op": "move", "from": "/data", "path": "/data/x/y"},
            {"op": "remove", "path": ""}, {"op": "add", "path": "/metadata/labels/-", "value": null}]),
        json!({"metadata": null, "data": {"$patch": "replace", "$setElementOrder/containers": [1], "k": null}}),
        json!({"spec": {"containers": [{"$patch": "delete", "name": 3}], "$retainKeys": "x"}}),
        crd,
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 1e300, "s": "aaaa"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}, "spec": {"finalizers": [""]}}),
        json!("text"),
        json!(null),
    ]
    .iter()
    .map(|body| body.to_string().into_bytes())
    .collect();
    bodies.extend([
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x07\x0a\x05\x0a\x01a\x1a\x00".to_vec(),
        "[".repeat(5000).into_bytes(),
        "{\"a\":".repeat(5000).into_bytes(),
        b"a: &a [*a, *a]\n".to_vec(),
        "- ".repeat(3000).into_bytes(),
        b"{a: {b: 1}, metadata: {name: .nan}, ? [x]: y}".to_vec(),
        Vec::new(),
    ]);
    bodies
}

/// Returns bytes with a few of them changed, removed or repeated.
fn mutated(seed: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop_oneof![2 => Just(Vec::new()), 3 => vec((any::<prop::sample::Index>(), 0..4, any::<u8>()), 1..4)];
    (seed, changes).prop_map(|(mut bytes, changes)| {
        for (at, how, byte) in changes {
            let at = at.index(bytes.len() + 1);
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at),
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    })
}

fn target() -> impl Strategy<Value = Vec<u8>> {
    let places = select(vec![
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/version",
        "/readyz/etcd",
        "/openapi/v3",
        "*",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1/configmaps",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/a/status",
        "/api/v1/namespaces/default/pods/a/binding",
        "/api/v1/namespaces/default/pods/a/eviction",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/finalize",
        "/apis/apps/v1/namespaces/default/deployments/a",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        "/api/v1/watch/namespaces/default/pods",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com",
        "/apis/example.com/v1/namespaces/default/widgets",
        "/apis/example.com/v1/namespaces/default/widgets/w",
        "/apis/example.com/v1/namespaces/default/widgets/w/scale",
        "/api/v1/nodes/%2e%2e/%00/%ff",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ]);
    let params = select(vec![
        "watch=1",
        "watch=true",
        "timeoutSeconds=9223372036854775807",
        "timeoutSeconds=-1",
        "timeoutSeconds=1",
        "resourceVersion=0",
        "resourceVersion=18446744073709551615",
        "resourceVersion=2",
        "limit=1",
        "limit=-9223372036854775808",
        "continue=AAAA",
        "continue=%ff",
        "labelSelector=a%3Db,!c,d+in+(e,f)",
        "labelSelector=((",
        "fieldSelector=metadata.name%3Da",
        "fieldSelector=spec.n!=1",
        "dryRun=All",
        "dryRun=x",
        "fieldManager=%00",
        "fieldValidation=Strict",
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Exact",
        "allowWatchBookmarks=true",
        "pretty=1",
        "propagationPolicy=Orphan",
        "gracePeriodSeconds=99999999999999999999",
        "orphanDependents=true",
        "includeObject=Object",
        "force=true",
    ]);
    let plain = (places, vec(params, 0..4)).prop_map(|(path, params)| {
        let query = if params.is_empty() { String::new() } else { format!("?{}", params.join("&")) };
        format!("{path}{query}").into_bytes()
    });
    prop_oneof![3 => plain.clone().boxed(), 1 => mutated(plain).boxed()]
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let methods = select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "BREW"]);
    let types = select(vec![
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "text/html;q=zz",
        ";;;=",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
        "*/*;q=2,,",
    ]);
    let value = move || {
        let known = types.clone().prop_map(|text| text.as_bytes().to_vec());
        option::of(prop_oneof![4 => known, 1 => vec(32..=255u8, 0..20)])
    };
    let body = mutated(select(bodies()));
    (methods, target(), value(), value(), body).prop_map(|(method, target, content, accept, body)| {
        let named = [("content-type", content), ("accept", accept)];
        let headers = named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Hostile { method: method.to_owned(), target, headers, body }
    })
}

/// Client errors that a real server reports as 500: each is in `tests/differential/recorded`.
const BLAMES_ITSELF: [&str; 5] = [
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint: parsing ",
    "target.kind: Unsupported value: ",
    "target.name: Required value",
    "This pod has more than one PodDisruptionBudget",
];

async fn answered(server: &ApiServer, hostile: &Hostile) {
    let Some(request) = hostile.request() else { return };
    let response = timeout(PATIENCE, server.handle(request)).await.expect("there is an answer");
    let code = response.status().as_u16();
    // A watch does not end, so only its first frame is read.
    let frame = timeout(Duration::from_secs(1), response.into_body().frame()).await;
    let text = match frame {
        Ok(Some(frame)) => String::from_utf8_lossy(&frame.unwrap().into_data().unwrap()).into_owned(),
        _ => String::new(),
    };
    let as_a_real_server = BLAMES_ITSELF.iter().any(|message| text.contains(message));
    let sane = (200..500).contains(&code) || matches!(code, 501 | 504) || code == 500 && as_a_real_server;
    assert!(sane, "{code} {text} to {hostile:?}");
}

async fn still_works(server: &ApiServer) {
    let path = "/api/v1/namespaces/kube-public/configmaps";
    let body = json!({"metadata": {"generateName": "alive-"}}).to_string();
    let request = Request::post(path).header("content-type", "application/json").body(body.into()).unwrap();
    assert_eq!(server.handle(request).await.status(), 201);
    assert_eq!(server.handle(Request::get(path).body(Bytes::new()).unwrap()).await.status(), 200);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn server_responds_to_any_request_and_continues(requests in vec(hostile(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::start().await.unwrap();
            for hostile in &requests {
                answered(&server, hostile).await;
            }
            still_works(&server).await;
        });
    }
}

/// Returns the code, warnings and length of the response to a new object, and the number of its causes.
async fn created(server: &ApiServer, path: &str, body: &Value) -> (u16, usize, usize, usize) {
    let request = Request::post(format!("{path}?dryRun=All")).header("content-type", "application/json");
    let (parts, body) = server.handle(request.body(body.to_string().into()).unwrap()).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let warnings = parts.headers.get_all("warning").iter().map(HeaderValue::len).sum();
    let status: Value = serde_json::from_slice(&body).unwrap();
    let causes = status["details"]["causes"].as_array().map_or(0, Vec::len);
    (parts.status.as_u16(), warnings, body.len(), causes)
}

#[tokio::test]
async fn response_to_large_lists_is_limited() {
    let server = ApiServer::start().await.unwrap();
    let named = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": "a"}});
    let many = |count: usize, item: &dyn Fn(usize) -> Value| Value::from((0..count).map(item).collect::<Vec<_>>());
    let map = |count: usize, name: &dyn Fn(usize) -> String, value: Value| {
        Value::from((0..count).map(|n| (name(n), value.clone())).collect::<serde_json::Map<_, _>>())
    };
    let mut class = named("storage.k8s.io/v1", "StorageClass");
    class["provisioner"] = json!("a");
    class["allowedTopologies"] = many(30_000, &|_| json!({}));
    let mut scopes = named("v1", "ResourceQuota");
    let hard = map(5_000, &|n| format!("requests.hugepages-{n}Ki"), json!("1"));
    scopes["spec"] = json!({"hard": hard, "scopes": many(5_000, &|_| json!("BestEffort"))});
    let mut selector = named("v1", "ResourceQuota");
    let expressions = many(5_000, &|_| json!({"scopeName": "BestEffort", "operator": "Exists"}));
    selector["spec"] = json!({"hard": hard, "scopeSelector": {"matchExpressions": expressions}});
    let mut limits = named("v1", "LimitRange");
    limits["spec"]["limits"] = many(30_000, &|n| json!({"type": format!("example.com/{n}")}));
    let mut runtime = named("node.k8s.io/v1", "RuntimeClass");
    runtime["handler"] = json!("a");
    runtime["scheduling"]["tolerations"] = many(30_000, &|n| json!({"key": format!("k{n}"), "operator": "Exists"}));
    let mut ports = named("v1", "Pod");
    let list = many(2_000, &|n| json!({"containerPort": 1, "hostPort": n + 1, "protocol": "TCP"}));
    ports["spec"]["containers"] = json!([{"name": "a", "image": "b", "ports": list},
        {"name": "b", "image": "b", "ports": many(2_000, &|_| json!({"containerPort": 1, "protocol": "TCP"}))}]);
    let mut paths = named("v1", "Pod");
    let items = many(20_000, &|n| json!({"key": "k", "path": format!("d/{}", n / 2)}));
    let same = many(20_000, &|_| json!({"key": "k", "path": "d"}));
    paths["spec"] = json!({"containers": [{"name": "a", "image": "b"}], "volumes": [
        {"name": "v", "configMap": {"name": "m", "items": same}}, {"name": "w", "configMap": {"name": "m", "items": items}}]});
    let mut set = named("apps/v1", "StatefulSet");
    let claims = many(2_000, &|n| {
        json!({"metadata": {"name": format!("c{n}")}, "spec":
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}})
    });
    set["spec"] = json!({"selector": {"matchLabels": {"a": "b"}}, "volumeClaimTemplates": claims,
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}});
    let mut unknown = named("v1", "ConfigMap");
    unknown["data"] = json!({});
    (0..40_000).for_each(|n| unknown[format!("unknown{n}")] = json!(1));
    for (path, body) in [
        ("/api/v1/namespaces/default/configmaps", unknown),
        ("/apis/storage.k8s.io/v1/storageclasses", class),
        ("/api/v1/namespaces/default/resourcequotas", scopes),
        ("/api/v1/namespaces/default/resourcequotas", selector),
        ("/api/v1/namespaces/default/limitranges", limits),
        ("/apis/node.k8s.io/v1/runtimeclasses", runtime),
        ("/api/v1/namespaces/default/pods", ports),
        ("/api/v1/namespaces/default/pods", paths),
        ("/apis/apps/v1/namespaces/default/statefulsets", set),
    ] {
        let sent = body.to_string().len();
        let (code, warnings, length, causes) = created(&server, path, &body).await;
        let shown =
            format!("{code} with {warnings} of warnings, {length} bytes, {causes} causes to {sent} bytes at {path}");
        assert!(matches!(code, 201 | 422), "{shown}");
        assert!(causes <= 4096 && warnings <= 16 << 10 && length <= 16 << 20, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_accepts_largest_timeout() {
    let server = ApiServer::start().await.unwrap();
    let target = "/api/v1/pods?watch=1&timeoutSeconds=9223372036854775807";
    let request = Request::get(target).body(Bytes::new()).unwrap();
    assert_eq!(server.handle(request).await.status(), 200);
}

/// A limit on a paused clock.
const PATIENCE: Duration = Duration::from_secs(120);
