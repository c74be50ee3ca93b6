//! Discovery of the real server: in both formats, by name and kind, and after an installation; and lists in pages.

use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{
    Api,
    client::{
        Pager, RetryWatch,
        discovery::{CachedDiscovery, DiscoveryClient, DiskCache, OpenApiClient, RestMapper, ServerApis},
    },
    options::{ListOptions, WatchOptions},
    resource::{GroupVersion, GroupVersionKind},
};
use serde_json::json;

use crate::cluster::{client, namespace, or_skip};

/// Describes the built-in resources in a stable order, because other tests install theirs meanwhile.
fn built_in(apis: &ServerApis) -> Vec<String> {
    let own = |group: &str| !group.ends_with(".invalid");
    let mut all: Vec<String> = apis
        .resources()
        .filter(|served| own(&served.resource.group))
        .map(|served| {
            let mut served = served.clone();
            served.subresources.sort_by(|a, b| a.name.cmp(&b.name));
            served.short_names.sort();
            served.categories.sort();
            served.verbs.sort();
            format!("{served:?}")
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn both_formats_of_discovery_agree() {
    let client = or_skip!(client());
    let new = DiscoveryClient::new(client.clone()).apis().await.unwrap();
    let old = DiscoveryClient::new(client.clone()).legacy().apis().await.unwrap();
    new.check_complete().unwrap();
    old.check_complete().unwrap();
    assert!(built_in(&new).len() > 60, "{}", built_in(&new).len());
    assert_eq!(built_in(&new), built_in(&old));
    let order = |apis: &ServerApis| {
        let versions = apis.group_versions().filter(|version| !version.group.ends_with(".invalid"));
        versions.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(order(&new), order(&old));
    let apps = DiscoveryClient::new(client).resources(&GroupVersion::new("apps", "v1")).await.unwrap();
    let scale = apps.resource("deployments").unwrap().subresource("scale").unwrap().response_kind.clone();
    assert_eq!(scale, GroupVersionKind::new("autoscaling", "v1", "Scale"));
}

#[tokio::test]
async fn mapper_resolves_names() {
    let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(or_skip!(client()))));
    for (name, expected) in [
        ("po", "/v1, Resource=pods"),
        ("deploy", "apps/v1, Resource=deployments"),
        ("deployments.v1.apps", "apps/v1, Resource=deployments"),
        ("Deployment", "apps/v1, Resource=deployments"),
        ("ing", "networking.k8s.io/v1, Resource=ingresses"),
        ("events", "/v1, Resource=events"),
        ("crd", "apiextensions.k8s.io/v1, Resource=customresourcedefinitions"),
        ("hpa", "autoscaling/v2, Resource=horizontalpodautoscalers"),
    ] {
        assert_eq!(mapper.resolve(name).await.unwrap().resource.gvr().to_string(), expected);
    }
    let all: Vec<String> =
        mapper.category("all").await.unwrap().iter().map(|resource| resource.group_resource().to_string()).collect();
    for expected in ["pods", "services", "deployments.apps", "jobs.batch"] {
        assert!(all.contains(&expected.to_owned()), "{all:?}");
    }
    let error = mapper.resolve("deploymets").await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("deployments.apps"), "{error}");
}

#[tokio::test]
async fn mapper_finds_a_resource_installed_later() {
    let client = or_skip!(client());
    let folder = tempfile::tempdir().unwrap();
    let on_disk = || CachedDiscovery::on_disk(DiscoveryClient::new(client.clone()), DiskCache::new(folder.path()));
    let mapper = RestMapper::new(on_disk());
    let gadget = GroupVersionKind::new("discovery.klient.invalid", "v1", "Gadget");
    assert!(mapper.resource_for_kind(&gadget).await.unwrap_err().is_not_found());

    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "gadgets.discovery.klient.invalid"},
        "spec": {
            "group": "discovery.klient.invalid", "scope": "Cluster",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList",
                "shortNames": ["gdg"], "categories": ["toys"]},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }))
    .unwrap();
    definitions.create(&definition).await.unwrap();
    // The server lists it shortly after it is established, without a notification.
    let mut found = None;
    for _ in 0..600 {
        found = on_disk().refresh().await.unwrap().group("discovery.klient.invalid").cloned();
        if found.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(found.is_some(), "the definition is never listed");
    let gadgets = mapper.resource_for_kind(&gadget).await.unwrap();
    assert!(!gadgets.is_namespaced());
    assert_eq!(mapper.resolve("gdg").await.unwrap().resource, gadgets);
    assert_eq!(mapper.category("toys").await.unwrap(), [gadgets]);

    // The next program reads it from disk.
    let next = on_disk();
    assert!(next.apis().await.unwrap().group("discovery.klient.invalid").is_some());
    assert!(!next.is_fresh());
}

#[tokio::test]
async fn unchanged_documents_are_not_sent_again() {
    let cached = CachedDiscovery::in_memory(DiscoveryClient::new(or_skip!(client())));
    let core = |apis: &ServerApis| std::sync::Arc::clone(&apis.groups[0]);
    let first = cached.apis().await.unwrap();
    let second = cached.refresh().await.unwrap();
    // No test changes the core group, so its document keeps its ETag.
    assert!(std::sync::Arc::ptr_eq(&core(&first), &core(&second)));
}

#[tokio::test]
async fn openapi_document_is_found_by_group_version() {
    let openapi = OpenApiClient::new(or_skip!(client()));
    let apps = GroupVersion::new("apps", "v1");
    assert!(openapi.index().await.unwrap().group_versions().any(|version| version == apps));
    let document = openapi.value(&apps).await.unwrap();
    assert!(document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
    assert!(openapi.document_v2().await.unwrap().starts_with(b"{"));
}

#[tokio::test]
async fn pager_returns_fifty_objects_in_pages_of_seven() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "discovery-pages").await);
    let mut expected = Vec::new();
    let version = maps.list().await.unwrap().resource_version();
    for index in 0..50 {
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": format!("map-{index:02}"), "labels": {"app": "pages"}}}),
        )
        .unwrap();
        maps.create(&map).await.unwrap();
        expected.push(format!("map-{index:02}"));
    }
    let name = |map: &ConfigMap| map.metadata.name.clone().unwrap();
    let options = ListOptions::default().labels("app=pages").limit(7);
    let mut pager = Pager::new(maps.clone(), options.clone());
    let mut pages = Vec::new();
    while let Some(page) = pager.next_page().await.unwrap() {
        pages.push(page.items.iter().map(name).collect::<Vec<_>>());
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 7, 7, 7, 7, 7, 1]);
    assert_eq!(pages.concat(), expected);
    let all = Pager::new(maps.clone(), options).all().await.unwrap();
    assert_eq!(all.items.iter().map(name).collect::<Vec<_>>(), expected);
    assert!(!all.resource_version().is_empty());

    // The same objects again, in order of creation, over watches of a second each.
    let options = WatchOptions::after(version).labels("app=pages").timeout(std::time::Duration::from_secs(1));
    let mut watch = RetryWatch::new(maps.clone(), options).unwrap();
    let mut seen = Vec::new();
    for _ in 0..50 {
        seen.extend(watch.next().await.unwrap().unwrap().object().map(name));
    }
    assert_eq!(seen, expected);
    let pause = tokio::time::timeout(std::time::Duration::from_secs(3), watch.next()).await;
    assert!(pause.is_err(), "{pause:?}");
    maps.create(&{
        let late = json!({"metadata": {"name": "late", "labels": {"app": "pages"}}});
        serde_json::from_value(late).unwrap()
    })
    .await
    .unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().object().map(name).as_deref(), Some("late"));
}
