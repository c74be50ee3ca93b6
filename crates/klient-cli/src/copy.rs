//! `klient cp`: files and directories to and from containers.

use std::{error::Error, path::Path, sync::Arc};

use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use klient::{Api, client::streams::Copied};

use crate::{
    cluster::Namespaced,
    output,
    progress::{ProgressBar, bytes_in},
};

/// The options of `klient cp`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Namespaced,
    /// A local path, or [NAMESPACE/]POD:PATH
    source: String,
    /// A local path, or [NAMESPACE/]POD:PATH
    target: String,
    /// The container
    #[arg(long, short)]
    container: Option<String>,
    /// How often a broken copy from a container is resumed
    #[arg(long, default_value_t = 0)]
    retries: u32,
}

/// Copies.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let (from, to) = (remote(&arguments.source), remote(&arguments.target));
    let total = from.is_none().then(|| bytes_in(Path::new(&arguments.source)));
    let bar = Arc::new(ProgressBar::new(total));
    let shown = Arc::clone(&bar);
    let progress = move |copied: &Copied| shown.show(copied);
    let container = arguments.container.clone();
    let copied = match (from, to) {
        (None, Some((namespace, pod, path))) => {
            let mut copy = pods(arguments, namespace)?.copy_to(pod, &arguments.source, path).on_progress(progress);
            if let Some(container) = container {
                copy = copy.container(container);
            }
            copy.await
        }
        (Some((namespace, pod, path)), None) => {
            let copy = pods(arguments, namespace)?.copy_from(pod, path, &arguments.target);
            let mut copy = copy.on_progress(progress).retries(arguments.retries);
            if let Some(container) = container {
                copy = copy.container(container);
            }
            copy.await
        }
        _ => return Err("one of the two paths must be in a container: [NAMESPACE/]POD:PATH".into()),
    };
    bar.end();
    let Copied { entries, bytes, .. } = copied?;
    output::line(format_args!("copied {entries} entries, {bytes} bytes"))?;
    Ok(())
}

fn pods(arguments: &Arguments, namespace: Option<&str>) -> Result<Api<Pod>, Box<dyn Error>> {
    match namespace {
        Some(namespace) => Ok(Api::namespaced(arguments.place.cluster.client()?, namespace)),
        None => arguments.place.api(),
    }
}

/// Splits a path in a container. A path with a slash before its colon is a local one, unless it is `NAMESPACE/POD:PATH`.
fn remote(text: &str) -> Option<(Option<&str>, &str, &str)> {
    let (place, path) = text.split_once(':')?;
    match place.split_once('/') {
        None if !place.is_empty() => Some((None, place, path)),
        Some((namespace, pod))
            if !namespace.is_empty() && namespace != "." && !pod.is_empty() && !pod.contains('/') =>
        {
            Some((Some(namespace), pod, path))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_containers_name_a_pod() {
        assert_eq!(remote("web:/tmp/a"), Some((None, "web", "/tmp/a")));
        assert_eq!(remote("shop/web:a"), Some((Some("shop"), "web", "a")));
        for local in ["a", "/a/b", "./a:b", "/a:b", ":a", "a/b/c:d"] {
            assert_eq!(remote(local), None, "{local}");
        }
    }
}
