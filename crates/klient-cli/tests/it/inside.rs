//! `klient why`, `top` and `informers`, against a manager on this machine and in a pod.

use std::{net::SocketAddr, path::Path};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use klient::{
    Api, Client, Controller, InformerFactory, Manager,
    controller::{Outcome, Request, Terminal},
    introspection::{Snapshot, Stories, VERSION},
    manager::DebugPage,
    metrics::Registry,
};
use klient_apiserver::{
    ApiServer, User,
    pod_streams::{PodStreams, PortForwardCall},
};
use serde_json::json;
use tokio::{net::TcpStream, task::JoinHandle};

use crate::program::outcome;

/// A manager whose controller fails for one object.
struct Managing {
    address: SocketAddr,
    task: JoinHandle<Result<(), klient::Error>>,
}

impl Drop for Managing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn manage(client: &Client, page: DebugPage) -> Managing {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for name in ["menu", "broken"] {
        maps.create(&serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()).await.unwrap();
    }
    let (reconciled, mut done) = tokio::sync::mpsc::unbounded_channel();
    let informer = InformerFactory::new(client.clone()).namespace("default").core_v1().config_maps();
    let controller = Controller::builder("maps", informer).registry(Registry::new()).reconcile(
        move |request: Request<ConfigMap>| {
            let _ = reconciled.send(());
            async move {
                match request.name() {
                    "broken" => Err(klient::Error::from(Terminal::new("no \x1b[31mquota"))),
                    _ => Ok(Outcome::Done),
                }
            }
        },
    );
    let builder = Manager::builder().registry(Registry::new()).controller(controller.clone());
    let manager = builder.serve(([127, 0, 0, 1], 0)).debug(page).build().await.unwrap();
    let address = manager.address().unwrap();
    let task = tokio::spawn(manager.run_until(std::future::pending()));
    for _ in 0..2 {
        done.recv().await.unwrap();
    }
    while controller.status().failed + controller.status().succeeded < 2 {
        tokio::task::yield_now().await;
    }
    Managing { address, task }
}

async fn run(folder: &Path, arguments: &[&str]) -> String {
    let (code, output, errors) = outcome(folder, arguments).await;
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    output
}

#[tokio::test]
async fn why_top_and_informers_show_a_local_manager() {
    let server = ApiServer::start().await.unwrap();
    let managing = manage(&Client::from_service(server.service()), DebugPage::local()).await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("localhost:{}", managing.address.port());
    let show = async |arguments: &[&str]| run(folder.path(), &[arguments, &["--address", &address]].concat()).await;

    let why = show(&["why", "default/broken"]).await;
    assert!(why.starts_with("default/broken in maps\n  failed "), "{why}");
    assert!(why.contains("is not retried before something changes"), "{why}");
    assert!(why.contains("BECAUSE OF") && why.contains("configmaps default/broken found"), "{why}");
    assert!(why.contains("informer: configmaps synced"), "{why}");
    assert!(!why.contains('\x1b') && why.contains("no  [31mquota"), "{why:?}");
    let stories: Stories = serde_json::from_str(&show(&["why", "default/menu", "-o", "json"]).await).unwrap();
    assert_eq!((stories.version, stories.stories[0].turn_count), (VERSION, 1));
    let unknown = show(&["why", "men"]).await;
    assert!(unknown.contains("Keys that contain this text:\n  default/menu (maps)"), "{unknown}");

    let top = show(&["top"]).await;
    let row = top.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row[..8], ["maps", "running", "0", "0", "0/1", "0", "1", "1"], "{top}");
    assert!(top.contains("1 failures in 1 turns"), "{top}");
    let informers = show(&["informers"]).await;
    assert!(informers.lines().nth(1).unwrap().starts_with("configmaps   synced"), "{informers}");
    let snapshot: Snapshot = serde_json::from_str(&show(&["informers", "-o", "json"]).await).unwrap();
    assert_eq!(snapshot.informers[0].objects, 2);
}

#[tokio::test]
async fn why_reads_a_pod_through_a_port_forward_with_a_token() {
    let (sender, target) = tokio::sync::watch::channel(None::<SocketAddr>);
    let forward = move |mut call: PortForwardCall| {
        let address = *target.borrow();
        async move {
            let mut manager = TcpStream::connect(address.ok_or("no manager")?).await?;
            tokio::io::copy_bidirectional(&mut call.stream, &mut manager).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        }
    };
    let streams = PodStreams::new().port_forward(forward);
    let server = ApiServer::builder().pod_streams(streams).token("secret", User::new("anna")).start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let client = Client::from_service(server.service_as(User::new("root").group("system:masters")));
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pod = json!({"metadata": {"name": "manager"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    pods.create(&serde_json::from_value(pod).unwrap()).await.unwrap();
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.status().patch("manager", klient::Patch::merge(running)).await.unwrap();
    let managing = manage(&client, DebugPage::authorized_by(client.clone())).await;
    sender.send_replace(Some(managing.address));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k"), listening.kubeconfig(None)).unwrap();
    std::fs::write(folder.path().join("token"), "secret\n").unwrap();
    let base = ["why", "default/menu", "--kubeconfig", "k", "--pod", "manager", "--port", "8080"];
    let (code, _, errors) = outcome(folder.path(), &base).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("refused the request with 401: a bearer token is required"), "{errors}");
    let why = run(folder.path(), &[&base[..], &["--token-file", "token"]].concat()).await;
    assert!(why.contains("default/menu in maps\n  reconciled "), "{why}");
}

#[tokio::test]
async fn errors_name_the_address_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens on the port of a socket that is only bound, and no other test gets this port.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let unused = bound.local_addr().unwrap().to_string();
    let (code, _, errors) = outcome(folder.path(), &["top", "--address", &unused]).await;
    assert_eq!(code, Some(1));
    assert!(errors.starts_with(&format!("error: cannot read from {unused}: ")), "{errors}");
    assert!(errors.contains("is a manager with a debug page running there?"), "{errors}");
}
