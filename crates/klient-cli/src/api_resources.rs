//! `klient api-resources`: what kinds a cluster has.

use std::{error::Error, io};

use clap::Args;
use klient::client::discovery::{DiscoveryClient, ServedResource};

use crate::{cluster::Cluster, output};

/// What to show.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,
    /// Only kinds of this group; "" is the core group
    #[arg(long, value_name = "GROUP")]
    api_group: Option<String>,
    /// Only kinds that live in namespaces, or with `=false` only those that do not
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    namespaced: Option<bool>,
}

/// Shows them.
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
        output::complain(&*Box::<dyn Error>::from(format!("some kinds are not known: {failure}")));
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
