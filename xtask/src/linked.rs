//! Checks that a binary holds only the codecs of the kinds that it names.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{built::Built, run::output};

/// Builds an example that names pods only, and looks for the codecs of other kinds among its symbols.
pub(crate) fn check(root: &Path) -> Result<()> {
    // Unoptimised, as the step `test` has built it: an optimised binary holds no more.
    Built::all(root)?;
    let symbols = output(root, "nm", &["--demangle", "target/debug/examples/wire_objects"])?;
    let holds = |kind: &str| {
        symbols
            .lines()
            .any(|line| line.contains("klient_proto::runtime::Message for") && line.contains(&format!("::{kind}>")))
    };
    if !holds("Container") {
        bail!("the codec of Container is not where this check looks, so it checks nothing");
    }
    for kind in ["Deployment", "DeploymentSpec", "Ingress", "CustomResourceDefinition", "Node", "NodeStatus"] {
        if holds(kind) {
            bail!("an example that names only pods holds the codec of {kind}");
        }
    }
    println!("an example that names only pods holds no other kind's codec");
    Ok(())
}
