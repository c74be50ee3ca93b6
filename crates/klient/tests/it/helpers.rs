//! Finalizers and `wait_for` on the embedded server.

use std::{cell::RefCell, time::Duration};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{
    Api, Error, Patch,
    finalizer::Finalizer,
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
    wait::{Until, wait_for},
};
use klient_apiserver::{ApiServer, Fault};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::embedded::client;

const MINUTE: Duration = Duration::from_secs(60);

async fn maps() -> (ApiServer, Api<ConfigMap>) {
    let server = ApiServer::start().await.unwrap();
    let maps = Api::namespaced(client(&server), "default");
    (server, maps)
}

async fn create(maps: &Api<ConfigMap>) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("web".to_owned());
    maps.create(&map).await.unwrap()
}

async fn set(maps: &Api<ConfigMap>, value: &str) -> ConfigMap {
    let patch = Patch::merge(json!({"data": {"value": value}}));
    maps.patch("web", patch.clone()).await.unwrap()
}

fn is_set(value: &'static str) -> Until<ConfigMap> {
    Until::is(move |map: &ConfigMap| {
        map.data.as_ref().is_some_and(|data| data.get("value").is_some_and(|v| v == value))
    })
}

fn finalizer() -> Finalizer {
    Finalizer::new("example.com/bucket").unwrap()
}

#[tokio::test]
async fn finalizer_is_added_before_apply_and_removed_after_cleanup() {
    let (_server, maps) = maps().await;
    let (finalizer, log) = (finalizer(), RefCell::new(Vec::new()));
    let run = async |map: &ConfigMap, works: bool| {
        let apply = async |map: ConfigMap| {
            log.borrow_mut().push(format!("apply {}", finalizer.is_on(&map)));
            Ok::<_, Error>(())
        };
        let cleanup = async |map: ConfigMap| {
            log.borrow_mut().push(format!("cleanup {}", finalizer.is_on(&map)));
            if works { Ok(()) } else { Err(Error::new(klient::ErrorKind::Unavailable, "not yet")) }
        };
        finalizer.run(&maps, map, apply, cleanup).await
    };
    let map = create(&maps).await;
    assert_eq!(run(&map, true).await.unwrap(), Some(()));
    maps.delete("web").await.unwrap();
    let going = maps.get("web").await.unwrap();
    run(&going, false).await.unwrap_err();
    assert!(maps.get_opt("web").await.unwrap().is_some(), "object was deleted before cleanup succeeded");
    assert_eq!(run(&going, true).await.unwrap(), None);
    assert!(maps.get_opt("web").await.unwrap().is_none());
    assert_eq!(*log.borrow(), ["apply true", "cleanup true", "cleanup true"]);
}

#[tokio::test]
async fn finalizer_keeps_writes_of_other_clients() {
    let (_server, maps) = maps().await;
    let old = create(&maps).await;
    let patch = Patch::merge(json!({"metadata": {"finalizers": ["example.com/other"]}, "data": {"value": "1"}}));
    maps.patch("web", patch).await.unwrap();
    let now = finalizer().add(&maps, &old).await.unwrap().unwrap();
    let both = ["example.com/other".to_owned(), "example.com/bucket".to_owned()];
    assert_eq!(now.metadata.finalizers.as_deref(), Some(&both[..]));
    assert_eq!(now.data.as_ref().unwrap()["value"], "1");
    let now = finalizer().remove(&maps, &old).await.unwrap().unwrap();
    assert!(!finalizer().is_on(&now), "finalizer was not removed");
}

#[tokio::test]
async fn finalizer_ignores_another_object_with_the_same_name() {
    let (_server, maps) = maps().await;
    let first = create(&maps).await;
    maps.delete("web").await.unwrap();
    assert_eq!(finalizer().add(&maps, &first).await.unwrap(), None, "object was deleted");
    let second = create(&maps).await;
    assert_eq!(finalizer().add(&maps, &first).await.unwrap(), None);
    assert!(!finalizer().is_on(&maps.get("web").await.unwrap()));
    finalizer().add(&maps, &second).await.unwrap().unwrap();
}

#[test]
fn finalizer_accepts_qualified_names_only() {
    let long = "a".repeat(63);
    for name in ["documents.kube.rs", "bucket", "example.com/bucket", "example.com/my_Bucket.2", long.as_str()] {
        assert_eq!(Finalizer::new(name).unwrap().name(), name);
    }
    let too_long = "a".repeat(64);
    for name in ["", "/bucket", "example.com/", "a/b/c", "-bucket", "Example.com/bucket", "a b", too_long.as_str()] {
        Finalizer::new(name).unwrap_err();
    }
    let error = Finalizer::new("a/b/c").unwrap_err().to_string();
    assert_eq!(error, "invalid finalizer name \"a/b/c\": use a qualified name like example.com/cleanup");
}

#[tokio::test(start_paused = true)]
async fn wait_for_returns_when_the_condition_holds() {
    let (_server, maps) = maps().await;
    let started = Instant::now();
    let until = is_set("2");
    let (waited, ()) = tokio::join!(wait_for(&maps, "web", &until, MINUTE), async {
        sleep(Duration::from_secs(3)).await;
        create(&maps).await;
        set(&maps, "1").await;
        sleep(Duration::from_secs(3)).await;
        set(&maps, "2").await;
    });
    assert_eq!(waited.unwrap().unwrap().data.unwrap()["value"], "2");
    assert_eq!(started.elapsed().as_secs(), 6);
    assert!(wait_for(&maps, "web", &until, Duration::from_secs(1)).await.is_ok(), "condition holds already");
}

#[tokio::test(start_paused = true)]
async fn wait_for_returns_after_deletion_and_replacement() {
    let (_server, maps) = maps().await;
    let map = create(&maps).await;
    let until = Until::replaced(map.metadata.uid.unwrap());
    let (waited, ()) = tokio::join!(wait_for(&maps, "web", &until, MINUTE), async {
        sleep(Duration::from_secs(3)).await;
        maps.delete("web").await.unwrap();
        create(&maps).await;
    });
    waited.unwrap();
    maps.delete("web").await.unwrap();
    assert_eq!(wait_for(&maps, "web", &Until::absent(), MINUTE).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn wait_for_times_out() {
    let (_server, maps) = maps().await;
    let started = Instant::now();
    let error = wait_for(&maps, "web", &Until::exists(), MINUTE).await.unwrap_err();
    assert!(error.is_timeout());
    let message = "timed out after 60s waiting for existence of configmaps \"web\" in namespace \"default\": last seen: not found";
    assert_eq!(error.to_string(), message);
    assert_eq!(started.elapsed(), MINUTE);
}

#[tokio::test(start_paused = true)]
async fn wait_for_reports_the_last_state_on_timeout() {
    let server = ApiServer::start().await.unwrap();
    let namespaces: Api<Namespace> = Api::cluster(client(&server));
    let until = Until::condition("Ready", "True").and(Until::is(|_| false).described_as("a miracle"));
    let error = wait_for(&namespaces, "default", &until, MINUTE).await.unwrap_err().to_string();
    let expected = "timed out after 60s waiting for condition Ready=True and a miracle of namespaces \"default\": last seen: version ";
    assert!(error.starts_with(expected) && error.ends_with(", phase Active"), "{error}");
    server.inject(Fault::internal_error());
    let error = wait_for(&namespaces, "default", &until, MINUTE).await.unwrap_err();
    assert!(error.to_string().ends_with("last seen: never seen"), "{error}");
    assert!(std::error::Error::source(&error).is_some(), "the error of the last request is the source");
}

#[tokio::test(start_paused = true)]
async fn wait_for_survives_faults_of_the_server() {
    let (server, maps) = maps().await;
    create(&maps).await;
    server.inject(Fault::internal_error().times(3));
    server.inject(Fault::cut_after(10).on_watches(true).times(2));
    let until = is_set("1");
    let (waited, _) = tokio::join!(wait_for(&maps, "web", &until, MINUTE), async {
        sleep(Duration::from_secs(20)).await;
        set(&maps, "1").await;
    });
    waited.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_for_waits_until_the_kind_is_installed() {
    let (_server, maps) = maps().await;
    let client = maps.client().clone();
    let resource = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Web"), "webs", Scope::Namespaced);
    let webs: Api<DynamicObject> = Api::dynamic(client.clone(), resource, maps.target().clone());
    let install = async {
        sleep(Duration::from_secs(10)).await;
        let definition = json!({
            "metadata": {"name": "webs.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        Api::cluster(client).create(&definition).await.unwrap();
        let web = json!({"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "web"}});
        webs.create(&serde_json::from_value(web).unwrap()).await.unwrap();
    };
    let until = Until::exists();
    let (waited, ()) = tokio::join!(wait_for(&webs, "web", &until, MINUTE), install);
    assert!(waited.unwrap().is_some());
}

#[test]
fn until_combines_conditions() {
    let (yes, no) = (Until::<ConfigMap>::absent(), Until::<ConfigMap>::exists());
    assert!(!yes.clone().and(no.clone()).holds(None));
    assert!(yes.clone().or(no.clone()).holds(None));
    assert!(no.negated().holds(None));
    assert!(!yes.holds(Some(&ConfigMap::default())));
}
