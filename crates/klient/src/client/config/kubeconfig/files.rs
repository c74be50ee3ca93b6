//! The files of a configuration, and how they are merged.
//!
//! The first file that defines a cluster, user, context or extension provides all of it. The first file that sets
//! another field provides that field. An explicit file must exist, the others may be missing.
//! In client-go: `ClientConfigLoadingRules` and `PathOptions`.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{Kubeconfig, KubeconfigEdit, problem::Problem, problem::error_for};
use crate::{Error, client::config::environment::Environment};

/// The files of a configuration, in order of precedence.
///
/// ```no_run
/// use klient::client::config::KubeconfigFiles;
///
/// let files = KubeconfigFiles::from_env();
/// let contexts: Vec<String> = files.load()?.contexts.names().map(str::to_owned).collect();
/// files.modify(|kubeconfig| kubeconfig.current_context = contexts.first().cloned())?;
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "ClientConfigLoadingRules")]
#[doc(alias = "PathOptions")]
#[derive(Clone, Debug)]
pub struct KubeconfigFiles {
    paths: Vec<PathBuf>,
    explicit: bool,
    lock_timeout: Duration,
}

impl KubeconfigFiles {
    /// Returns the files that the environment names: the list in `KUBECONFIG`, or else `~/.kube/config`.
    #[doc(alias = "NewDefaultClientConfigLoadingRules")]
    pub fn from_env() -> Self {
        Self::from_environment(&Environment::of_process())
    }

    /// Returns one file that must exist, such as one named by a flag.
    #[doc(alias = "ExplicitPath")]
    pub fn explicit(path: impl Into<PathBuf>) -> Self {
        Self { explicit: true, ..Self::list([path]) }
    }

    /// Returns a list of files, of which any may be missing. Duplicates are ignored.
    pub fn list(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let mut seen = HashSet::new();
        let paths = paths.into_iter().map(Into::into);
        let paths = paths.filter(|path: &PathBuf| !path.as_os_str().is_empty() && seen.insert(path.clone())).collect();
        Self { paths, explicit: false, lock_timeout: LOCK_TIMEOUT }
    }

    pub(crate) fn from_environment(environment: &Environment) -> Self {
        match environment.variable("KUBECONFIG") {
            Some(list) => Self::list(std::env::split_paths(&list)),
            None => Self::list(environment.home().map(|home| home.join(".kube").join("config"))),
        }
    }

    /// Sets how long a change waits for the locks of other writers; 5 seconds by default.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Returns the files, in order of precedence.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns the file for new entries: the first that exists, or else the last.
    #[doc(alias = "GetDefaultFilename")]
    pub fn default_file(&self) -> Option<&Path> {
        // The last and not the first, because kubectl creates that one.
        self.paths.iter().find(|path| path.exists()).or(self.paths.last()).map(PathBuf::as_path)
    }

    /// Reads and merges the files, and resolves relative paths.
    ///
    /// # Errors
    ///
    /// Returns an error if an explicit file is missing, or if any file cannot be read or is invalid. The message names
    /// all such files.
    pub fn load(&self) -> Result<Kubeconfig, Error> {
        let mut merged = merge(self.read_each(self.explicit)?.into_iter().map(|(_, kubeconfig)| kubeconfig));
        merged.resolve_paths();
        Ok(merged)
    }

    /// Locks the files and loads them for a change. Nothing is written before [`KubeconfigEdit::save`].
    ///
    /// A missing file is treated as empty, even an explicit one. Blocks while other programs hold the locks.
    ///
    /// # Errors
    ///
    /// Returns an error if a lock cannot be acquired in time, or if any file cannot be read or is invalid.
    pub fn edit(&self) -> Result<KubeconfigEdit, Error> {
        KubeconfigEdit::begin(self)
    }

    /// Changes the files under their locks, each entry in the file that it was read from. Returns the result of
    /// `change`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`edit`](Self::edit), and an error if a file cannot be written.
    #[doc(alias = "ModifyConfig")]
    pub fn modify<T>(&self, change: impl FnOnce(&mut Kubeconfig) -> T) -> Result<T, Error> {
        let mut edit = self.edit()?;
        let result = change(&mut edit);
        edit.save()?;
        Ok(result)
    }

    /// Reads the files one by one, without resolving paths.
    pub(super) fn read_each(&self, must_exist: bool) -> Result<Vec<(Arc<Path>, Kubeconfig)>, Error> {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for path in &self.paths {
            let path: Arc<Path> = path.as_path().into();
            match read_file(&path) {
                Ok(Some(kubeconfig)) => files.push((path, kubeconfig)),
                Ok(None) if must_exist => {
                    problems.push(Problem::new("", "does not exist").in_file(Some(path)));
                }
                Ok(None) => {}
                Err(problem) => problems.push(problem.in_file(Some(path))),
            }
        }
        match error_for(problems) {
            Some(error) => Err(error),
            None => Ok(files),
        }
    }

    pub(super) fn lock_wait(&self) -> Duration {
        self.lock_timeout
    }
}

/// Merges files, in order of precedence.
pub(super) fn merge(files: impl IntoIterator<Item = Kubeconfig>) -> Kubeconfig {
    let mut merged = Kubeconfig::default();
    for file in files {
        merged.add_missing(file);
    }
    merged
}

fn read_file(path: &Arc<Path>) -> Result<Option<Kubeconfig>, Problem> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::new("", "cannot read file").with_source(error)),
    };
    let mut kubeconfig = Kubeconfig::read(&bytes)?;
    kubeconfig.set_origin(path);
    Ok(Some(kubeconfig))
}

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
