//! Where the programs are: in `KUBEBUILDER_ASSETS`, or else in a cache outside the repository.

mod go_module;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use self::go_module::GoModule;

/// A folder that holds `kube-apiserver` and `etcd`, and `kubectl` if it was built here.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Finds the programs that `KUBEBUILDER_ASSETS` names, as users of envtest expect, or else those that were built before.
    ///
    /// # Errors
    ///
    /// If `KUBEBUILDER_ASSETS` names a folder without the programs: others would not be those that were chosen.
    pub fn find() -> Result<Option<Self>> {
        if let Some(folder) = variable(ASSETS) {
            if let Some(missing) = missing(&folder) {
                bail!("{ASSETS} is {}, where there is no {missing}", folder.display());
            }
            return Ok(Some(Self { folder }));
        }
        let folder = GoModule::of_repository()?.folder_in(&cache()?);
        Ok(missing(&folder).is_none().then_some(Self { folder }))
    }

    /// As [`find`](Self::find); builds what is not there.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find), and if Go is missing or cannot build them.
    pub fn find_or_build() -> Result<Self> {
        if let Some(found) = Self::find()? {
            return Ok(found);
        }
        let folder = GoModule::of_repository()?.build_in(&cache()?)?;
        Ok(Self { folder })
    }

    /// The folder, for `PATH`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The version of Kubernetes that `kube-apiserver` says it is, such as `v1.36.0`.
    ///
    /// # Errors
    ///
    /// If it cannot be run, or says something else.
    pub fn kubernetes_version(&self) -> Result<String> {
        let output = Command::new(self.path("kube-apiserver")).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.trim().strip_prefix("Kubernetes ");
        Ok(version.with_context(|| format!("kube-apiserver calls its version {text:?}"))?.to_owned())
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }
}

/// The first of the programs that tests cannot do without and that is not in a folder.
fn missing(folder: &Path) -> Option<&'static str> {
    ["kube-apiserver", "etcd"].into_iter().find(|program| !folder.join(program).is_file())
}

/// Where programs are kept from one run to the next.
fn cache() -> Result<PathBuf> {
    let folder = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(folder.context("neither XDG_CACHE_HOME nor HOME is set")?.join("klient/kube"))
}

/// A variable that names a folder; an empty one is none.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

const ASSETS: &str = "KUBEBUILDER_ASSETS";
