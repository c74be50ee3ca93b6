//! Acknowledged writes survive a crash, and revisions never decrease.
//!
//! The server that crashes is this test binary, started again with a folder in its environment.

use std::{
    collections::BTreeMap,
    error::Error as _,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Patch,
    client::config::{Config, Kubeconfig, Overrides},
    object::DynamicObject,
    options::{DeleteOptions, PropagationPolicy},
    request::Target,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use klient_apiserver::ApiServer;
use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use crate::server::client;

const FOLDER: &str = "KLIENT_TEST_DURABLE_FOLDER";

/// Runs the server of the other tests in a child process. Does nothing in the parent.
#[tokio::test]
async fn child_process_serves_folder_until_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let server = ApiServer::builder().folder(Path::new(&folder).join("data")).start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let path = Path::new(&folder).join("kubeconfig");
    listening.write_kubeconfig(path.with_extension("new"), None).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
    std::future::pending::<()>().await;
}

/// A server in a child process.
struct Process {
    child: Child,
    client: Client,
}

impl Process {
    async fn start(folder: &Path) -> Self {
        let path = folder.join("kubeconfig");
        let _ = fs::remove_file(&path);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durable::child_process_serves_folder_until_killed"])
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let patience = Instant::now() + PATIENCE;
        while !path.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the server has ended");
            assert!(Instant::now() < patience, "the server does not start");
            sleep(Duration::from_millis(2)).await;
        }
        let kubeconfig = Kubeconfig::from_file(&path).unwrap();
        let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap().no_proxy();
        Self { child, client: Client::from_config(&config).unwrap() }
    }

    /// Kills the server, as a crash or a power failure does.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The acknowledged writes of one writer: version and count of each object, or `None` if it was deleted.
#[derive(Default)]
struct Told {
    objects: BTreeMap<String, Option<(u64, u64)>>,
    /// The unacknowledged last write, which may be done or not.
    unknown: Option<String>,
    revision: u64,
}

fn version(object: &ConfigMap) -> u64 {
    object.metadata.resource_version.as_ref().unwrap().parse().unwrap()
}

/// Creates, updates and deletes its own objects until the server stops responding.
async fn write(client: Client, writer: usize, round: usize, acknowledged: Arc<Semaphore>) -> Told {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut told = Told::default();
    for n in 0u64.. {
        let name = format!("m-{round}-{writer}-{}", n / 4);
        told.unknown = Some(name.clone());
        let answer = match n % 4 {
            0 => {
                let object = json!({"metadata": {"name": name}, "data": {"n": n.to_string()}});
                maps.create(&serde_json::from_value(object).unwrap()).await.map(Some)
            }
            3 if n % 8 == 7 => maps.delete(&name).await.map(|_| None),
            _ => {
                let patch = Patch::merge(json!({"data": {"n": n.to_string()}}));
                maps.patch(&name, patch.clone()).await.map(Some)
            }
        };
        let Ok(answer) = answer else { return told };
        acknowledged.add_permits(1);
        told.unknown = None;
        if let Some(object) = &answer {
            assert!(version(object) > told.revision, "revisions go back");
            told.revision = version(object);
        }
        told.objects.insert(name, answer.map(|object| (version(&object), n)));
    }
    told
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected: BTreeMap<String, Option<(u64, u64)>> = BTreeMap::new();
    let mut newest = 0;
    let mut server = Process::start(folder.path()).await;
    for round in 0..10 {
        let acknowledged = Arc::new(Semaphore::new(0));
        let write = |n| tokio::spawn(write(server.client.clone(), n, round, Arc::clone(&acknowledged)));
        let writers: Vec<_> = (0..4).map(write).collect();
        timeout(PATIENCE, acknowledged.acquire_many(4)).await.expect("it writes").unwrap().forget();
        // The sleep waits for nothing: it makes the moment of the crash random.
        sleep(Duration::from_millis(20 + 37 * round as u64 % 100)).await;
        server.kill();
        let mut unknown = Vec::new();
        for writer in writers {
            let told = writer.await.unwrap();
            newest = newest.max(told.revision);
            expected.extend(told.objects);
            unknown.extend(told.unknown);
        }
        server = Process::start(folder.path()).await;
        let maps: Api<ConfigMap> = Api::namespaced(server.client.clone(), "default");
        let list = maps.list().await.unwrap();
        let now: u64 = list.resource_version().as_str().parse().unwrap();
        assert!(now >= newest, "the revision went from {newest} to {now}");
        newest = now;
        let found: BTreeMap<String, (u64, u64)> = list
            .items
            .iter()
            .map(|object| {
                let count = object.data.as_ref().unwrap()["n"].parse().unwrap();
                (object.metadata.name.clone().unwrap(), (version(object), count))
            })
            .collect();
        for name in unknown {
            // The last write may be done or not. The model continues with what is found.
            if let (Some(Some((old, _))), Some((new, _))) = (expected.get(&name), found.get(&name)) {
                assert!(new >= old, "{name} went from {old} to {new}");
            }
            expected.insert(name.clone(), found.get(&name).copied());
        }
        let expected: BTreeMap<_, _> =
            expected.iter().filter_map(|(name, state)| Some((name.clone(), (*state)?))).collect();
        assert_eq!(found, expected, "in round {round}");
    }
    assert!(expected.len() >= 10, "something is written in each round");
}

#[tokio::test]
async fn custom_kinds_and_owners_survive_restart() {
    let folder = tempfile::tempdir().unwrap();
    let definitions = ApiResource::new(
        GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
        Scope::Cluster,
    );
    let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
    let before = {
        let server = ApiServer::builder().folder(folder.path()).start().await.unwrap();
        let client = client(&server);
        let definition: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}))
        .unwrap();
        let api = Api::<DynamicObject>::dynamic(client.clone(), definitions, Target::Cluster);
        api.create(&definition).await.unwrap();
        let api = Api::dynamic(client.clone(), widgets.clone(), Target::Namespace("default".to_owned()));
        let widget: DynamicObject = serde_json::from_value(
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
        )
        .unwrap();
        let owner = api.create(&widget).await.unwrap();
        let owned = json!({"metadata": {"name": "owned", "ownerReferences": [{"apiVersion": "example.com/v1",
            "kind": "Widget", "name": "w", "uid": owner.metadata.uid}]}});
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        maps.create(&serde_json::from_value(owned).unwrap()).await.unwrap();
        server.revision()
    };
    let server = ApiServer::builder().folder(folder.path()).start().await.unwrap();
    assert_eq!(server.revision(), before);
    let client = client(&server);
    let api = Api::<DynamicObject>::dynamic(client.clone(), widgets, Target::Namespace("default".to_owned()));
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    api.get("w").await.unwrap();
    let mut watch = maps.watch().await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(klient::WatchEvent::Added(_)))));
    let background = DeleteOptions::default().propagation_policy(PropagationPolicy::Background);
    api.delete("w").options(background).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(klient::WatchEvent::Deleted(_)))));
}

#[tokio::test]
async fn start_fails_if_folder_is_in_use_or_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let start = |folder: &Path| ApiServer::builder().folder(folder).start();
    let fails = async |folder: &Path| {
        let error = start(folder).await.unwrap_err();
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains(folder.to_str().unwrap()), "{cause}");
        cause
    };
    let server = start(folder.path()).await.unwrap();
    assert!(fails(folder.path()).await.contains("already open"));
    drop(server);
    start(folder.path()).await.unwrap();

    fs::write(folder.path().join("objects.redb"), "these are no objects").unwrap();
    fails(folder.path()).await;
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    fails(&file).await;
}

#[tokio::test]
async fn damaged_folder_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.redb");
    {
        let server = ApiServer::builder().folder(folder.path()).start().await.unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client(&server), "default");
        for n in 0..20 {
            let object = json!({"metadata": {"name": format!("m{n}")}, "data": {"k": "v".repeat(2000)}});
            maps.create(&serde_json::from_value(object).unwrap()).await.unwrap();
        }
    }
    let whole = fs::read(&path).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for n in 0..40 {
        let mut damaged = whole.clone();
        let at = used * n / 40;
        if n % 2 == 0 {
            damaged.truncate(at);
        } else {
            damaged[at..(at + 600).min(whole.len())].fill(0xa5);
        }
        fs::write(&path, damaged).unwrap();
        match ApiServer::builder().folder(folder.path()).start().await {
            Err(error) => assert!(error.source().unwrap().to_string().contains(folder.path().to_str().unwrap())),
            // The damage hit unused bytes.
            Ok(server) => {
                let maps: Api<ConfigMap> = Api::namespaced(client(&server), "default");
                let found = maps.list().await.unwrap().items;
                assert!(
                    at == 0
                        || found.len() == 20 && found.iter().all(|map| map.data.as_ref().unwrap()["k"].len() == 2000),
                    "{n}"
                );
            }
        }
    }
}

/// Longer than any step takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn folder_and_database_are_readable_by_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    for _ in 0..2 {
        drop(ApiServer::builder().folder(&folder).start().await.unwrap());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("objects.redb")), 0o600);
        // An older version left it readable.
        fs::set_permissions(folder.join("objects.redb"), fs::Permissions::from_mode(0o644)).unwrap();
    }
}
