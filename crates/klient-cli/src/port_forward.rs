//! `klient port-forward`: ports of a pod, a service or a workload on this machine.

use std::error::Error;

use clap::Args;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{Pod, Service},
};
use klient::{Api, client::streams::PortForwardRequest};

use crate::{cluster::Namespaced, output};

/// The options of `klient port-forward`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Namespaced,
    /// A pod, or svc/NAME, deploy/NAME, sts/NAME, of which a ready pod is chosen, and another one when that goes
    target: String,
    /// The ports: 8080 for the same one, 8888:8080, or :8080 for any free one
    #[arg(required = true, value_name = "[LOCAL:]REMOTE")]
    ports: Vec<String>,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    address: String,
}

/// Forwards connections until the command is interrupted.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut listeners = Vec::new();
    for text in &arguments.ports {
        let (local, remote) = parse(text)?;
        let forward = request(&arguments.place, &arguments.target, remote)?.await?;
        let listener = forward.listen((arguments.address.as_str(), local)).await?;
        output::line(format_args!("Forwarding from {} -> {remote}", listener.local_addr()))?;
        listeners.push(listener);
    }
    klient::shutdown::signal().await;
    Ok(())
}

/// Returns a request to forward to a port of a pod, a service or a workload.
pub(crate) fn request(place: &Namespaced, target: &str, port: u16) -> Result<PortForwardRequest, Box<dyn Error>> {
    let (kind, name) = target.split_once('/').unwrap_or(("pod", target));
    Ok(match kind {
        "pod" | "pods" | "po" => place.api::<Pod>()?.port_forward(name, port),
        "service" | "services" | "svc" => place.api::<Service>()?.port_forward(name, port),
        "deployment" | "deployments" | "deploy" => place.api::<Deployment>()?.port_forward(name, port),
        "statefulset" | "statefulsets" | "sts" => Api::<StatefulSet>::port_forward(&place.api()?, name, port),
        other => return Err(format!("cannot forward to {other}: use a pod, svc/NAME, deploy/NAME or sts/NAME").into()),
    })
}

/// Parses a pair of ports. A local port of 0 is any free one.
fn parse(text: &str) -> Result<(u16, u16), Box<dyn Error>> {
    let wrong = || format!("{text:?} is not a port: use 8080, 8888:8080 or :8080");
    let (local, remote) = text.split_once(':').unwrap_or((text, text));
    let remote: u16 = remote.parse().map_err(|_| wrong())?;
    let local = if local.is_empty() { 0 } else { local.parse().map_err(|_| wrong())? };
    if remote == 0 { Err(wrong().into()) } else { Ok((local, remote)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_parsed_as_kubectl_does() {
        assert_eq!(parse("5000").unwrap(), (5000, 5000));
        assert_eq!(parse("8888:5000").unwrap(), (8888, 5000));
        assert_eq!(parse(":5000").unwrap(), (0, 5000));
        for wrong in ["", "x", "5000:", "0", "70000", "1:2:3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
