//! Checks the published packages outside the workspace: each crate, and README's program as a separate crate.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::run::run;

/// The crates that are published, each after those that it depends on.
pub(crate) const CRATES: [&str; 11] = [
    "klient-core",
    "klient-proto",
    "klient-streams",
    "klient-cel",
    "klient-apply",
    "klient-derive",
    "klient",
    "klient-telemetry",
    "klient-apiserver",
    "klient-replay",
    "klient-cli",
];

/// Packages all crates, unpacks the packages into a new workspace, and builds README's program and the documents there.
///
/// The build uses no source file and no configured variable of this repository, so it equals a user's build.
pub(crate) fn check(root: &Path) -> Result<()> {
    let packages: Vec<&str> = CRATES.iter().flat_map(|name| ["--package", name]).collect();
    let arguments = [&["package", "--locked", "--allow-dirty", "--no-verify"], &packages[..]].concat();
    run(root, "cargo", &arguments, &[])?;

    let outside = tempfile::tempdir()?;
    let version = env!("CARGO_PKG_VERSION");
    for name in CRATES {
        let package = root.join(format!("target/package/{name}-{version}.crate"));
        // With `-m`, files are as new as this run. Those in packages have one old date, and cargo would not build them again.
        run(outside.path(), "tar", &["-xzmf", &package.to_string_lossy()], &[])?;
    }
    write_workspace(outside.path(), version)?;
    write_quick_start(root, &outside.path().join("quick-start"))?;

    let target = root.join("target/published");
    let cargo = |arguments: &[&str]| {
        let status = Command::new("cargo")
            .args(arguments)
            .current_dir(outside.path())
            .env_remove("K8S_OPENAPI_ENABLED_VERSION")
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTDOCFLAGS", "-D warnings")
            .status()
            .with_context(|| format!("cannot start `cargo {}`", arguments.join(" ")))?;
        if !status.success() {
            bail!("`cargo {}` failed outside the workspace: {status}", arguments.join(" "));
        }
        Ok(())
    };
    cargo(&["check", "--package", "quick-start", "--package", "klient-cli"])?;
    // docs.rs builds the documents in the same way, with the features of `package.metadata.docs.rs`.
    let libraries = CRATES.iter().filter(|name| !["klient-derive", "klient-cli"].contains(name));
    let documented: Vec<&str> = libraries.flat_map(|name| ["--package", *name]).collect();
    cargo(&[&["doc", "--no-deps", "--features", "k8s-openapi/v1_37"], &documented[..]].concat())?;
    println!("packages, their documents and README's program build outside the workspace");
    Ok(())
}

/// Writes the manifest of a workspace in which the unpacked crates replace those of the registry.
fn write_workspace(folder: &Path, version: &str) -> Result<()> {
    let members: Vec<String> = CRATES.iter().map(|name| format!("\"{name}-{version}\"")).collect();
    let mut manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"quick-start\", {}]\n\n[patch.crates-io]\n",
        members.join(", ")
    );
    for name in CRATES {
        manifest.push_str(&format!("{name} = {{ path = \"{name}-{version}\" }}\n"));
    }
    fs::write(folder.join("Cargo.toml"), manifest)?;
    Ok(())
}

/// Writes README's first program as a crate: its first `toml` block is the manifest, its first `rust` block the program.
fn write_quick_start(root: &Path, folder: &Path) -> Result<()> {
    let readme = fs::read_to_string(root.join("README.md"))?;
    let manifest = first_block(&readme, "toml").context("README.md has no `toml` block")?;
    let program = first_block(&readme, "rust").context("README.md has no `rust` block")?;
    ensure!(program.contains("async fn main()"), "README's first `rust` block is not a whole program");
    // README names a checkout beside the new crate. Here the unpacked packages replace the checkout.
    let path = "{ path = \"../klient/crates/klient\" }";
    ensure!(manifest.contains(path), "README's manifest does not name klient as `{path}`");
    let manifest = manifest.replace(path, "\"0.1\"");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(PathBuf::from(folder).join("src/main.rs"), program)?;
    Ok(())
}

/// Returns the first fenced block of a language.
fn first_block<'a>(text: &'a str, language: &str) -> Option<&'a str> {
    let fence = text.find(&format!("```{language}"))?;
    let start = fence + text[fence..].find('\n')? + 1;
    let length = text[start..].find("\n```")? + 1;
    Some(&text[start..start + length])
}

#[cfg(test)]
mod tests {
    use super::first_block;

    #[test]
    fn first_block_is_found_by_its_language() {
        let text = "a\n```sh\nls\n```\n```toml\n[package]\nname = \"x\"\n```\n```toml,ignore\nother\n```\n";
        assert_eq!(first_block(text, "toml"), Some("[package]\nname = \"x\"\n"));
        assert_eq!(first_block(text, "rust"), None);
    }
}
