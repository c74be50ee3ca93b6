//! Which files a configuration comes from, and how they become one.
//!
//! The first file that names a cluster, user, context or extension gives all of it; the first that sets anything else
//! gives that. An explicit file must exist, the others need not.
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

/// The files that make up a configuration, the most important first.
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
    /// Those that the environment names: the list in `KUBECONFIG`, or else `~/.kube/config`.
    #[doc(alias = "NewDefaultClientConfigLoadingRules")]
    pub fn from_env() -> Self {
        Self::from_environment(&Environment::of_process())
    }

    /// One file that must be there, such as a flag names.
    #[doc(alias = "ExplicitPath")]
    pub fn explicit(path: impl Into<PathBuf>) -> Self {
        Self { explicit: true, ..Self::list([path]) }
    }

    /// These files, of which any may be missing. Names that come twice count once.
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

    /// Sets how long a change waits for the locks of other writers; 5 seconds unless told.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// The files, the most important first.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The file that gets what is in none yet: the first that exists, or else the last.
    #[doc(alias = "GetDefaultFilename")]
    pub fn default_file(&self) -> Option<&Path> {
        // The last, and not the first, because kubectl creates that one.
        self.paths.iter().find(|path| path.exists()).or(self.paths.last()).map(PathBuf::as_path)
    }

    /// Reads and merges the files, and resolves relative paths.
    ///
    /// # Errors
    ///
    /// If an explicit file is missing, or if any file cannot be read or makes no sense; all such files are named.
    pub fn load(&self) -> Result<Kubeconfig, Error> {
        let mut merged = merge(self.read_each(self.explicit)?.into_iter().map(|(_, kubeconfig)| kubeconfig));
        merged.resolve_paths();
        Ok(merged)
    }

    /// Locks the files and loads them to be changed. Nothing is written before [`KubeconfigEdit::save`].
    ///
    /// A file that does not exist yet is none to begin with, even an explicit one. Blocks while others have the locks.
    ///
    /// # Errors
    ///
    /// If a lock is not to be had in time, or if any file cannot be read or makes no sense.
    pub fn edit(&self) -> Result<KubeconfigEdit, Error> {
        KubeconfigEdit::begin(self)
    }

    /// Changes the files under their locks: each stanza in the file that it came from. Gives back what `change` does.
    ///
    /// # Errors
    ///
    /// As [`edit`](Self::edit), or if a file cannot be written.
    #[doc(alias = "ModifyConfig")]
    pub fn modify<T>(&self, change: impl FnOnce(&mut Kubeconfig) -> T) -> Result<T, Error> {
        let mut edit = self.edit()?;
        let result = change(&mut edit);
        edit.save()?;
        Ok(result)
    }

    /// The files one by one, paths as written.
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

    pub(super) fn lock_patience(&self) -> Duration {
        self.lock_timeout
    }
}

/// Joins files, the most important first.
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
        Err(error) => return Err(Problem::new("", "cannot be read").with_source(error)),
    };
    let mut kubeconfig = Kubeconfig::read(&bytes)?;
    kubeconfig.set_origin(path);
    Ok(Some(kubeconfig))
}

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
