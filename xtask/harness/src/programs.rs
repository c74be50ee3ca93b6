//! The location of the programs: `KUBEBUILDER_ASSETS`, or else a cache outside the repository.

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
    /// Returns an error if `KUBEBUILDER_ASSETS` names a folder without the programs. Other programs are not used instead,
    /// because the variable is an explicit choice.
    pub fn find() -> Result<Option<Self>> {
        if let Some(folder) = variable(ASSETS) {
            if let Some(missing) = missing(&folder) {
                bail!("{ASSETS} is {}, which has no {missing}: correct or unset the variable", folder.display());
            }
            return Ok(Some(Self { folder }));
        }
        let folder = GoModule::of_repository()?.folder_in(&cache()?);
        Ok(missing(&folder).is_none().then_some(Self { folder }))
    }

    /// Finds the programs for a test, unless `KLIENT_E2E` is `skip`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`find`](Self::find), and an error if `KLIENT_E2E` is `required` and there are no programs.
    pub fn for_tests() -> Result<Option<Self>> {
        let wanted = env::var("KLIENT_E2E").unwrap_or_default();
        if wanted == "skip" {
            return Ok(None);
        }
        let found = Self::find()?;
        if found.is_none() && wanted == "required" {
            bail!("there is no kube-apiserver: `cargo xtask e2e` builds it");
        }
        Ok(found)
    }

    /// Finds the programs as [`find`](Self::find) does, or builds them. Builds the [`Kubelet`](crate::Kubelet) as well.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`find`](Self::find), and an error if Go is missing or cannot build the programs.
    pub fn find_or_build() -> Result<Self> {
        crate::kubelet::build()?;
        if let Some(found) = Self::find()? {
            return Ok(found);
        }
        let folder = GoModule::of_repository()?.build_in(&cache()?)?;
        Ok(Self { folder })
    }

    /// Returns the folder of the programs, for `PATH`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the version that `kube-apiserver` reports, such as `v1.36.0`.
    ///
    /// # Errors
    ///
    /// Returns an error if `kube-apiserver` cannot be run, or if its output is not a version.
    pub fn kubernetes_version(&self) -> Result<String> {
        let output = Command::new(self.path("kube-apiserver")).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.trim().strip_prefix("Kubernetes ");
        Ok(version
            .with_context(|| format!("expected a version from `kube-apiserver --version`, but it printed {text:?}"))?
            .to_owned())
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }
}

/// Returns the first program that the tests require and that is not in the folder.
fn missing(folder: &Path) -> Option<&'static str> {
    ["kube-apiserver", "etcd"].into_iter().find(|program| !folder.join(program).is_file())
}

/// Returns the folder in which programs are cached between runs.
pub(crate) fn cache() -> Result<PathBuf> {
    let folder = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(folder.context("neither XDG_CACHE_HOME nor HOME is set")?.join("klient/kube"))
}

/// Returns the folder that an environment variable names. An empty variable counts as unset.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

const ASSETS: &str = "KUBEBUILDER_ASSETS";
