//! Candidates for a Lease of the embedded server.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use klient::{
    Api, Client,
    election::{ElectionOptions, LeaderElector, Leadership, LeaseLock},
    metrics::Registry,
};
use klient_apiserver::{ApiServer, Fault};
use tokio::time::{Instant, sleep, timeout};

use crate::support::embedded::client;

fn candidate(client: &Client, name: &str) -> LeaderElector<LeaseLock> {
    let lock = LeaseLock::new(client.clone(), "default", "web").label("app", "web");
    LeaderElector::new(lock, name, ElectionOptions::default().registry(Registry::new())).unwrap()
}

async fn lease(client: &Client) -> Lease {
    Api::<Lease>::namespaced(client.clone(), "default").get("web").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn candidates_lead_one_after_the_other() {
    let server = ApiServer::start().await.unwrap();
    let client = client(&server);
    let (anna, berta) = (candidate(&client, "anna"), candidate(&client, "berta"));
    let work = async |leadership: Leadership| {
        let began = Instant::now();
        sleep(Duration::from_secs(60)).await;
        assert!(leadership.is_valid());
        (began, Instant::now(), leadership.token())
    };
    let (first, second) = tokio::join!(anna.run(work), berta.run(work));
    let mut terms = [first.unwrap(), second.unwrap()];
    terms.sort();
    assert!(terms[0].1 <= terms[1].0, "terms overlap");
    assert!(terms[1].0 - terms[0].1 <= Duration::from_secs(2), "lease was not released");
    assert!(terms[0].2 < terms[1].2, "tokens do not increase");
    let lease = lease(&client).await;
    assert_eq!(lease.metadata.labels.unwrap()["app"], "web");
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn lease_has_client_go_format() {
    let server = ApiServer::start().await.unwrap();
    let client = client(&server);
    let spec = candidate(&client, "anna").run(async |_| lease(&client).await.spec.unwrap()).await.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("anna"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert!(spec.acquire_time.is_some() && spec.renew_time >= spec.acquire_time);
}

#[tokio::test(start_paused = true)]
async fn leader_survives_short_outage_of_the_server() {
    let server = ApiServer::start().await.unwrap();
    let client = client(&server);
    let kept = candidate(&client, "anna")
        .run(async |leadership: Leadership| {
            server.inject(Fault::conflict().on_method(http::Method::PUT).times(2));
            timeout(Duration::from_secs(60), leadership.ended()).await.is_err()
        })
        .await;
    assert!(kept.unwrap());
}
