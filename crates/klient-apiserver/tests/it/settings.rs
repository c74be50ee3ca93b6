//! Settings: clock, UIDs, revisions, bookmarks and history.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Pod, Service, ServiceAccount},
    flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration},
};
use klient::{Api, Client, WatchEvent, object::ResourceVersion};
use klient_apiserver::{ApiServer, ManualClock};
use serde_json::json;
use tokio::time::Instant;

use crate::server::client;

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn now(server: &ApiServer) -> ResourceVersion {
    ResourceVersion::from(server.revision().to_string())
}

#[tokio::test]
async fn timestamps_use_configured_clock() {
    let clock = Arc::new(ManualClock::new("2030-01-02T03:04:05Z".parse().unwrap()));
    let server = ApiServer::builder().clock(Arc::clone(&clock)).start().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client(&server), "default");
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "i"}]}}))
    .unwrap();
    let time = |time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.to_string();
    let made = pods.create(&pod).await.unwrap();
    assert_eq!(time(made.metadata.creation_timestamp.unwrap()), "2030-01-02T03:04:05Z");
    clock.advance(SignedDuration::from_hours(24));
    pods.delete("p").await.unwrap();
    let deleted = pods.get("p").await.unwrap();
    // A pod has a grace period of thirty seconds.
    assert_eq!(time(deleted.metadata.deletion_timestamp.unwrap()), "2030-01-03T03:04:35Z");
    clock.advance(SignedDuration::MAX);
    clock.advance(SignedDuration::from_hours(-48));
    let namespaces: Api<Namespace> = Api::cluster(client(&server));
    let born = namespaces.get("default").await.unwrap().metadata.creation_timestamp;
    assert_eq!(born.unwrap().0, "2030-01-02T03:04:05Z".parse::<Timestamp>().unwrap());
}

#[tokio::test]
async fn shortened_grace_period_counts_from_the_first_delete() {
    let clock = Arc::new(ManualClock::new("2030-01-02T03:04:00Z".parse().unwrap()));
    let server = ApiServer::builder().clock(Arc::clone(&clock)).start().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client(&server), "default");
    let pod =
        json!({"metadata": {"name": "web"}, "spec": {"nodeName": "a", "containers": [{"name": "main", "image": "a"}]}});
    pods.create(&serde_json::from_value(pod).unwrap()).await.unwrap();
    let deletion = async |grace: u64| {
        pods.delete("web").grace_period(Duration::from_secs(grace)).await.unwrap();
        let metadata = pods.get("web").await.unwrap().metadata;
        (metadata.deletion_timestamp.unwrap().0.to_string(), metadata.deletion_grace_period_seconds.unwrap())
    };
    assert_eq!(deletion(30).await, ("2030-01-02T03:04:30Z".to_owned(), 30));
    clock.advance(SignedDuration::from_secs(5));
    assert_eq!(deletion(20).await, ("2030-01-02T03:04:20Z".to_owned(), 20));
    // It cannot become longer.
    assert_eq!(deletion(25).await, ("2030-01-02T03:04:20Z".to_owned(), 20));
    // These three seconds are over, so that one is left.
    assert_eq!(deletion(3).await, ("2030-01-02T03:04:05Z".to_owned(), 1));
}

#[tokio::test]
async fn namespaces_have_account_and_authority_if_requested() {
    let server = ApiServer::builder().namespace_objects().start().await.unwrap();
    let namespaces: Api<Namespace> = Api::cluster(client(&server));
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&namespace).await.unwrap();
    for name in ["default", "kube-system", "shop"] {
        let accounts: Api<ServiceAccount> = Api::namespaced(client(&server), name);
        accounts.get("default").await.unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client(&server), name);
        assert_eq!(maps.get("kube-root-ca.crt").await.unwrap().data.unwrap()["ca.crt"], "", "{name}");
    }
    // A socket has an authority, which old and new namespaces show.
    let listening = server.listen(0).await.unwrap();
    let later: Namespace = serde_json::from_value(json!({"metadata": {"name": "later"}})).unwrap();
    namespaces.create(&later).await.unwrap();
    for name in ["shop", "later"] {
        let maps: Api<ConfigMap> = Api::namespaced(client(&server), name);
        let authority = maps.get("kube-root-ca.crt").await.unwrap().data.unwrap()["ca.crt"].clone();
        assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"), "{name}: {authority}");
    }
    drop(listening);
    let plain = ApiServer::start().await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client(&plain), "default");
    assert!(accounts.get("default").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn uids_and_revisions_can_be_set() {
    let next = AtomicU64::new(0);
    let uids = move || format!("uid-{}", next.fetch_add(1, Ordering::Relaxed));
    let server = ApiServer::builder().empty().uids(uids).revision(1000).start().await.unwrap();
    // The four namespaces that every cluster has.
    assert_eq!(server.revision(), 1004);
    let made = maps(&client(&server)).create(&map("a")).await.unwrap();
    assert_eq!(made.metadata.uid.as_deref(), Some("uid-4"));
    assert_eq!(made.metadata.resource_version.as_deref(), Some("1005"));
}

#[tokio::test]
async fn default_uids_are_unique_version_4_uuids() {
    let server = ApiServer::start().await.unwrap();
    let maps = maps(&client(&server));
    let mut seen = std::collections::HashSet::new();
    for n in 0..100 {
        let uid = maps.create(&map(&format!("m{n}"))).await.unwrap().metadata.uid.unwrap();
        let bytes = uid.as_bytes();
        assert!(uid.len() == 36 && bytes[14] == b'4' && b"89ab".contains(&bytes[19]), "{uid}");
        assert!(seen.insert(uid));
    }
}

#[tokio::test]
async fn configured_revision_does_not_rewind_folder() {
    let folder = tempfile::tempdir().unwrap();
    let builder = || ApiServer::builder().empty().folder(folder.path());
    let first = builder().revision(500).start().await.unwrap().revision();
    assert_eq!(first, 504);
    assert_eq!(builder().revision(3).start().await.unwrap().revision(), first);
    assert_eq!(builder().revision(9000).start().await.unwrap().revision(), 9000);
}

#[tokio::test]
async fn revisions_do_not_repeat_after_restart_in_memory() {
    let mut last = 0;
    for _ in 0..3 {
        // A fixed clock must not make two servers start at the same revision.
        let clock = ManualClock::new("2030-01-02T03:04:05Z".parse().unwrap());
        let server = ApiServer::builder().clock(clock).start().await.unwrap();
        let made = maps(&client(&server)).create(&map("a")).await.unwrap();
        let first: u64 = made.metadata.resource_version.unwrap().parse().unwrap();
        assert!(first > last, "{first} after {last}");
        assert!(i64::try_from(first).is_ok_and(|first| first < i64::MAX / 2));
        last = server.revision();
    }
}

#[tokio::test]
async fn watch_expires_if_its_version_is_from_before_a_restart() {
    let before = ApiServer::start().await.unwrap();
    maps(&client(&before)).create(&map("a")).await.unwrap();
    let version = now(&before);
    drop(before);
    let after = ApiServer::start().await.unwrap();
    let mut watch = maps(&client(&after)).watch().after(version).await.unwrap();
    let first = tokio::time::timeout(Duration::from_secs(10), watch.next()).await.expect("the watch is still open");
    assert!(matches!(first, Some(Ok(WatchEvent::Error(status))) if status.is_expired()));
}

#[tokio::test]
async fn revisions_of_a_folder_continue_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let builder = || ApiServer::builder().folder(folder.path());
    let first = builder().start().await.unwrap().revision();
    assert!(first > 1_000_000_000, "a new folder starts like a server in memory: {first}");
    assert_eq!(builder().start().await.unwrap().revision(), first);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_follow_interval_and_only_on_request() {
    for (every, server) in [
        (60, ApiServer::start().await.unwrap()),
        (3, ApiServer::builder().bookmark_every(Duration::from_secs(3)).start().await.unwrap()),
    ] {
        let maps = maps(&client(&server));
        let start = Instant::now();
        let mut watch = maps.watch().after(now(&server)).bookmarks().await.unwrap();
        let mut silent = maps.watch().after(now(&server)).await.unwrap();
        maps.create(&map("a")).await.unwrap();
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
        let Some(Ok(WatchEvent::Bookmark(bookmark))) = watch.next().await else { panic!("no bookmark") };
        assert_eq!(bookmark.resource_version, now(&server));
        assert_eq!(start.elapsed().as_secs(), every);
        assert!(matches!(silent.next().await, Some(Ok(WatchEvent::Added(_)))));
        assert!(silent.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn watch_ends_after_requested_or_default_timeout() {
    let server = ApiServer::start().await.unwrap();
    let maps = maps(&client(&server));
    for (asked, expected) in [(Some(7), 7..=7), (None, 1800..=3600)] {
        let start = Instant::now();
        let request = maps.client().rest().get().path("/api/v1/namespaces/default/configmaps");
        let request = request.param("watch", true).param("resourceVersion", server.revision());
        let request = match asked {
            Some(seconds) => request.param("timeoutSeconds", seconds),
            None => request,
        };
        let mut watch = request.watch::<ConfigMap>().await.unwrap();
        assert!(watch.next().await.is_none());
        let lasted = start.elapsed().as_secs();
        assert!(expected.contains(&lasted), "{lasted}");
    }
}

#[tokio::test]
async fn history_has_configured_length() {
    let server = ApiServer::builder().history(2).start().await.unwrap();
    let maps = maps(&client(&server));
    let mut versions = vec![now(&server)];
    for name in ["a", "b", "c"] {
        maps.create(&map(name)).await.unwrap();
        versions.push(now(&server));
    }
    let mut old = maps.watch().after(versions[0].clone()).await.unwrap();
    assert!(matches!(old.next().await, Some(Ok(WatchEvent::Error(status))) if status.is_expired()));
    let mut known = maps.watch().after(versions[1].clone()).await.unwrap();
    assert!(matches!(known.next().await, Some(Ok(WatchEvent::Added(_)))));
    assert_eq!(maps.list().await.unwrap().items.len(), 3);
}

#[tokio::test]
async fn own_objects_of_server_exist_again_after_delete() {
    let client = client(&ApiServer::start().await.unwrap());
    let schemas: Api<FlowSchema> = Api::cluster(client.clone());
    let before = schemas.get("exempt").await.unwrap();
    schemas.delete("exempt").await.unwrap();
    let after = schemas.get("exempt").await.unwrap();
    assert_eq!(after.spec, before.spec);
    assert_ne!(after.metadata.uid, before.metadata.uid);
    let levels: Api<PriorityLevelConfiguration> = Api::cluster(client.clone());
    levels.delete("catch-all").await.unwrap();
    levels.get("catch-all").await.unwrap();
    let own: PriorityLevelConfiguration = serde_json::from_value(json!({"metadata": {"name": "own"},
        "spec": {"type": "Exempt"}}))
    .unwrap();
    levels.create(&own).await.unwrap();
    levels.delete("own").await.unwrap();
    assert!(levels.get("own").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn empty_server_restores_nothing() {
    let client = client(&ApiServer::builder().empty().start().await.unwrap());
    let services: Api<Service> = Api::namespaced(client, "default");
    let own = json!({"metadata": {"name": "kubernetes"}, "spec": {"ports": [{"port": 443}]}});
    services.create(&serde_json::from_value(own).unwrap()).await.unwrap();
    services.delete("kubernetes").await.unwrap();
    assert!(services.get("kubernetes").await.unwrap_err().is_not_found());
}
