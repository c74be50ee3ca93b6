//! The mapper from names to resources: the server's order, and new discoveries for unknown names.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use klient::{
    Error, ErrorKind,
    client::discovery::{CachedDiscovery, DiskCache, RestMapper},
    resource::{ApiResource, GroupKind, GroupVersionKind, Scope},
};
use serde_json::json;

use crate::{
    offered::{discovery, group, in_memory, named, resource, served, served_legacy, tagged},
    support::routed::Routed,
    support::scripted::response,
};

fn mapper(server: &Arc<Routed>) -> RestMapper {
    RestMapper::new(in_memory(server))
}

async fn name_of(mapper: &RestMapper, name: &str) -> String {
    match mapper.resolve(name).await {
        Ok(resolved) => resolved.resource.gvr().to_string(),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// A server that serves widgets once the flag is set.
fn growing() -> (Arc<Routed>, Arc<AtomicBool>) {
    let installed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&installed);
    let server = Routed::new(move |request| {
        if request.uri() != "/apis" || !flag.load(Ordering::SeqCst) {
            return served(request);
        }
        let mut more = named();
        let widgets = resource("new.io", "v1", "Widget", "widgets", &json!({"shortNames": ["wd"], "scope": "Cluster"}));
        more["items"].as_array_mut().unwrap().push(group("new.io", &[("v1", vec![widgets])]));
        tagged(request, "\"more\"", &more)
    });
    (server, installed)
}

fn widget() -> GroupVersionKind {
    GroupVersionKind::new("new.io", "v1", "Widget")
}

#[tokio::test]
async fn mapper_resolves_every_form_of_a_name() {
    let server = Routed::new(served);
    let mapper = mapper(&server);
    let deployments = "apps/v1, Resource=deployments";
    for name in [
        "deployments",
        "deployment",
        "deploy",
        "Deployment",
        "DEPLOY",
        " deploy ",
        "deployments.apps",
        "deploy.apps",
        "Deployment.apps",
        "deployments.v1.apps",
        "deploy.v1.apps",
        "deployments.v1.",
        "deployments.app",
    ] {
        assert_eq!(name_of(&mapper, name).await, deployments, "{name}");
    }
    for (name, expected) in [
        ("deployments.v1beta1.apps", "apps/v1beta1, Resource=deployments"),
        ("po", "/v1, Resource=pods"),
        ("pods.v1.", "/v1, Resource=pods"),
        ("no", "/v1, Resource=nodes"),
        // Not in the preferred version of its group.
        ("sketches", "apps/v1beta1, Resource=sketches"),
        ("skates.example.com", "example.com/v1, Resource=skates"),
        ("skates.v1.example.com", "example.com/v1, Resource=skates"),
        ("deployments.v2.apps", "NotFound"),
        ("deployments.example.com", "NotFound"),
        ("po.apps", "NotFound"),
        ("", "Invalid"),
        (".", "Invalid"),
    ] {
        assert_eq!(name_of(&mapper, name).await, expected, "{name}");
    }
}

#[tokio::test]
async fn mapper_resolves_a_kind_in_its_own_group() {
    for serve in [served, served_legacy] {
        let mapper = mapper(&Routed::new(serve));
        let deployment = GroupVersionKind::new("apps", "v1", "Deployment");
        let deployments = ApiResource::new(deployment.clone(), "deployments", Scope::Namespaced);
        assert_eq!(mapper.resource_for_kind(&deployment).await.unwrap(), deployments);
        assert_eq!(mapper.resource_for_group_kind(&deployment.group_kind()).await.unwrap(), deployments);
        let old = GroupVersionKind::new("apps", "v1beta1", "Deployment");
        assert_eq!(mapper.resource_for_kind(&old).await.unwrap().version, "v1beta1");
        let event = |group: &'static str| GroupKind::new(group, "Event");
        assert_eq!(mapper.resource_for_group_kind(&event("")).await.unwrap().group, "");
        assert_eq!(mapper.resource_for_group_kind(&event("events.k8s.io")).await.unwrap().group, "events.k8s.io");
        // Without a group, a kind is in the core group.
        let error = mapper.resource_for_group_kind(&GroupKind::new("", "Deployment")).await.unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains("deployments.apps"), "{error}");
        assert!(!mapper.resource_for_kind(&GroupVersionKind::new("", "v1", "Node")).await.unwrap().is_namespaced());
    }
}

#[tokio::test]
async fn mapper_prefers_the_first_group_and_lists_the_others() {
    let server = Routed::new(served);
    let mapper = mapper(&server);
    let short = mapper.resolve("sk").await.unwrap();
    assert_eq!(short.resource.plural, "sketches");
    assert_eq!(short.others.iter().map(|other| &*other.plural).collect::<Vec<_>>(), ["skates"]);
    let warning = short.warning().unwrap();
    assert!(warning.contains("sketches.apps") && warning.contains("skates.example.com"), "{warning}");
    assert_eq!(mapper.resolve("sk.example.com").await.unwrap().warning(), None);

    // Versions of one resource are not ambiguous.
    let one = mapper.resolve("deploy").await.unwrap();
    assert_eq!((one.others.len(), one.warning()), (0, None));

    // A plural of two groups is common, so there is no warning.
    let events = mapper.resolve("Event").await.unwrap();
    assert_eq!((&*events.resource.group, events.others.len(), events.warning()), ("", 1, None));
}

#[tokio::test]
async fn full_name_takes_precedence_over_a_short_name() {
    let server = Routed::new(|request| {
        let mut more = named();
        let po = resource("late.io", "v1", "Po", "po", &json!({}));
        more["items"].as_array_mut().unwrap().push(group("late.io", &[("v1", vec![po])]));
        if request.uri() == "/apis" { tagged(request, "\"late\"", &more) } else { served(request) }
    });
    assert_eq!(name_of(&mapper(&server), "po").await, "late.io/v1, Resource=po");
}

#[tokio::test]
async fn category_contains_each_resource_once() {
    let mapper = mapper(&Routed::new(served));
    let all = mapper.category("all").await.unwrap();
    assert_eq!(
        all.iter().map(|resource| resource.gvr().to_string()).collect::<Vec<_>>(),
        ["/v1, Resource=pods", "apps/v1, Resource=deployments"]
    );
    assert!(mapper.category("none").await.unwrap().is_empty());
}

#[tokio::test]
async fn mapper_finds_a_resource_installed_later() {
    let (server, installed) = growing();
    let mapper = mapper(&server);
    mapper.resolve("po").await.unwrap();
    server.seen();
    installed.store(true, Ordering::SeqCst);
    assert_eq!(mapper.resource_for_kind(&widget()).await.unwrap().scope, Scope::Cluster);
    assert_eq!(server.paths(), ["/api", "/apis"]);
    assert_eq!(name_of(&mapper, "wd").await, "new.io/v1, Resource=widgets");
    assert_eq!(server.paths(), [""; 0]);
}

#[tokio::test]
async fn unknown_name_right_after_discovery_is_not_requested_again() {
    let server = Routed::new(served);
    assert!(mapper(&server).resource_for_kind(&widget()).await.unwrap_err().is_not_found());
    assert_eq!(server.paths(), ["/api", "/apis"]);
}

#[tokio::test]
async fn unknown_name_with_a_disk_cache_queries_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (server, installed) = growing();
    let on_disk = || CachedDiscovery::on_disk(discovery(&server), DiskCache::new(folder.path()));
    on_disk().apis().await.unwrap();
    server.seen();
    installed.store(true, Ordering::SeqCst);
    let mapper = RestMapper::new(on_disk());
    assert_eq!(name_of(&mapper, "po").await, "/v1, Resource=pods");
    assert_eq!(server.paths(), [""; 0]);
    assert_eq!(name_of(&mapper, "wd").await, "new.io/v1, Resource=widgets");
    assert_eq!(server.paths(), ["/api", "/apis"]);
}

#[tokio::test(start_paused = true)]
async fn discoveries_for_unknown_names_are_rate_limited() {
    let (server, installed) = growing();
    let mapper = mapper(&server);
    mapper.resolve("po").await.unwrap();
    tokio::time::advance(Duration::from_millis(1)).await;
    server.seen();
    for _ in 0..1000 {
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(mapper.resolve("wd").await.unwrap_err().is_not_found());
    }
    assert_eq!(server.seen().len(), 2 * 5);
    installed.store(true, Ordering::SeqCst);
    assert!(mapper.resolve("wd").await.unwrap_err().is_not_found());
    tokio::time::advance(Duration::from_secs(10)).await;
    mapper.resolve("wd").await.unwrap();
    assert_eq!(server.seen().len(), 2);
}

// With paused time, all requests are concurrent.
#[tokio::test(start_paused = true)]
async fn concurrent_unknown_names_share_one_discovery() {
    let (server, installed) = growing();
    let mapper = mapper(&server);
    mapper.resolve("po").await.unwrap();
    tokio::time::advance(Duration::from_millis(1)).await;
    server.seen();
    installed.store(true, Ordering::SeqCst);
    let held = server.gate.write().await;
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let mapper = mapper.clone();
            tokio::spawn(async move { mapper.resolve("wd").await.unwrap().resource })
        })
        .collect();
    server.asked(2).await;
    drop(held);
    for caller in callers {
        assert_eq!(caller.await.unwrap().plural, "widgets");
    }
    assert_eq!(server.paths(), ["/api", "/apis"]);
}

#[tokio::test(start_paused = true)]
async fn earlier_discovery_does_not_decide_about_an_unknown_name() {
    let (server, installed) = growing();
    let mapper = mapper(&server);
    mapper.resolve("po").await.unwrap();
    tokio::time::advance(Duration::from_millis(1)).await;
    server.seen();
    let held = server.gate.write().await;
    let ask = |name: &'static str| {
        let mapper = mapper.clone();
        tokio::spawn(async move { mapper.resolve(name).await.map(|found| found.resource.plural) })
    };
    let early = ask("nothing-like-it");
    server.asked(2).await;
    // Installed after the server has responded, and before the response is read.
    installed.store(true, Ordering::SeqCst);
    tokio::time::advance(Duration::from_millis(1)).await;
    let late = ask("wd");
    tokio::task::yield_now().await;
    drop(held);
    assert!(early.await.unwrap().unwrap_err().is_not_found());
    assert_eq!(late.await.unwrap().unwrap(), "widgets");
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn unknown_name_while_the_server_is_down_is_unavailable() {
    let down = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&down);
    let server =
        Routed::new(
            move |request| {
                if flag.load(Ordering::SeqCst) { response(500, "text/plain", "down") } else { served(request) }
            },
        );
    let mapper = mapper(&server);
    mapper.resolve("po").await.unwrap();
    down.store(true, Ordering::SeqCst);
    assert!(mapper.resolve("wd").await.unwrap_err().is_unavailable());
    assert_eq!(name_of(&mapper, "deploy").await, "apps/v1, Resource=deployments");
}

#[tokio::test]
async fn kind_in_a_failed_group_is_unavailable() {
    let server = Routed::new(|request| {
        let mut half = named();
        half["items"][2]["versions"][0]["freshness"] = json!("Stale");
        if request.uri() == "/apis" { tagged(request, "\"half\"", &half) } else { served(request) }
    });
    let mapper = mapper(&server);
    let skate = GroupVersionKind::new("example.com", "v1", "Skate");
    for error in [
        mapper.resource_for_kind(&skate).await.unwrap_err(),
        mapper.resource_for_group_kind(&skate.group_kind()).await.unwrap_err(),
        mapper.resolve("skates.example.com").await.unwrap_err(),
    ] {
        assert!(error.is_unavailable() && error.to_string().contains("example.com/v1"), "{error}");
    }
    let error = mapper.resolve("skates").await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("example.com/v1"), "{error}");
}

#[tokio::test]
async fn not_found_error_suggests_similar_names() {
    let mapper = mapper(&Routed::new(served));
    let said = |error: Error, parts: &[&str]| {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        for part in parts {
            assert!(error.to_string().contains(part), "{part} in {error}");
        }
    };
    said(mapper.resolve("deploymets").await.unwrap_err(), &["\"deploymets\"", "deployments.apps (Deployment.apps)"]);
    said(mapper.resolve("nothing.like.it").await.unwrap_err(), &["nothing.like.it"]);
    let newer = GroupVersionKind::new("apps", "v9", "Deployment");
    said(mapper.resource_for_kind(&newer).await.unwrap_err(), &["apps/v9", "apps/v1, apps/v1beta1"]);
    let misspelt = GroupVersionKind::new("apps", "v1", "Deploymnt");
    said(mapper.resource_for_kind(&misspelt).await.unwrap_err(), &["Deploymnt", "deployments.apps"]);
}
