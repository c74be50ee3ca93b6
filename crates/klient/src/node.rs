//! Maintenance of nodes, by kubectl's rules: [`cordon`], [`uncordon`] and [`Drain`].

mod drain;
mod filter;
mod step;

use k8s_openapi::api::core::v1::Node;
use klient_core::Patch;
use serde_json::json;

pub use self::{
    drain::{Drain, Drained},
    filter::{Left, Refusal},
    step::DrainStep,
};
use crate::{Api, Client, Error};

/// Marks a node as unschedulable. Returns whether it was schedulable before.
///
/// ```no_run
/// # async fn cordon() -> klient::Result<()> {
/// let client = klient::Client::infer()?;
/// klient::node::cordon(&client, "worker-1").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns the server's error, for example if there is no such node.
pub async fn cordon(client: &Client, node: &str) -> Result<bool, Error> {
    set_unschedulable(client, node, true).await
}

/// Marks a node as schedulable. Returns whether it was unschedulable before.
///
/// # Errors
///
/// Returns the errors of [`cordon`].
pub async fn uncordon(client: &Client, node: &str) -> Result<bool, Error> {
    set_unschedulable(client, node, false).await
}

async fn set_unschedulable(client: &Client, name: &str, wanted: bool) -> Result<bool, Error> {
    let nodes: Api<Node> = Api::cluster(client.clone());
    let node = nodes.get(name).await?;
    if node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default() == wanted {
        return Ok(false);
    }
    // Absent and false are the same, and the scheduler's own taint follows from it.
    let value = if wanted { json!(true) } else { json!(null) };
    nodes.patch(name, Patch::merge(json!({"spec": {"unschedulable": value}}))).await?;
    Ok(true)
}
