//! Leader election on the real server.

use std::time::Duration;

use klient::{
    Client,
    election::{ElectionOptions, LeaderElector, Leadership, LeaseLock},
    metrics::Registry,
};

use crate::cluster::{config, or_skip};

#[tokio::test]
async fn next_candidate_leads_after_the_leader_is_done() {
    let config = or_skip!(config());
    let client = Client::from_config(&config).unwrap();
    let candidate = |name: &str| {
        let times = ElectionOptions::default()
            .lease_duration(Duration::from_secs(15))
            .renew_deadline(Duration::from_secs(10))
            .retry_period(Duration::from_millis(200))
            .registry(Registry::new());
        LeaderElector::new(LeaseLock::new(client.clone(), "default", "e2e-election"), name, times).unwrap()
    };
    let (anna, berta) = (candidate("anna"), candidate("berta"));
    let work = async |leadership: Leadership| {
        let renewals = tokio::time::timeout(Duration::from_secs(11), leadership.ended()).await;
        assert!(renewals.is_err(), "leadership was renewed past its deadline");
        leadership.token()
    };
    let (first, second) = tokio::join!(anna.run(work), berta.run(work));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_ne!(first, second);
}
