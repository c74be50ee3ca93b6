//! Each call builds exactly this request, or is rejected for exactly this reason.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod, ServiceAccount},
    rbac::v1::ClusterRole,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{GroupVersionKind, JsonPatchOperation, JsonPointer, PropagationPolicy, Scope, VersionMatch};

type Built = Result<http::Request<Vec<u8>>, BuildRequestError>;

/// Formats a request as `METHOD path?query` with its content type and body, or the reason why it was rejected.
fn show(built: Built) -> String {
    match built {
        Ok(request) => {
            let mut line = format!("{} {}", request.method(), request.uri());
            if let Some(content_type) = request.headers().get(CONTENT_TYPE) {
                let body = String::from_utf8_lossy(request.body());
                line.push_str(&format!(" [{}] {body}", content_type.to_str().unwrap()));
            }
            line
        }
        Err(error) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            format!("rejected: {error}{}", source.unwrap_or_default())
        }
    }
}

fn check<const N: usize>(cases: [(Built, &str); N]) {
    for (built, expected) in cases {
        assert_eq!(show(built), expected);
    }
}

fn in_default() -> Target {
    Target::Namespace("default".to_owned())
}

#[test]
fn reads_make_these_requests() {
    let (pods, nodes) = (ApiResource::of::<Pod>(), ApiResource::of::<Node>());
    let deployments = ApiResource::of::<Deployment>();
    let pods_here = RequestBuilder::new(&pods, in_default());
    let all_pods = RequestBuilder::new(&pods, Target::AllNamespaces);
    let nodes = RequestBuilder::new(&nodes, Target::Cluster);
    let deployments = RequestBuilder::new(&deployments, in_default());
    let get = GetOptions::default;
    check([
        (pods_here.get("web", &get()), "GET /api/v1/namespaces/default/pods/web"),
        (nodes.get("n1", &get().version(VersionMatch::Any)), "GET /api/v1/nodes/n1?resourceVersion=0"),
        (deployments.get("web", &get()), "GET /apis/apps/v1/namespaces/default/deployments/web"),
        (all_pods.list(&ListOptions::default()), "GET /api/v1/pods"),
        (
            pods_here.list(&ListOptions::default().fields("spec.nodeName=n1").limit(10).continue_token("a+b")),
            "GET /api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dn1&limit=10&continue=a%2Bb",
        ),
        (
            all_pods.watch(&WatchOptions::initial_events()),
            "GET /api/v1/pods?watch=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true",
        ),
        (nodes.watch(&WatchOptions::after("7")), "GET /api/v1/nodes?watch=true&resourceVersion=7"),
    ]);
}

#[test]
fn writes_make_these_requests() {
    let deployments = ApiResource::of::<Deployment>();
    let deployments = RequestBuilder::new(&deployments, in_default());
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let body = || b"{}".to_vec();
    let json_patch = Patch::json([JsonPatchOperation::remove(JsonPointer::root().field("spec"))]);
    let patch = PatchOptions::default;
    for (built, expected) in [
        (deployments.create(&CreateOptions::default(), body()), format!("POST {path} [application/json] {{}}")),
        (
            deployments.create(&CreateOptions::default().dry_run().manager("me"), body()),
            format!("POST {path}?dryRun=All&fieldManager=me [application/json] {{}}"),
        ),
        (
            deployments.clone().content_type(media_type::PROTOBUF).update("web", &UpdateOptions::default(), body()),
            format!("PUT {path}/web [application/vnd.kubernetes.protobuf] {{}}"),
        ),
        (
            deployments.patch("web", &patch(), &json_patch),
            format!(r#"PATCH {path}/web [application/json-patch+json] [{{"op":"remove","path":"/spec"}}]"#),
        ),
        (
            deployments.patch("web", &patch(), &Patch::merge(json!({"a": null}))),
            format!(r#"PATCH {path}/web [application/merge-patch+json] {{"a":null}}"#),
        ),
        (
            deployments.patch("web", &patch(), &Patch::strategic(json!({}))),
            format!("PATCH {path}/web [application/strategic-merge-patch+json] {{}}"),
        ),
        (
            deployments.apply("web", &ApplyOptions::new("me").force(), body()),
            format!("PATCH {path}/web?fieldManager=me&force=true [application/apply-patch+yaml] {{}}"),
        ),
        (deployments.delete("web", &DeleteOptions::default()), format!("DELETE {path}/web")),
        (
            deployments.delete("web", &DeleteOptions::default().propagation_policy(PropagationPolicy::Background)),
            format!(
                r#"DELETE {path}/web [application/json] {{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}}"#
            ),
        ),
        (
            deployments.delete_collection(&DeleteCollectionOptions::default().labels("a=b")),
            format!("DELETE {path}?labelSelector=a%3Db"),
        ),
    ] {
        assert_eq!(show(built), expected);
    }
}

#[test]
fn subresources_make_these_requests() {
    let pods = ApiResource::of::<Pod>();
    let accounts = ApiResource::of::<ServiceAccount>();
    let pod = |name: &'static str| RequestBuilder::new(&pods, in_default()).subresource(name);
    let token = RequestBuilder::new(&accounts, in_default()).subresource(subresource::TOKEN);
    let create = CreateOptions::default();
    let get = GetOptions::default();
    let body = || b"{}".to_vec();
    check([
        (pod("status").get("web", &get), "GET /api/v1/namespaces/default/pods/web/status"),
        (
            pod("status").update("web", &UpdateOptions::default(), body()),
            "PUT /api/v1/namespaces/default/pods/web/status [application/json] {}",
        ),
        (
            pod("resize").patch("web", &PatchOptions::default(), &Patch::merge(json!({}))),
            "PATCH /api/v1/namespaces/default/pods/web/resize [application/merge-patch+json] {}",
        ),
        (
            pod("status").apply("web", &ApplyOptions::new("me"), body()),
            "PATCH /api/v1/namespaces/default/pods/web/status?fieldManager=me [application/apply-patch+yaml] {}",
        ),
        (
            pod("eviction").create_subresource("web", &create, body()),
            "POST /api/v1/namespaces/default/pods/web/eviction [application/json] {}",
        ),
        (
            token.create_subresource("robot", &create, body()),
            "POST /api/v1/namespaces/default/serviceaccounts/robot/token [application/json] {}",
        ),
        (
            pod("log").param("container", "a b").param("follow", true).get("web", &get),
            "GET /api/v1/namespaces/default/pods/web/log?container=a+b&follow=true",
        ),
        (
            pod("proxy").proxy_path("/metrics/a b%?/").param("q", "1").get("http:web:8080", &get),
            "GET /api/v1/namespaces/default/pods/http:web:8080/proxy/metrics/a%20b%25%3F/?q=1",
        ),
        (
            pod("proxy").proxy_path("a/../../../secrets").get("web", &get),
            "rejected: invalid proxy path \"a/../../../secrets\": it would change the path",
        ),
        (pod("log").proxy_path("x").get("web", &get), "rejected: a proxy path requires the subresource `proxy`"),
        (
            pod("status").list(&ListOptions::default()),
            "rejected: subresource \"status\" requires the name of an object",
        ),
        (
            RequestBuilder::new(&pods, in_default()).create_subresource("web", &create, body()),
            "rejected: no subresource to post to: call `.subresource()`",
        ),
        (pod("a/b").get("web", &get), "rejected: invalid subresource \"a/b\": it contains `/`"),
    ]);
}

#[test]
fn scope_that_does_not_fit_is_rejected() {
    let (pods, nodes) = (ApiResource::of::<Pod>(), ApiResource::of::<Node>());
    let pods_in = |target| RequestBuilder::new(&pods, target);
    let nodes_in = |target| RequestBuilder::new(&nodes, target);
    let get = GetOptions::default();
    let list = ListOptions::default();
    check([
        (nodes_in(Target::AllNamespaces).list(&list), "GET /api/v1/nodes"),
        (
            nodes_in(in_default()).list(&list),
            "rejected: cannot list nodes: the kind is cluster-scoped, but a namespace is set",
        ),
        (
            pods_in(Target::Cluster).list(&list),
            "rejected: cannot list pods: the kind is namespaced, but no namespace is set",
        ),
        (pods_in(Target::AllNamespaces).get("web", &get), "rejected: cannot get pods: a name is set, but no namespace"),
        (
            pods_in(Target::AllNamespaces).create(&CreateOptions::default(), vec![]),
            "rejected: cannot create pods: only lists and watches work across all namespaces",
        ),
        (
            pods_in(Target::AllNamespaces).delete_collection(&DeleteCollectionOptions::default()),
            "rejected: cannot deletecollection pods: only lists and watches work across all namespaces",
        ),
        (pods_in(Target::Namespace(String::new())).list(&list), "rejected: invalid namespace \"\": it is empty"),
        (
            pods_in(Target::Namespace("../x".into())).list(&list),
            "rejected: invalid namespace \"../x\": it contains `/`",
        ),
    ]);
}

#[test]
fn name_that_would_change_the_path_is_rejected() {
    let roles = ApiResource::of::<ClusterRole>();
    let roles = RequestBuilder::new(&roles, Target::Cluster);
    let get = |name: &str| roles.get(name, &GetOptions::default());
    let path = "GET /apis/rbac.authorization.k8s.io/v1/clusterroles";
    check([
        (get("system:node~1"), &format!("{path}/system:node~1")),
        (get("a b?c#d"), &format!("{path}/a%20b%3Fc%23d")),
        (get("é\"<>\\^`{|}[]"), &format!("{path}/%C3%A9%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D")),
        (get("..."), &format!("{path}/...")),
        (get(""), "rejected: invalid name \"\": it is empty"),
        (get("."), "rejected: invalid name \".\": it would change the path"),
        (get(".."), "rejected: invalid name \"..\": it would change the path"),
        (get("a/b"), "rejected: invalid name \"a/b\": it contains `/`"),
        (get("a%2fb"), "rejected: invalid name \"a%2fb\": it contains `%`"),
        (get("a\nb"), "rejected: invalid name \"a\\nb\": it contains a control character"),
    ]);
    let bad = |group: &'static str, version: &'static str, plural: &'static str| {
        let resource = ApiResource::new(GroupVersionKind::new(group, version, "X"), plural, Scope::Cluster);
        show(RequestBuilder::new(&resource, Target::Cluster).list(&ListOptions::default()))
    };
    assert_eq!(bad("a/b", "v1", "x"), "rejected: invalid group \"a/b\": it contains `/`");
    assert_eq!(bad("a", "", "x"), "rejected: invalid version \"\": it is empty");
    assert_eq!(bad("a", "v1", "pods/status"), "rejected: invalid resource \"pods/status\": it contains `/`");
}

#[test]
fn invalid_options_are_rejected() {
    let pods = ApiResource::of::<Pod>();
    let pods = RequestBuilder::new(&pods, in_default());
    let exact = GetOptions::default().version(VersionMatch::Exact("7".into()));
    check([
        (pods.get("web", &exact), "rejected: option resourceVersion: a get does not support an exact version"),
        (
            pods.apply("web", &ApplyOptions::new(""), vec![]),
            "rejected: option fieldManager: is required to apply: set it with `manager`",
        ),
        (pods.clone().accept("a\nb").list(&ListOptions::default()), "rejected: invalid header Accept: \"a\\nb\""),
    ]);
    let long = "x".repeat(70_000);
    assert!(show(pods.get(&long, &GetOptions::default())).starts_with("rejected: invalid address"));
}

#[test]
fn request_has_accept_header_and_verb() {
    let pods = ApiResource::of::<Pod>();
    let pods = RequestBuilder::new(&pods, Target::AllNamespaces);
    let request = pods.list(&ListOptions::default()).unwrap();
    assert_eq!(request.headers()[ACCEPT], "application/json");
    assert_eq!(request.extensions().get(), Some(&Verb::List));
    let request = pods.accept(media_type::PARTIAL_JSON).watch(&WatchOptions::default()).unwrap();
    assert_eq!(request.headers()[ACCEPT], media_type::PARTIAL_JSON);
    assert_eq!(request.extensions().get(), Some(&Verb::Watch));
    assert!(Verb::Watch.is_read() && !Verb::Delete.is_read());
    assert_eq!(Verb::DeleteCollection.to_string(), "deletecollection");
}

fn any_segment() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9.:-]{0,8}", "[./%?#&=\\\\ a]{0,6}", ".{0,8}", "\\PC{0,6}"]
}

proptest! {
    #[test]
    fn name_is_rejected_or_stays_one_segment(
        namespace in any_segment(),
        name in any_segment(),
        subresource in any_segment(),
        value in ".{0,8}",
    ) {
        let pods = ApiResource::of::<Pod>();
        let builder = RequestBuilder::new(&pods, Target::Namespace(namespace.clone()))
            .subresource(subresource.clone())
            .param("p", &value);
        let Ok(request) = builder.get(&name, &GetOptions::default()) else { return Ok(()) };
        let segments: Vec<_> = request.uri().path().split('/').map(|segment| {
            percent_encoding::percent_decode_str(segment).decode_utf8().unwrap().into_owned()
        }).collect();
        let expected = ["", "api", "v1", "namespaces", &namespace, "pods", &name, &subresource];
        prop_assert_eq!(segments, expected);
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let params: Vec<_> = form_urlencoded::parse(query).into_owned().collect();
        prop_assert_eq!(params, [("p".to_owned(), value)]);
    }

    #[test]
    fn ordinary_names_are_accepted(name in "[a-z0-9]([a-z0-9:._-]{0,20}[a-z0-9])?") {
        let pods = ApiResource::of::<Pod>();
        let request = RequestBuilder::new(&pods, in_default()).get(&name, &GetOptions::default()).unwrap();
        prop_assert_eq!(request.uri().path(), format!("/api/v1/namespaces/default/pods/{name}"));
    }

    #[test]
    fn proxy_path_never_leaves_the_proxy(path in "([a-z.%/]{0,3}/?){0,6}") {
        let pods = ApiResource::of::<Pod>();
        let builder = RequestBuilder::new(&pods, in_default()).subresource(subresource::PROXY).proxy_path(path);
        let Ok(request) = builder.get("web", &GetOptions::default()) else { return Ok(()) };
        prop_assert!(request.uri().path().starts_with("/api/v1/namespaces/default/pods/web/proxy/"));
        prop_assert!(!request.uri().path().split('/').any(|segment| matches!(segment, "." | "..")));
    }
}
