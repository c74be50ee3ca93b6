//! Controllers over several clusters, each an embedded server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        core::v1::{ConfigMap, Secret, ServiceAccount},
    },
    jiff::{SignedDuration, Timestamp},
};
use klient::{
    Api, Client, Controller, Manager, Patch,
    cluster::{Cluster, ClusterSet, ClusterState, ClusterStatus, Fleet},
    controller::{Outcome, Request},
    metrics::Registry,
};
use klient_apiserver::{ApiServer, Fault, ManualClock};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use crate::support::embedded;

type Seen = Arc<Mutex<BTreeSet<String>>>;

/// A running fleet whose controllers record the cluster, key and data of each object.
struct Running {
    fleet: Fleet,
    seen: Seen,
    changes: mpsc::UnboundedReceiver<()>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(clusters: &ClusterSet) -> Self {
        let (seen, (sender, changes)) = (Seen::default(), mpsc::unbounded_channel());
        let record = Arc::clone(&seen);
        let fleet = Fleet::builder("maps", clusters)
            .controller(move |cluster: &Cluster| {
                let (record, sender, expected) = (Arc::clone(&record), sender.clone(), cluster.name().to_owned());
                let maps = Api::<ConfigMap>::namespaced(cluster.client(), "default");
                Controller::builder("maps", maps).registry(Registry::new()).cluster(cluster.name()).reconcile(
                    move |request: Request<ConfigMap>| {
                        assert_eq!(request.cluster(), expected);
                        let origin = request.object().unwrap().and_then(|map| map.data.clone());
                        let origin = origin.and_then(|data| data.get("origin").cloned()).unwrap_or_default();
                        record.lock().unwrap().insert(format!("{}/{}={origin}", request.cluster(), request.name()));
                        let _ = sender.send(());
                        async { Ok::<_, klient::Error>(Outcome::Done) }
                    },
                )
            })
            .build();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn({
            let fleet = fleet.clone();
            async move { fleet.run_until(async { drop(stopped.await) }).await }
        });
        Self { fleet, seen, changes, stop: Some(stop), task }
    }

    /// Waits until an object of a cluster was reconciled.
    async fn sees(&mut self, expected: &str) {
        let waiting = async {
            while !self.seen.lock().unwrap().contains(expected) {
                self.changes.recv().await.unwrap();
            }
        };
        let waited = timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "{expected} is not among {:?}, {:?}", self.seen.lock().unwrap(), self.fleet.status());
    }

    async fn wait(&self, holds: impl Fn(&BTreeMap<String, ClusterStatus>) -> bool) {
        let waited = timeout(Duration::from_secs(60), self.fleet.wait_until(holds)).await;
        assert!(waited.is_ok(), "{:?}", self.fleet.status());
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }
}

async fn create(client: &Client, name: &str, origin: &str) {
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"origin": origin}})).unwrap();
    Api::<ConfigMap>::namespaced(client.clone(), "default").create(&map).await.unwrap();
}

async fn servers(names: &[&str]) -> Vec<(ApiServer, Cluster)> {
    let mut servers = Vec::new();
    for name in names {
        let server = ApiServer::start().await.unwrap();
        let cluster = Cluster::new(*name, embedded::client(&server));
        servers.push((server, cluster));
    }
    servers
}

#[tokio::test(start_paused = true)]
async fn fleet_of_50_clusters_mixes_no_events() {
    let names: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
    let servers = servers(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let clusters = ClusterSet::of(servers.iter().map(|(_, cluster)| cluster.clone())).unwrap();
    for (_, cluster) in &servers {
        create(&cluster.client(), "same", cluster.name()).await;
    }
    let mut running = Running::start(&clusters);
    for name in &names {
        running.sees(&format!("{name}/same={name}")).await;
    }
    running.wait(|status| status.values().all(|cluster| cluster.state == ClusterState::Synced)).await;
    // A change in one cluster is reconciled for that cluster only.
    create(&servers[7].1.client(), "new", "c7").await;
    running.sees("c7/new=c7").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(running.seen.lock().unwrap().len(), 51);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failing_cluster_harms_no_other_and_shows_in_health() {
    let servers = servers(&["east", "west"]).await;
    let clusters = ClusterSet::of(servers.iter().map(|(_, cluster)| cluster.clone())).unwrap();
    servers[1].0.inject(Fault::internal_error());
    let mut running = Running::start(&clusters);
    create(&servers[0].1.client(), "a", "east").await;
    running.sees("east/a=east").await;
    running.wait(|status| status["west"].state == ClusterState::Failing).await;
    assert!(running.fleet.status()["west"].problem.as_ref().unwrap().starts_with("configmaps: "));
    assert_eq!(running.fleet.status()["east"].state, ClusterState::Synced);
    let fleet = running.fleet.clone();
    let manager = Manager::builder().registry(Registry::new()).fleet(&fleet).build().await.unwrap();
    assert!(format!("{manager:?}").contains("fleet-maps"));
    servers[1].0.clear_faults();
    create(&servers[1].1.client(), "b", "west").await;
    running.sees("west/b=west").await;
    running.wait(|status| status["west"].state == ClusterState::Synced).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn clusters_come_and_go_while_the_fleet_runs() {
    let servers = servers(&["east", "west"]).await;
    let clusters = ClusterSet::of([servers[0].1.clone()]).unwrap();
    let mut running = Running::start(&clusters);
    running.wait(|status| status.len() == 1 && status["east"].state == ClusterState::Synced).await;
    clusters.set(servers.iter().map(|(_, cluster)| cluster.clone())).unwrap();
    create(&servers[1].1.client(), "a", "west").await;
    running.sees("west/a=west").await;
    clusters.set([servers[1].1.clone()]).unwrap();
    running.wait(|status| status.keys().map(String::as_str).collect::<Vec<_>>() == ["west"]).await;
    create(&servers[0].1.client(), "late", "east").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!running.seen.lock().unwrap().contains("east/late=east"));
    let twice = [servers[0].1.clone(), Cluster::new("east", servers[1].1.client())];
    let error = clusters.set(twice).unwrap_err();
    assert_eq!(error.to_string(), "two clusters are named \"east\": use different names");
    assert_eq!(clusters.names(), ["west"]);
    running.stop().await;
}

fn kubeconfig(server: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: '{server}'}}}}], users: [{{name: u, user: {{}}}}]}}"
    )
}

#[tokio::test]
async fn secrets_with_kubeconfigs_are_clusters() {
    let hub = ApiServer::start().await.unwrap();
    let hub_client = embedded::client(&hub);
    let (first, second) = (ApiServer::start().await.unwrap(), ApiServer::start().await.unwrap());
    let mut serving = Vec::new();
    for server in [&first, &second] {
        serving.push(server.listen(0).await.unwrap());
    }
    let secrets: Api<Secret> = Api::namespaced(hub_client.clone(), "default");
    let secret = |name: &str, text: String| -> Secret {
        let secret = json!({"metadata": {"name": name, "labels": {"cluster": "true"}}, "stringData": {"value": text}});
        serde_json::from_value(secret).unwrap()
    };
    secrets.create(&secret("east", serving[0].kubeconfig(None))).await.unwrap();
    secrets.create(&secret("broken", "not: a: kubeconfig".to_owned())).await.unwrap();
    create(&embedded::client(&first), "a", "first").await;
    create(&embedded::client(&second), "a", "second").await;
    let mut running = Running::start(&ClusterSet::secrets(hub_client, "default", "cluster=true"));
    running.sees("east/a=first").await;
    running.wait(|status| status.get("broken").is_some_and(|cluster| cluster.state == ClusterState::Failing)).await;
    // The kubeconfig changes: the cluster is another one from then on.
    let text = serving[1].kubeconfig(None);
    secrets.patch("east", Patch::merge(json!({"stringData": {"value": text}}))).await.unwrap();
    running.sees("east/a=second").await;
    secrets.delete("broken").await.unwrap();
    running.wait(|status| status.len() == 1).await;
    running.stop().await;
}

#[tokio::test]
async fn files_with_kubeconfigs_are_clusters() {
    let server = ApiServer::start().await.unwrap();
    let serving = server.listen(0).await.unwrap();
    create(&embedded::client(&server), "a", "east").await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("east.yaml", &serving.kubeconfig(None));
    write("east.yml", &kubeconfig("https://127.0.0.1:1"));
    write(".hidden", "");
    let plugin = "user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}}";
    write("plugin.yaml", &kubeconfig(&serving.url()).replace("user: {}", plugin));
    let mut running = Running::start(&ClusterSet::directory(folder.path()));
    running.sees("east/a=east").await;
    running.wait(|status| status["plugin"].state == ClusterState::Failing).await;
    let status = running.fleet.status();
    assert_eq!(status.keys().collect::<Vec<_>>(), ["east", "east.yml", "plugin"]);
    let expected = "another file has the cluster \"east\": rename one of them";
    assert_eq!(status["east.yml"].problem.as_deref(), Some(expected));
    running.stop().await;
}

/// Returns a token of a server for ten minutes.
async fn short_token(server: &ApiServer) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(embedded::client(server), "default");
    let account = serde_json::from_value(json!({"metadata": {"name": "fleet"}})).unwrap();
    // The account exists from the second token on.
    let _ = accounts.create(&account).await;
    let request: TokenRequest =
        serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 600}})).unwrap();
    accounts.create_token("fleet", &request).await.unwrap().status.unwrap().token.unwrap()
}

#[tokio::test]
async fn cluster_with_an_expired_token_fails_until_it_is_replaced() {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    let member = ApiServer::builder().clock(Arc::clone(&clock)).start().await.unwrap();
    let (hub, other) = (ApiServer::start().await.unwrap(), ApiServer::start().await.unwrap());
    let (serving, other_serving) = (member.listen(0).await.unwrap(), other.listen(0).await.unwrap());
    let secrets: Api<Secret> = Api::namespaced(embedded::client(&hub), "default");
    let expiring = serving.kubeconfig(Some(&short_token(&member).await));
    for (name, text) in [("expiring", expiring), ("other", other_serving.kubeconfig(None))] {
        let secret = json!({"metadata": {"name": name, "labels": {"cluster": "true"}}, "stringData": {"value": text}});
        secrets.create(&serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    let mut running = Running::start(&ClusterSet::secrets(embedded::client(&hub), "default", "cluster=true"));
    create(&embedded::client(&member), "a", "member").await;
    running.sees("expiring/a=member").await;

    clock.advance(SignedDuration::from_secs(3600));
    // A watch lasts longer than its token. The next one is refused.
    member.end_watches();
    running.wait(|status| status["expiring"].state == ClusterState::Failing).await;
    let problem = running.fleet.status()["expiring"].problem.clone().unwrap();
    assert_eq!(problem, "configmaps: Unauthorized");
    create(&embedded::client(&member), "late", "member").await;
    create(&embedded::client(&other), "b", "other").await;
    running.sees("other/b=other").await;
    assert_eq!(running.fleet.status()["other"].state, ClusterState::Synced);
    assert_eq!(running.fleet.status()["expiring"].state, ClusterState::Failing);
    assert!(!running.seen.lock().unwrap().contains("expiring/late=member"));

    let text = serving.kubeconfig(Some(&short_token(&member).await));
    secrets.patch("expiring", Patch::merge(json!({"stringData": {"value": text}}))).await.unwrap();
    running.sees("expiring/late=member").await;
    running.wait(|status| status.values().all(|cluster| cluster.state == ClusterState::Synced)).await;
    running.stop().await;
}
