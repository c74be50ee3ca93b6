//! client-go's `examples/leader-election`: candidates for one lease; one leads, the others wait for their turn.
//!
//! Runs on the embedded server: two candidates; the first one steps down, and the second one takes over.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use klient::{
    Client,
    election::{ElectionOptions, LeaderElector, Leadership, LeaseLock},
};
use klient_apiserver::ApiServer;
use tokio::sync::oneshot;

fn candidate(client: &Client, identity: &str) -> klient::Result<LeaderElector<LeaseLock>> {
    let options = ElectionOptions::default()
        .lease_duration(Duration::from_secs(60))
        .renew_deadline(Duration::from_secs(15))
        .retry_period(Duration::from_millis(200));
    LeaderElector::new(LeaseLock::new(client.clone(), "default", "example"), identity, options)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let (first, second) = (candidate(&client, "first")?, candidate(&client, "second")?);

    // Everyone can see who leads.
    let mut changes = second.leader_changes();
    let seen_second = async move {
        while let Some(leader) = changes.next().await {
            println!("leader: {}", leader.as_deref().unwrap_or("none"));
            if leader.as_deref() == Some("second") {
                break;
            }
        }
    };

    let (stop_first, stopped) = oneshot::channel::<()>();
    let leading = first.run_until(
        async {
            let _ = stopped.await; // a sender that was dropped stops it as well
        },
        |leadership: Leadership| async move {
            println!("first leads with {:?}", leadership.token());
            leadership.ended().await;
        },
    );
    let taking_over = async {
        while first.leader().as_deref() != Some("first") {
            tokio::task::yield_now().await;
        }
        let next = second.run(|leadership: Leadership| async move {
            println!("second leads with {:?}", leadership.token());
            seen_second.await;
        });
        let _ = stop_first.send(());
        next.await
    };
    let (led, took_over) = tokio::join!(leading, taking_over);
    led?;
    took_over?;
    Ok(())
}
