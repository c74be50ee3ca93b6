//! Discovery: the groups, versions and resources of a server, and the kinds behind short names.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example discovery
//! ```

#![allow(clippy::print_stdout)]

use klient::{
    Client,
    client::discovery::{CachedDiscovery, DiscoveryClient, RestMapper, ServedResource},
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = DiscoveryClient::new(Client::infer()?);
    println!("server {}", client.server_version().await?.git_version);

    let discovery = CachedDiscovery::in_memory(client);
    let apis = discovery.apis().await?;
    for group in &apis.groups {
        println!("\n{}", if group.name.is_empty() { "core" } else { &group.name });
        for version in &group.versions {
            println!("  {}", version.group_version.version);
            version.resources.iter().for_each(print);
        }
    }
    for failure in &apis.failures {
        println!("\nunavailable: {failure}");
    }

    // Names as people write them; the server's own order decides where there are several.
    let mapper = RestMapper::new(discovery);
    println!();
    for name in ["po", "deploy", "deployments.v1.apps", "Deployment", "no-such-thing"] {
        match mapper.resolve(name).await {
            Ok(found) => println!("{name:20} {}", found.resource.gvr()),
            Err(error) => println!("{name:20} {error}"),
        }
    }
    let all: Vec<String> =
        mapper.category("all").await?.iter().map(|resource| resource.group_resource().to_string()).collect();
    println!("{:20} {}", "all", all.join(" "));
    Ok(())
}

fn print(served: &ServedResource) {
    let subresources: Vec<&str> = served.subresources.iter().map(|under| under.name.as_str()).collect();
    println!(
        "    {:32} {:32} {:10} {}",
        served.resource.plural,
        served.resource.kind,
        served.short_names.join(","),
        subresources.join(" "),
    );
}
