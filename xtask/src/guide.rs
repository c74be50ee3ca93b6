//! Builds the guide, an mdBook. Its examples are compiled as documentation tests of the examples crate.

use std::path::Path;

use anyhow::Result;

use crate::run::{output, run};

/// Builds `docs/guide` into `target/guide`, and installs mdBook into `target/tools` if this version is missing.
pub(crate) fn build(root: &Path) -> Result<()> {
    let tools = root.join("target/tools");
    let mdbook = tools.join("bin/mdbook").to_string_lossy().into_owned();
    if output(root, &mdbook, &["--version"]).ok().is_none_or(|version| !version.contains(MDBOOK)) {
        let package = format!("mdbook@{MDBOOK}");
        let folder = tools.to_string_lossy();
        // The guide needs neither mdBook's web server nor its search index. A debug build is enough for a run of one second.
        let arguments = ["install", "--locked", "--debug", "--no-default-features", "--root", &folder, &package];
        run(root, "cargo", &arguments, &[])?;
    }
    let target = root.join("target/guide");
    run(root, &mdbook, &["build", "docs/guide", "--dest-dir", &target.to_string_lossy()], &[])
}

const MDBOOK: &str = "0.5.4";
