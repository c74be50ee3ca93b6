//! `klient api-resources`: the kinds that a cluster serves.

use std::{error::Error, io};

use clap::Args;
use klient::client::discovery::{DiscoveryClient, ServedResource};

use crate::{cluster::Cluster, output};

/// The options of `klient api-resources`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,
    /// Show only kinds of this group; "" is the core group
    #[arg(long, value_name = "GROUP")]
    api_group: Option<String>,
    /// Show only namespaced kinds, or with `=false` only cluster-scoped kinds
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    namespaced: Option<bool>,
}

/// Prints the kinds.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let apis = DiscoveryClient::new(arguments.cluster.client()?).apis().await?;
    let header = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for group in &apis.groups {
        if arguments.api_group.as_ref().is_some_and(|wanted| *wanted != group.name) {
            continue;
        }
        // The version that the server prefers comes first.
        let served = group.versions.iter().take(1).flat_map(|version| &version.resources);
        rows.extend(served.filter(|served| fits(arguments, served)).map(row));
    }
    output::columns(&mut io::stdout().lock(), &rows)?;
    for failure in &apis.failures {
        output::print_note(&format!("warning: discovery is incomplete: {failure}"));
    }
    Ok(())
}

fn fits(arguments: &Arguments, served: &ServedResource) -> bool {
    arguments.namespaced.is_none_or(|wanted| wanted == served.resource.is_namespaced())
}

fn row(served: &ServedResource) -> Vec<String> {
    let resource = &served.resource;
    vec![
        resource.plural.to_string(),
        served.short_names.join(","),
        resource.api_version().into_owned(),
        resource.is_namespaced().to_string(),
        resource.kind.to_string(),
        served.verbs.join(","),
    ]
}
