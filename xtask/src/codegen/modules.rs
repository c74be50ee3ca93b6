//! The sources of the generator's inputs: Go modules from the Go module proxy, and the source of k8s-openapi.
//!
//! The inputs are not vendored. The versions are pinned here; `go` and `cargo` download and verify them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// The Kubernetes minors that the supported k8s-openapi release offers.
pub(crate) const MINORS: [u32; 5] = [33, 34, 35, 36, 37];

const MODULES: [&str; 4] =
    ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];

/// The module directories of one Kubernetes minor, by module path.
pub(crate) struct GoModules {
    pub(crate) dirs: BTreeMap<&'static str, PathBuf>,
}

impl GoModules {
    /// Downloads (or finds in the module cache) the four modules of a minor.
    pub(crate) fn download(minor: u32) -> Result<Self> {
        let mut dirs = BTreeMap::new();
        for module in MODULES {
            let output = Command::new("go")
                .args(["mod", "download", "-json", &format!("{module}@v0.{minor}.0")])
                .current_dir(std::env::temp_dir())
                .output()
                .context("cannot run `go`: code generation needs a Go toolchain to fetch modules")?;
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| {
                format!("cannot parse the output of `go mod download`: {}", String::from_utf8_lossy(&output.stderr))
            })?;
            let Some(dir) = answer["Dir"].as_str() else {
                bail!("`go mod download {module}@v0.{minor}.0` failed: {}", answer["Error"]);
            };
            dirs.insert(module, PathBuf::from(dir));
        }
        Ok(Self { dirs })
    }

    /// Returns every folder with a `generated.proto`, as `(import path, folder)`.
    pub(crate) fn proto_packages(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut packages = Vec::new();
        for (module, dir) in &self.dirs {
            let mut pending = vec![dir.clone()];
            while let Some(folder) = pending.pop() {
                for entry in std::fs::read_dir(&folder)? {
                    let path = entry?.path();
                    if path.is_dir() {
                        pending.push(path);
                    } else if path.ends_with("generated.proto") {
                        let relative = folder.strip_prefix(dir)?;
                        packages.push((format!("{module}/{}", relative.display()), folder.clone()));
                    }
                }
            }
        }
        packages.sort();
        Ok(packages)
    }
}

/// Returns the source folder of the k8s-openapi release in the lock file.
pub(crate) fn k8s_openapi_source(root: &Path) -> Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("cannot parse the output of `cargo metadata`: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "k8s-openapi")
        .and_then(|package| package["manifest_path"].as_str())
        .context("k8s-openapi is not in the dependency graph")?;
    Ok(Path::new(manifest).with_file_name("src"))
}
