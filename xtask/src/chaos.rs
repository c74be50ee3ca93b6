//! The chaos suite, in release mode: a thousand worlds take minutes, and hours without optimisation.

use std::path::Path;

use anyhow::Result;

use crate::{built::Built, run};

/// Runs the suite with options; see `klient-chaos`.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let mut arguments = vec!["run", "--release", "--locked", "--quiet", "--package", "klient-chaos", "--"];
    arguments.extend_from_slice(options);
    run::run(root, "cargo", &arguments, &[])
}

/// Runs the part of the suite that CI runs: always the same worlds. They are few, so that they need no optimised build.
pub(crate) fn fixed(root: &Path) -> Result<()> {
    Built::all(root)?.binary(root, "klient-chaos", &["--seed", "16", "--worlds", "50", "--real", "1"])
}
