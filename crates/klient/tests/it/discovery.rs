//! Discovery in both formats, from servers that are complete, partly down, or not API servers at all.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use klient::{
    Client, Error, ErrorKind,
    client::{
        discovery::{DiscoveryClient, ServerApis},
        http::{Body, SendFuture, Transport},
    },
    request::media_type,
    resource::{GroupVersion, GroupVersionKind, GroupVersionResource},
};
use serde_json::{Value, json};

use crate::{
    offered::{AGGREGATED, core, discovery, document, group, legacy, named, resource, served, served_legacy},
    support::routed::Routed,
    support::scripted::{Step, chain, json_response, response},
};

/// Runs discovery against a server with these aggregated documents.
async fn discover(core: Value, named: Value) -> Result<ServerApis, Error> {
    let server = Routed::new(move |request| {
        response(200, AGGREGATED, if request.uri() == "/api" { core.to_string() } else { named.to_string() })
    });
    discovery(&server).apis().await
}

fn plurals(apis: &ServerApis) -> Vec<String> {
    apis.resources().map(|served| format!("{} {}", served.resource.group_version(), served.resource.plural)).collect()
}

#[tokio::test]
async fn aggregated_discovery_takes_two_requests() {
    let server = Routed::new(served);
    let apis = discovery(&server).apis().await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request.headers()["accept"] == media_type::ACCEPT_DISCOVERY));
    let versions: Vec<String> = apis.group_versions().map(ToString::to_string).collect();
    assert_eq!(versions, ["v1", "apps/v1", "apps/v1beta1", "events.k8s.io/v1", "example.com/v1"]);
    assert_eq!(apis.group("apps").unwrap().preferred_version().unwrap().group_version.version, "v1");
    apis.check_complete().unwrap();

    let deployments = apis.resource(&GroupVersionResource::new("apps", "v1", "deployments")).unwrap();
    assert_eq!(deployments.resource.gvk(), GroupVersionKind::new("apps", "v1", "Deployment"));
    assert_eq!(deployments.response_kind, deployments.resource.gvk());
    assert_eq!(
        (deployments.singular.as_str(), &deployments.short_names[..]),
        ("deployment", &["deploy".to_owned()][..])
    );
    assert!(deployments.supports("list") && deployments.supports_all(&["get", "watch"]));
    assert!(!deployments.supports("delete") && !deployments.supports_all(&["get", "delete"]));
    assert!(deployments.is_in_category("all") && deployments.resource.is_namespaced());
    let scale = deployments.subresource("scale").unwrap();
    assert_eq!(scale.response_kind, GroupVersionKind::new("autoscaling", "v1", "Scale"));
    assert!(scale.supports("patch") && !scale.supports("delete"));
    assert!(!apis.resource(&GroupVersionResource::new("", "v1", "nodes")).unwrap().resource.is_namespaced());
}

#[tokio::test]
async fn both_formats_give_the_same_result() {
    let new = discovery(&Routed::new(served)).apis().await.unwrap();
    let old_server = Routed::new(served_legacy);
    assert_eq!(discovery(&old_server).apis().await.unwrap(), new);
    let paths = ["/api", "/api/v1", "/apis", "/apis/apps/v1", "/apis/apps/v1beta1", "/apis/events.k8s.io/v1"];
    assert_eq!(old_server.paths()[..6], paths);

    let either = Routed::new(|request| {
        if request.headers()["accept"] == media_type::JSON { served_legacy(request) } else { served(request) }
    });
    assert_eq!(discovery(&either).legacy().apis().await.unwrap(), new);
    assert_eq!(either.paths().len(), 7);
}

#[tokio::test]
async fn beta_format_and_missing_parameters_are_accepted() {
    for content_type in
        ["application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "application/json"]
    {
        let server = Routed::new(move |request| {
            let body = if request.uri() == "/api" { core() } else { named() };
            response(
                200,
                content_type,
                body.to_string().replace("apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/v2beta1"),
            )
        });
        assert_eq!(discovery(&server).apis().await.unwrap().resources().count(), 8);
    }
}

#[tokio::test]
async fn plain_json_is_requested_after_406() {
    let server = Routed::new(|request| {
        let plain = request.headers()["accept"] == media_type::JSON;
        if plain { served_legacy(request) } else { response(406, "text/plain", "only application/json") }
    });
    assert_eq!(discovery(&server).apis().await.unwrap().resources().count(), 8);
}

#[tokio::test]
async fn unavailable_aggregated_server_affects_only_its_groups() {
    let whole = plurals(&discover(core(), named()).await.unwrap());
    // The aggregated format lists the group versions that are stale.
    let mut half = named();
    let stale = json!({"version": "v1beta1", "freshness": "Stale"});
    half["items"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"metadata": {"name": "metrics.k8s.io"}, "versions": [stale]}));
    let apis = discover(core(), half).await.unwrap();
    assert_eq!(plurals(&apis), whole);
    let failed: Vec<_> =
        apis.failures.iter().map(|failure| (failure.group_version.to_string(), failure.kind)).collect();
    assert_eq!(failed, [("metrics.k8s.io/v1beta1".to_owned(), ErrorKind::Unavailable)]);
    let error = apis.check_complete().unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("metrics.k8s.io/v1beta1"), "{error}");

    // In the unaggregated format, the request for that group version fails.
    let server = Routed::new(|request| {
        if request.uri() == "/apis/apps/v1" {
            response(503, "text/plain", "error trying to reach service")
        } else {
            served_legacy(request)
        }
    });
    let apis = discovery(&server).apis().await.unwrap();
    assert_eq!(apis.failures.len(), 1);
    assert_eq!(apis.failures[0].group_version, GroupVersion::new("apps", "v1"));
    assert_eq!(apis.failures[0].kind, ErrorKind::Unavailable);
    assert_eq!(apis.group("apps").unwrap().preferred_version().unwrap().group_version.version, "v1beta1");
    assert_eq!(apis.resources().count(), whole.len() - 1);
}

#[tokio::test]
async fn every_failure_of_a_group_version_is_reported() {
    for (step, kind) in [
        ((|| response(200, "text/html", "<html>").into()) as fn() -> Step, ErrorKind::Decode),
        (|| response(200, media_type::JSON, "{\"kind\":").into(), ErrorKind::Decode),
        (|| json_response(200, &json!({"kind": "Status", "status": "Failure"})).into(), ErrorKind::Decode),
        (|| response(403, "text/plain", "no").into(), ErrorKind::Forbidden),
        (|| Step::Broken, ErrorKind::Transport),
    ] {
        let server =
            Routed::new(
                move |request| {
                    if request.uri() == "/apis/example.com/v1" { step() } else { served_legacy(request).into() }
                },
            );
        let apis = discovery(&server).apis().await.unwrap();
        assert_eq!(apis.failures.iter().map(|failure| failure.kind).collect::<Vec<_>>(), [kind]);
        assert_eq!(apis.resources().count(), 7);
        assert!(apis.group("example.com").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_group_version_times_out_alone() {
    let server = Routed::new(|request| {
        if request.uri() == "/apis/example.com/v1" { Step::Silence } else { served_legacy(request).into() }
    });
    let apis = discovery(&server).apis().await.unwrap();
    assert_eq!(apis.failures[0].kind, ErrorKind::Timeout);
    assert_eq!(apis.resources().count(), 7);
}

#[tokio::test]
async fn server_without_a_core_group_is_supported() {
    for code in [404, 403] {
        let server = Routed::new(move |request| {
            if request.uri() == "/api" { response(code, "text/plain", "404 page not found") } else { served(request) }
        });
        let apis = discovery(&server).apis().await.unwrap();
        assert_eq!(apis.groups[0].name, "apps");
        apis.check_complete().unwrap();
    }
    let server = Routed::new(|_| response(404, "text/plain", "404 page not found"));
    assert!(discovery(&server).apis().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn invalid_discovery_document_is_an_error_with_its_path() {
    for (content_type, body) in [
        ("text/html", "<html>please log in</html>".to_owned()),
        ("text/html", named().to_string()),
        ("application/vnd.kubernetes.protobuf", named().to_string()),
        (AGGREGATED, "<html>".to_owned()),
        (AGGREGATED, String::new()),
        (AGGREGATED, "null".to_owned()),
        (AGGREGATED, "[]".to_owned()),
        (AGGREGATED, "{}".to_owned()),
        (AGGREGATED, json!({"kind": "PodList", "items": []}).to_string()),
        (AGGREGATED, json!({"kind": "APIGroupDiscoveryList", "items": 7}).to_string()),
        (AGGREGATED, named().to_string()[..400].to_owned()),
        (media_type::JSON, json!({"kind": "APIGroupList", "groups": "many"}).to_string()),
    ] {
        let text = body.clone();
        let server = Routed::new(move |request| {
            if request.uri() == "/api" { served(request) } else { response(200, content_type, body.clone()) }
        });
        let error = discovery(&server).apis().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode, "{text}");
        assert!(chain(&error).contains("/apis"), "{}", chain(&error));
    }
}

#[tokio::test]
async fn missing_or_null_parts_are_skipped() {
    let mut odd = named();
    let items = odd["items"].as_array_mut().unwrap();
    items.extend([
        json!({}),
        json!({"metadata": null, "versions": null}),
        json!({"metadata": {"name": "a.b"}, "versions": [{}, {"version": "v1", "resources": null}]}),
        group(
            "c.d",
            &[(
                "v1",
                vec![
                    json!({}),
                    json!({"resource": "kindless", "verbs": null}),
                    json!({"resource": "x",
            "responseKind": {"kind": "X"}, "future": {"field": 1}}),
                ],
            )],
        ),
    ]);
    let apis = discover(core(), odd).await.unwrap();
    let added: Vec<String> = plurals(&apis).split_off(8);
    assert_eq!(added, ["c.d/v1 x"]);
    let x = apis.resource(&GroupVersionResource::new("c.d", "v1", "x")).unwrap();
    assert_eq!((x.singular.as_str(), &x.response_kind), ("x", &GroupVersionKind::new("c.d", "v1", "X")));
    assert!(apis.version(&GroupVersion::new("a.b", "v1")).unwrap().resources.is_empty());
}

#[tokio::test]
async fn subresources_without_their_parent_are_listed() {
    let under = json!({"subresource": "requests", "responseKind": {"group": "m", "version": "v1", "kind": "Value"},
        "verbs": ["get"]});
    let mut pods = resource("m", "v1", "", "pods", &json!({"subresources": [under], "verbs": []}));
    pods.as_object_mut().unwrap().remove("responseKind");
    pods["singularResource"] = json!("");
    let new = discover(core(), document(&[group("m", &[("v1", vec![pods])])])).await.unwrap();
    let served = new.resource(&GroupVersionResource::new("m", "v1", "pods")).unwrap();
    assert_eq!((&*served.resource.kind, served.verbs.len()), ("", 0));
    assert_eq!(served.subresource("requests").unwrap().response_kind, GroupVersionKind::new("m", "v1", "Value"));

    let server = Routed::new(|request| match request.uri().path() {
        "/apis" => json_response(
            200,
            &json!({"kind": "APIGroupList", "groups": [
            {"name": "m", "versions": [{"version": "v1"}], "preferredVersion": null}]}),
        ),
        "/apis/m/v1" => json_response(
            200,
            &json!({"kind": "APIResourceList", "resources": [
            {"name": "pods/requests", "namespaced": true, "kind": "Value", "verbs": ["get"]}]}),
        ),
        _ => served_legacy(request),
    });
    assert_eq!(discovery(&server).apis().await.unwrap(), new);
}

#[tokio::test]
async fn preferred_version_is_first_in_the_unaggregated_format() {
    let server = Routed::new(|request| {
        if request.uri() != "/apis" {
            return served_legacy(request);
        }
        let mut groups = legacy("/apis").unwrap();
        groups["groups"][0]["preferredVersion"] = json!({"groupVersion": "apps/v1beta1", "version": "v1beta1"});
        json_response(200, &groups)
    });
    let apis = discovery(&server).apis().await.unwrap();
    let versions: Vec<_> =
        apis.group("apps").unwrap().versions.iter().map(|version| &version.group_version.version).collect();
    assert_eq!(versions, ["v1beta1", "v1"]);
}

#[tokio::test]
async fn preferred_resources_contain_each_resource_once() {
    let apis = discovery(&Routed::new(served)).apis().await.unwrap();
    let preferred: Vec<String> = apis.preferred_resources().map(|served| served.resource.gvr().to_string()).collect();
    assert_eq!(preferred.len(), 7);
    assert!(preferred.contains(&"apps/v1, Resource=deployments".to_owned()));
    assert!(preferred.contains(&"apps/v1beta1, Resource=sketches".to_owned()));
    assert_eq!(apis.namespaced_preferred_resources().count(), 6);
}

#[tokio::test]
async fn single_group_version_and_server_version_can_be_requested() {
    let server = Routed::new(|request| match request.uri().path() {
        "/version" => json_response(200, &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"})),
        _ => served_legacy(request),
    });
    let client = discovery(&server);
    let version = client.server_version().await.unwrap();
    assert_eq!((version.minor.as_str(), version.git_version.as_str()), ("36", "v1.36.0"));
    let apps = client.resources(&GroupVersion::new("apps", "v1")).await.unwrap();
    assert_eq!(apps.resource("deployments").unwrap().subresources.len(), 1);
    assert_eq!(client.resources(&GroupVersion::new("", "v1")).await.unwrap().resources.len(), 3);
    assert!(client.resources(&GroupVersion::new("none", "v1")).await.unwrap_err().is_not_found());
    assert!(client.resources(&GroupVersion::new("not a", "path")).await.unwrap_err().is_invalid());
}

/// Counts concurrent requests.
#[derive(Default)]
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Transport for Counting {
    fn send(&self, request: http::Request<bytes::Bytes>) -> SendFuture<'_> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            // Long enough for all concurrent requests to arrive.
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(many_groups(request.uri().path()))
        })
    }
}

fn many_groups(path: &str) -> http::Response<Body> {
    let groups: Vec<Value> =
        (0..100).map(|n| json!({"name": format!("g{n}"), "versions": [{"version": "v1"}]})).collect();
    match path {
        "/api" => json_response(200, &json!({"kind": "APIVersions"})),
        "/apis" => json_response(200, &json!({"kind": "APIGroupList", "groups": groups})),
        _ => json_response(200, &json!({"kind": "APIResourceList", "resources": [{"name": "x", "kind": "X"}]})),
    }
}

#[tokio::test(start_paused = true)]
async fn unaggregated_discovery_limits_concurrent_requests() {
    let server = Arc::new(Counting::default());
    let client = Client::builder(Arc::clone(&server)).build();
    let apis = DiscoveryClient::new(client).apis().await.unwrap();
    let names: Vec<String> = apis.groups.iter().map(|group| group.name.clone()).collect();
    assert_eq!(names, (0..100).map(|n| format!("g{n}")).collect::<Vec<_>>());
    assert_eq!(server.most.load(Ordering::SeqCst), 16);
}
