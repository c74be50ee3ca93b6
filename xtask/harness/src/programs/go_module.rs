//! The Go module with our thin `main`s, and how it becomes programs.
//!
//! Programs are found again by a hash of their sources, with or without Go. A folder in the cache is complete: it
//! is moved into place when the last program is done.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{kept, run_kept};

pub(super) struct GoModule {
    folder: PathBuf,
    /// Version of `k8s.io/kubernetes`, such as `v1.36.0`.
    kubernetes: String,
    /// Differs when anything differs that programs are built from.
    fingerprint: u64,
}

impl GoModule {
    pub(super) fn of_repository() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apiserver");
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        // Another Rust may hash otherwise: then they are built once more.
        let mut hasher = DefaultHasher::new();
        (env::consts::OS, env::consts::ARCH).hash(&mut hasher);
        let manifest = read("go.mod")?;
        (&manifest, read("go.sum")?).hash(&mut hasher);
        for program in PROGRAMS {
            (program, read(&format!("{program}/main.go"))?).hash(&mut hasher);
        }
        // The flags that programs are built with are here.
        include_str!("go_module.rs").hash(&mut hasher);
        let kubernetes = required_kubernetes(&manifest).context("go.mod does not require k8s.io/kubernetes")?;
        Ok(Self { kubernetes: kubernetes.to_owned(), folder, fingerprint: hasher.finish() })
    }

    /// Where its programs are in a cache, once they are built.
    pub(super) fn folder_in(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{:016x}", self.kubernetes, self.fingerprint))
    }

    /// Builds all programs and returns their folder.
    pub(super) fn build_in(&self, cache: &Path) -> Result<PathBuf> {
        fs::create_dir_all(cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let work = tempfile::Builder::new().prefix(".building-").tempdir_in(cache)?;
        let mut go = kept("go");
        go.arg("build").args(["-ldflags", &self.linker_flags()?]);
        go.arg("-o").arg(format!("{}/", work.path().display())).args(PROGRAMS.map(|program| format!("./{program}")));
        let status = run_kept(go.current_dir(&self.folder))
            .context("cannot start go: the programs are built with Go 1.26 or newer")?;
        if !status.success() {
            bail!("go build failed: {status}");
        }
        let folder = self.folder_in(cache);
        match fs::rename(work.path(), &folder) {
            Ok(()) => _ = work.keep(),
            // Another process was faster, with the same result.
            Err(_) if folder.is_dir() => {}
            Err(error) => return Err(error).with_context(|| format!("cannot make {}", folder.display())),
        }
        Ok(folder)
    }

    /// Sources from a module proxy do not say which version they are; release builds are told in the same way.
    fn linker_flags(&self) -> Result<String> {
        let mut numbers = self.kubernetes.trim_start_matches('v').split('.');
        let mut flags = vec!["-s -w".to_owned()];
        for (name, value) in [
            ("gitVersion", self.kubernetes.clone()),
            ("gitMajor", numbers.next().unwrap_or_default().to_owned()),
            ("gitMinor", numbers.next().unwrap_or_default().to_owned()),
            ("gitCommit", self.commit()?),
            ("gitTreeState", "clean".to_owned()),
        ] {
            for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                flags.push(format!("-X {package}.{name}={value}"));
            }
        }
        Ok(flags.join(" "))
    }

    /// The commit that the proxy made its copy from; empty if it does not say.
    fn commit(&self) -> Result<String> {
        let output = Command::new("go")
            .args(["mod", "download", "-json", "k8s.io/kubernetes"])
            .current_dir(&self.folder)
            .output()
            .context("cannot start go: the programs are built with Go 1.26 or newer")?;
        if !output.status.success() {
            bail!("go mod download failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let about: Value = serde_json::from_slice(&output.stdout)?;
        Ok(about["Origin"]["Hash"].as_str().unwrap_or_default().to_owned())
    }
}

/// The version of Kubernetes that a `go.mod` asks for.
fn required_kubernetes(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ");
        line.strip_prefix("k8s.io/kubernetes ")?.split_whitespace().next()
    })
}

const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_go_mod_asks_for() {
        assert_eq!(required_kubernetes("module m\n\nrequire k8s.io/kubernetes v1.36.0\n"), Some("v1.36.0"));
        assert_eq!(required_kubernetes("require (\n\tk8s.io/kubernetes v1.36.1 // why\n)\n"), Some("v1.36.1"));
        assert_eq!(required_kubernetes("require k8s.io/kubernetesque v1.0.0\n"), None);
        let module = GoModule::of_repository().unwrap();
        assert!(module.kubernetes.starts_with("v1."), "{}", module.kubernetes);
        assert_eq!(module.fingerprint, GoModule::of_repository().unwrap().fingerprint);
    }
}
