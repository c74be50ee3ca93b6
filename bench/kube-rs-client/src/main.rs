//! Uses kube as any program does, against klient's embedded API server.
//!
//! The parent process owns the server. A line `do: WORD` requests a fault from it; the parent responds with a line
//! when the fault is in effect.

mod controllers;
mod watchers;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    let version = client.apiserver_version().await?;
    ensure!(version.major == "1", "Kubernetes {version:?}");
    // The checks take seconds.
    tokio::time::timeout(Duration::from_secs(300), async {
        watchers::check(&client).await.context("watchers")?;
        controllers::check(&client).await.context("controllers")
    })
    .await??;
    println!("all is well");
    Ok(())
}

/// Requests a fault from the parent process, and waits until it is in effect.
fn ask(word: &str) -> Result<()> {
    println!("do: {word}");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    ensure!(answer == "done\n", "the owner says {answer:?}");
    Ok(())
}

/// Creates an object with a label.
async fn make(maps: &Api<ConfigMap>, name: &str) -> Result<ConfigMap> {
    let map = serde_json::from_value(json!({"metadata": {"name": name, "labels": {"of": "kube"}}}))?;
    Ok(maps.create(&PostParams::default(), &map).await?)
}

/// Polls until a condition holds, for at most 90 seconds: kube waits longer after each watch that ends.
async fn eventually<T>(what: &str, mut so: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..9000 {
        if let Some(found) = so().await? {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("timed out waiting for {what}")
}
