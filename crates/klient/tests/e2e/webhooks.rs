//! klient's webhook server, called by the real kube-apiserver: by URL and by service, on the loopback.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{
    admissionregistration::v1::MutatingWebhookConfiguration,
    core::v1::{ConfigMap, Service},
};
use klient::{
    Api, BoxError, Client, CustomResource,
    custom::{Spoke, Versions},
    metrics::Registry,
    webhook::{Certificates, Request, Verdict, WebhookServer, Webhooks, default, validate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use crate::cluster::{client, namespace, or_skip};

mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "webhooks.klient.invalid", version = "v1", kind = "Shop", namespaced)]
    pub(crate) struct ShopSpec {
        pub(crate) square_meters: i64,
        pub(crate) color: Option<String>,
    }
}

mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "webhooks.klient.invalid", version = "v1beta1", kind = "Shop", namespaced)]
    pub(crate) struct ShopSpec {
        pub(crate) size: i64,
        pub(crate) color: Option<String>,
    }
}

impl Spoke for v1beta1::Shop {
    type Hub = v1::Shop;

    fn into_hub(self) -> Result<v1::Shop, BoxError> {
        let v1beta1::ShopSpec { size, color } = self.spec;
        Ok(v1::Shop { metadata: self.metadata, spec: v1::ShopSpec { square_meters: size, color } })
    }

    fn from_hub(hub: v1::Shop) -> Result<Self, BoxError> {
        let v1::ShopSpec { square_meters, color } = hub.spec;
        Ok(Self { metadata: hub.metadata, spec: v1beta1::ShopSpec { size: square_meters, color } })
    }
}

/// A replica of a program with webhooks.
struct Replica {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), klient::Error>>,
}

impl Replica {
    /// Starts a replica, and returns when every registration trusts its certificate.
    async fn start(client: &Client, listener: TcpListener, webhooks: Webhooks, certificates: Certificates) -> Self {
        let server = WebhookServer::new(client.clone(), webhooks).listener(listener).certificates(certificates);
        let (ready, (stop, stopped)) = (server.readiness(), oneshot::channel());
        let task = tokio::spawn(server.run_until(async { drop(stopped.await) }));
        eventually("the replica is ready", async || ready().is_ok()).await;
        Self { stop, task }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let outcome = tokio::time::timeout(Duration::from_secs(60), async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    outcome.await.unwrap_or_else(|_| panic!("timed out: {what}"));
}

/// Restricts a webhook to a test's namespace.
fn of_namespace(hook: klient::webhook::Hook, namespace: &str) -> klient::webhook::Hook {
    let labels = [("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())];
    hook.namespaces(k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
        match_labels: Some(labels.into()),
        match_expressions: None,
    })
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v"}})).unwrap()
}

fn colored(map: &mut ConfigMap) {
    map.data.get_or_insert_default().insert("color".to_owned(), "blue".to_owned());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_calls_validate_default_and_convert() {
    let client = or_skip!(client());
    let namespace = namespace(&client, "webhooks-all").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let check =
        async |request: Request<v1::Shop>| match request.object.is_some_and(|shop| shop.spec.square_meters > 100) {
            true => Verdict::deny("too large").code(422),
            false => Verdict::allow().warn("mind the gap"),
        };
    let blue = |shop: &mut v1::Shop| {
        shop.spec.color.get_or_insert_with(|| "blue".to_owned());
    };
    let webhooks = Webhooks::new("webhooks-all.klient.invalid")
        .url(url)
        .registry(Registry::new())
        .convert(Versions::of::<v1::Shop>().and::<v1beta1::Shop>())
        .hook(of_namespace(default::<v1::Shop>(blue), &namespace))
        .hook(of_namespace(validate::<v1::Shop>(check), &namespace));
    let certificates = Certificates::managed(&namespace, "certificates");
    let replica = Replica::start(&client, listener, webhooks, certificates).await;
    let shops: Api<v1::Shop> = Api::namespaced(client.clone(), &namespace);
    let old: Api<v1beta1::Shop> = Api::namespaced(client.clone(), &namespace);
    eventually("the kind is served", async || old.list().await.is_ok()).await;
    // The API server learns about registrations by a watch.
    let small = v1beta1::Shop::new("a", v1beta1::ShopSpec { size: 40, color: None });
    eventually("the default is set", async || {
        let made = old.create(&small).dry_run().await;
        made.is_ok_and(|made| made.spec.color.as_deref() == Some("blue"))
    })
    .await;
    let made = old.create(&small).await.unwrap();
    assert_eq!((made.spec.size, made.spec.color.as_deref()), (40, Some("blue")));
    assert_eq!(shops.get("a").await.unwrap().spec.square_meters, 40);
    assert_eq!(old.list().await.unwrap().items[0].spec.size, 40);
    let large = v1beta1::Shop::new("b", v1beta1::ShopSpec { size: 400, color: None });
    eventually("the validation is called", async || old.create(&large).dry_run().await.is_err()).await;
    let refused = old.create(&large).await.unwrap_err();
    let status = refused.status().unwrap();
    assert_eq!(
        (status.code, status.message.as_str()),
        (422, "admission webhook \"validate.shops.webhooks.klient.invalid\" denied the request: too large")
    );
    replica.stop().await;
}

/// Returns a set that is registered by a service, with the name of its namespace.
///
/// The API server resolves the name of such a service itself, and verifies the certificate of NAME.NAMESPACE.svc.
async fn of_service(client: &Client, namespace: &str, port: u16) -> Webhooks {
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    let service: Service = serde_json::from_value(service).unwrap();
    Api::namespaced(client.clone(), namespace).create(&service).await.unwrap();
    Webhooks::new(format!("{namespace}.klient.invalid")).service(namespace, "hooks").service_port(port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_calls_webhooks_of_a_service() {
    let client = or_skip!(client());
    let namespace = namespace(&client, "webhooks-service").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let webhooks = of_service(&client, &namespace, port)
        .await
        .registry(Registry::new())
        .hook(of_namespace(default::<ConfigMap>(colored), &namespace));
    let certificates = Certificates::managed(&namespace, "certificates");
    let replica = Replica::start(&client, listener, webhooks, certificates).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    eventually("the webhook is called", async || {
        let made = maps.create(&map("m")).dry_run().await.unwrap();
        made.data.is_some_and(|data| data.get("color").is_some_and(|color| color == "blue"))
    })
    .await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_through_renewals_and_stops_of_replicas() {
    let client = or_skip!(client());
    let namespace = namespace(&client, "webhooks-renewal").await;
    let balancer = Balancer::start().await;
    let port = balancer.port;
    // By a service, because the API server calls it as those of clusters are called: by HTTP/1.1, on connections that it keeps.
    let webhooks = of_service(&client, &namespace, port)
        .await
        .registry(Registry::new())
        .hook(of_namespace(default::<ConfigMap>(colored), &namespace));
    // The API server and each replica must see a step within this time, also on a busy machine.
    let (day, settle) = (Duration::from_secs(86_400), Duration::from_secs(5));
    let certificates = |lifetime| Certificates::managed(&namespace, "certificates").lifetime(lifetime).settle(settle);
    let first = balancer.start_replica(&client, webhooks.clone(), certificates(day)).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let is_blue = async |number: usize| {
        let made = maps.create(&map(&format!("m{number}"))).dry_run().await;
        let made = made.unwrap_or_else(|error| panic!("request {number} failed: {:?}", error.status()));
        made.data.is_some_and(|data| data.get("color").is_some_and(|color| color == "blue"))
    };
    eventually("the webhook is called", async || is_blue(0).await).await;
    let before = bundle(&client).await;
    let count = Arc::new(AtomicUsize::new(1));
    let workers: Vec<JoinHandle<()>> = (0..4)
        .map(|_| {
            let (maps, count) = (maps.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                loop {
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    let made = maps.create(&map(&format!("m{number}"))).dry_run().await;
                    let made = made.unwrap_or_else(|error| panic!("request {number} failed: {:?}", error.status()));
                    assert_eq!(made.data.unwrap()["color"], "blue", "request {number} was not reviewed");
                }
            })
        })
        .collect();
    // A replica that wants certificates to live longer renews them at once.
    let second = balancer.start_replica(&client, webhooks.clone(), certificates(day * 10)).await;
    eventually("the renewal is complete", async || {
        let now = bundle(&client).await;
        now != before && now.matches("BEGIN CERTIFICATE").count() == 1
    })
    .await;
    let more = async |what: &str| {
        let from = count.load(Ordering::Relaxed);
        eventually(what, async || count.load(Ordering::Relaxed) > from + 200).await;
        assert!(workers.iter().all(|worker| !worker.is_finished()), "{what}: a request failed");
    };
    more("requests after the renewal").await;
    balancer.remove_first();
    first.stop().await;
    more("requests after one replica stopped").await;
    let third = balancer.start_replica(&client, webhooks.clone(), certificates(day * 10)).await;
    balancer.remove_first();
    second.stop().await;
    more("requests after the other replica stopped").await;
    for worker in workers {
        worker.abort();
    }
    // A killed replica breaks the requests in flight, and those that are sent before the API server sees that its connections
    // are closed. Later requests reach the other replica.
    let fourth = balancer.start_replica(&client, webhooks, certificates(day * 10)).await;
    balancer.remove_first();
    third.task.abort();
    assert!(third.task.await.is_err_and(|error| error.is_cancelled()));
    eventually("100 requests in a row after a replica was killed", async || {
        for number in 0..100 {
            let Ok(made) = maps.create(&map(&format!("m{number}"))).dry_run().await else { return false };
            assert_eq!(
                made.data.unwrap()["color"],
                "blue",
                "request {number} after a replica was killed was not reviewed"
            );
        }
        true
    })
    .await;
    fourth.stop().await;
}

/// The proxy in front of a service: it connects each client to one of the endpoints.
struct Balancer {
    port: u16,
    endpoints: Arc<Mutex<Vec<SocketAddr>>>,
    _task: tokio::task::JoinSet<()>,
}

impl Balancer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoints: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let mut task = tokio::task::JoinSet::new();
        let known = Arc::clone(&endpoints);
        task.spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for turn in 0_usize.. {
                let (mut client, _) = listener.accept().await.unwrap();
                let known = known.lock().unwrap().clone();
                connections.spawn(async move {
                    let Some(endpoint) = known.get(turn % known.len().max(1)) else { return };
                    let Ok(mut server) = TcpStream::connect(endpoint).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { port, endpoints, _task: task }
    }

    /// Starts a replica, and adds it to the endpoints once it is ready.
    async fn start_replica(&self, client: &Client, webhooks: Webhooks, certificates: Certificates) -> Replica {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replica = Replica::start(client, listener, webhooks, certificates).await;
        self.endpoints.lock().unwrap().push(address);
        replica
    }

    /// Removes the oldest endpoint. Its connections stay.
    fn remove_first(&self) {
        self.endpoints.lock().unwrap().remove(0);
    }
}

async fn bundle(client: &Client) -> String {
    let configurations: Api<MutatingWebhookConfiguration> = Api::cluster(client.clone());
    let hooks = configurations.get("webhooks-renewal.klient.invalid").await.unwrap().webhooks.unwrap();
    String::from_utf8(hooks[0].client_config.ca_bundle.clone().unwrap().0).unwrap()
}
