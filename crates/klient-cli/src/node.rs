//! `klient drain`, `cordon` and `uncordon`.

use std::{error::Error, time::Duration};

use clap::Args;
use klient::node::{Drain, cordon, uncordon};

use crate::{cluster::Cluster, output};

/// The options of `klient cordon` and `klient uncordon`.
#[derive(Args)]
pub(crate) struct Cordon {
    #[command(flatten)]
    cluster: Cluster,
    /// The nodes
    #[arg(required = true)]
    nodes: Vec<String>,
}

/// The options of `klient drain`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,
    /// The node
    node: String,
    /// Leave pods of daemon sets
    #[arg(long)]
    ignore_daemonsets: bool,
    /// Remove pods with emptyDir volumes, whose data is lost
    #[arg(long)]
    delete_emptydir_data: bool,
    /// Remove pods that no controller manages
    #[arg(long)]
    force: bool,
    /// Seconds that pods get to shut down [default: what they ask for]
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u64>,
    /// The time limit: 30s, 5m, 2h [default: none]
    #[arg(long, value_parser = output::duration)]
    timeout: Option<Duration>,
    /// Only pods with these labels
    #[arg(long, value_name = "SELECTOR")]
    pod_selector: Option<String>,
    /// Delete pods instead of evicting them, past disruption budgets
    #[arg(long)]
    disable_eviction: bool,
    /// Seconds after which pods in deletion are not waited for
    #[arg(long, value_name = "SECONDS")]
    skip_wait_for_delete_timeout: Option<u64>,
    /// Check everything on the server, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Marks nodes.
pub(crate) async fn mark(arguments: &Cordon, is_unschedulable: bool) -> Result<(), Box<dyn Error>> {
    let client = arguments.cluster.client()?;
    for node in &arguments.nodes {
        let (is_changed, what) = if is_unschedulable {
            (cordon(&client, node).await?, "cordoned")
        } else {
            (uncordon(&client, node).await?, "uncordoned")
        };
        output::line(format_args!("node/{node} {}{what}", if is_changed { "" } else { "already " }))?;
    }
    Ok(())
}

/// Drains a node, and prints its steps.
pub(crate) async fn drain(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut drain = Drain::new(arguments.cluster.client()?, &arguments.node).on_step(|step| {
        // A reader that is gone does not stop the drain.
        let _ = output::line(step);
    });
    if arguments.ignore_daemonsets {
        drain = drain.ignore_daemon_sets();
    }
    if arguments.delete_emptydir_data {
        drain = drain.delete_empty_dir_data();
    }
    if arguments.force {
        drain = drain.force();
    }
    if let Some(seconds) = arguments.grace_period {
        drain = drain.grace_period(Duration::from_secs(seconds));
    }
    if let Some(timeout) = arguments.timeout {
        drain = drain.timeout(timeout);
    }
    if let Some(selector) = &arguments.pod_selector {
        drain = drain.labels(selector);
    }
    if arguments.disable_eviction {
        drain = drain.without_eviction();
    }
    if let Some(seconds) = arguments.skip_wait_for_delete_timeout {
        drain = drain.skip_deleted_after(Duration::from_secs(seconds));
    }
    if arguments.dry_run {
        drain = drain.dry_run();
    }
    let drained = drain.run().await?;
    let how = if arguments.dry_run { "would be drained" } else { "drained" };
    output::line(format_args!(
        "node/{} {how}: {} pods gone, {} stay",
        arguments.node,
        drained.gone.len(),
        drained.left.len()
    ))?;
    Ok(())
}
