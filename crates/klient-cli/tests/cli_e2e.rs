//! `klient why`, `top` and `informers` through the real kube-apiserver: its port-forward, its tokens, its permissions. Skipped where there
//! is none.

#![allow(clippy::unwrap_used)]

#[path = "it/program.rs"]
#[allow(dead_code)]
mod program;

use std::io::Write as _;

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{ConfigMap, Node, Pod, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use klient::{
    Api, Client, Controller, InformerFactory, Manager,
    client::config::{Config, KubeconfigFiles, Overrides},
    controller::{Outcome, Request, Terminal},
    introspection::{KeyState, Snapshot, Stories},
    manager::DebugPage,
    metrics::Registry,
};
use klient_harness::{Kubelet, Programs, Server};
use program::{PATIENCE, outcome};
use serde_json::{Value, json};

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Creates a service account, and returns a token of it.
async fn token(client: &Client, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.create(&of(json!({"metadata": {"name": name}}))).await.unwrap();
    let request: TokenRequest = of(json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": 600}}));
    accounts.create_token(name, &request).await.unwrap().status.unwrap().token.unwrap()
}

/// Creates the pod `manager` on a node of the kubelet, and allows the account `anna` to see the debug page.
async fn set_up(client: &Client, kubelet: &Kubelet) {
    let node = json!({"metadata": {"name": "node"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port()}},
    }});
    Api::<Node>::cluster(client.clone()).create(&of(node)).await.unwrap();
    Api::<ServiceAccount>::namespaced(client.clone(), "default")
        .create(&of(json!({"metadata": {"name": "default"}})))
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pod = json!({"metadata": {"name": "manager"}, "spec": {
        "nodeName": "node", "containers": [{"name": "c", "image": "i"}],
    }});
    pods.create(&of(pod)).await.unwrap();
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.status().patch("manager", klient::Patch::merge(running)).await.unwrap();
    let role = json!({"metadata": {"name": "see-inside"},
        "rules": [{"nonResourceURLs": ["/debug/klient"], "verbs": ["get"]}]});
    Api::<ClusterRole>::cluster(client.clone()).create(&of(role)).await.unwrap();
    let binding = json!({"metadata": {"name": "see-inside"},
        "subjects": [{"kind": "ServiceAccount", "name": "anna", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "see-inside"}});
    Api::<ClusterRoleBinding>::cluster(client.clone()).create(&of(binding)).await.unwrap();
}

/// Returns a controller that fails for one object.
fn controller(client: &Client) -> Controller<ConfigMap> {
    let maps = InformerFactory::new(client.clone()).namespace("default").core_v1().config_maps();
    Controller::builder("maps", maps).registry(Registry::new()).reconcile(|request: Request<ConfigMap>| async move {
        match request.name() {
            "broken" => Err(klient::Error::from(Terminal::new("no quota"))),
            _ => Ok(Outcome::Done),
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_reads_a_manager_through_the_real_server() {
    let (Some(programs), Some(kubelet)) = (Programs::for_tests().unwrap(), Kubelet::start_for_tests().unwrap()) else {
        std::io::stderr()
            .write_all(b"skipped: `klient why` through the real kube-apiserver, since there is none\n")
            .unwrap();
        return;
    };
    let server = Server::start(&programs).unwrap();
    let files = KubeconfigFiles::explicit(server.kubeconfig());
    let config = Config::load(&files, &Overrides::default().context("token")).unwrap();
    let client = Client::from_config(&config).unwrap();
    set_up(&client, &kubelet).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for name in ["menu", "broken"] {
        maps.create(&of(json!({"metadata": {"name": name}}))).await.unwrap();
    }
    let controller = controller(&client);
    let manager = Manager::builder()
        .registry(Registry::new())
        .controller(controller.clone())
        .serve(([127, 0, 0, 1], 0))
        .debug(DebugPage::authorized_by(client.clone()))
        .build()
        .await
        .unwrap();
    let port = manager.address().unwrap().port().to_string();
    let running = tokio::spawn(manager.run_until(std::future::pending()));
    let reconciled = async {
        while controller.status().failed + controller.status().succeeded < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reconciled).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    for name in ["anna", "eve"] {
        std::fs::write(folder.path().join(name), token(&client, name).await).unwrap();
    }
    std::fs::write(folder.path().join("invented"), "invented").unwrap();
    let kubeconfig = server.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let show = async |command: &[&str], token: &str| {
        let reach = ["--kubeconfig", kubeconfig, "--pod", "manager", "--port", &port, "--token-file", token];
        outcome(folder.path(), &[command, &reach].concat()).await
    };

    for (token, refusal) in [("invented", "401: "), ("eve", "403: ")] {
        let (code, output, errors) = show(&["why", "default/broken"], token).await;
        assert_eq!((code, output.as_str()), (Some(1), ""), "{token}: {errors}");
        assert!(errors.contains(refusal), "{token}: {errors}");
    }
    let (code, why, errors) = show(&["why", "default/broken"], "anna").await;
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(why.starts_with("default/broken in maps\n  failed ") && why.contains("no quota"), "{why}");
    let (_, why, errors) = show(&["why", "default/menu", "-o", "json"], "anna").await;
    let stories: Stories = serde_json::from_str(&why).unwrap_or_else(|_| panic!("{why}{errors}"));
    assert!(matches!(stories.stories[0].state, KeyState::Done { .. }), "{why}");
    let (_, top, errors) = show(&["top"], "anna").await;
    assert!(top.contains("1 failures in 1 turns"), "{top}{errors}");
    let (_, informers, errors) = show(&["informers", "-o", "json"], "anna").await;
    let snapshot: Snapshot = serde_json::from_str(&informers).unwrap_or_else(|_| panic!("{informers}{errors}"));
    assert_eq!((snapshot.informers[0].state.as_str(), snapshot.informers[0].objects), ("synced", 2));
    running.abort();
}
