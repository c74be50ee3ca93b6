//! Changes of kubeconfig files, under their locks.
//!
//! Each changed entry is written to the file that it was read from. A file without changes is not written.
//! In client-go: `ModifyConfig`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde_json::{Map, Value};

use super::{
    Entries, Kubeconfig, KubeconfigFiles,
    entries::EntryValue,
    files::merge,
    lock::FileLock,
    paths,
    problem::Problem,
    replace::{create_directory_of, replace},
    text,
};
use crate::{Error, ErrorKind};

/// Kubeconfig files that are locked for a change. Dropping the value changes nothing.
///
/// It dereferences to the merged [`Kubeconfig`], with absolute paths:
///
/// - A changed entry is written to the file that it was read from, a new one to the default file.
/// - A removed entry is removed from the file that it was read from. An entry of the same name in a later file then
///   takes effect.
/// - The current context is written to the first file that sets one, or else to the default file.
/// - Unchanged paths are written as they were. New ones become relative if they are below the directory of their file.
///
/// ```no_run
/// use klient::client::config::{AuthInfo, Cluster, Context, KubeconfigFiles};
///
/// let mut edit = KubeconfigFiles::from_env().edit()?;
/// edit.clusters.insert("kind", Cluster::new("https://127.0.0.1:6443"));
/// edit.users.insert("admin", AuthInfo::with_token("s3cret"));
/// edit.contexts.insert("kind", Context::new("kind", "admin"));
/// edit.save()?;
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "ModifyConfig")]
#[must_use = "nothing is written without `save`"]
pub struct KubeconfigEdit {
    default_file: Option<Arc<Path>>,
    // The files before the change, one by one and merged, and the merged result.
    files: Vec<(Arc<Path>, Kubeconfig)>,
    before: Kubeconfig,
    now: Kubeconfig,
    // Files that could not be locked, with the reason. The other files can still be changed.
    unlocked: BTreeMap<PathBuf, io::Error>,
    // The last field, so that the locks are released last.
    _locks: Vec<FileLock>,
}

impl KubeconfigEdit {
    pub(super) fn begin(files: &KubeconfigFiles) -> Result<Self, Error> {
        let default_file: Option<Arc<Path>> = files.default_file().map(Arc::from);
        let deadline = Instant::now() + files.lock_wait();
        let (mut locks, mut unlocked) = (Vec::new(), BTreeMap::new());
        // All writers take the locks in the same order, so that no two wait for each other.
        for path in files.paths().iter().collect::<BTreeSet<_>>() {
            if default_file.as_deref() == Some(path) {
                create_directory_of(path).map_err(|error| failed(path, "cannot create its directory", error))?;
            }
            match FileLock::acquire(path, deadline) {
                Ok(lock) => locks.push(lock),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(failed(path, "cannot lock file", error));
                }
                Err(error) => drop(unlocked.insert(path.clone(), error)),
            }
        }
        let files = files.read_each(false)?;
        let mut before = merge(files.iter().map(|(_, kubeconfig)| kubeconfig.clone()));
        before.resolve_paths();
        Ok(Self { default_file, files, now: before.clone(), before, unlocked, _locks: locks })
    }

    /// Writes the files that have changed, and releases the locks.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no file to write to, or if a file cannot be written.
    pub fn save(mut self) -> Result<(), Error> {
        let mut changed = BTreeMap::new();
        self.route_entries(&mut changed, |kubeconfig| &mut kubeconfig.clusters)?;
        self.route_entries(&mut changed, |kubeconfig| &mut kubeconfig.users)?;
        self.route_entries(&mut changed, |kubeconfig| &mut kubeconfig.contexts)?;
        self.route_entries(&mut changed, |kubeconfig| &mut kubeconfig.extensions)?;
        self.route_fields(&mut changed, |kubeconfig| &mut kubeconfig.preferences)?;
        self.route_fields(&mut changed, |kubeconfig| &mut kubeconfig.other)?;
        if self.now.current_context != self.before.current_context {
            let context = self.now.current_context.clone();
            let file = self.first_file(|kubeconfig| kubeconfig.current_context.is_some())?;
            self.copy(&mut changed, &file).current_context = context;
        }
        for (path, kubeconfig) in changed {
            if let Some(error) = self.unlocked.remove(&*path) {
                return Err(failed(&path, "cannot lock file", error));
            }
            let text = text::write(&kubeconfig.to_value(), kubeconfig.format)
                .map_err(|problem| problem.in_file(Some(Arc::clone(&path))))?;
            replace(&path, &text).map_err(|error| failed(&path, "cannot write file", error))?;
        }
        Ok(())
    }

    fn route_entries<T: EntryValue>(
        &mut self,
        changed: &mut Changed,
        entries: fn(&mut Kubeconfig) -> &mut Entries<T>,
    ) -> Result<(), Error> {
        let before = entries(&mut self.before).clone();
        let now = entries(&mut self.now).clone();
        for (name, value) in now.iter().filter(|(name, value)| before.get(name) != Some(value)) {
            // The origin of an entry is preserved even if it was removed and inserted again.
            let file = match before.shared_origin(name) {
                Some(origin) => origin,
                None => self.new_file()?,
            };
            let raw = entries(self.copy(changed, &file));
            let mut value = value.clone();
            restore_paths(&mut value, before.get(name).cloned(), raw.get(name).cloned(), &paths::base_of(&file));
            raw.insert(name, value);
        }
        for name in before.names().filter(|name| !now.contains(name)) {
            if let Some(file) = before.shared_origin(name) {
                entries(self.copy(changed, &file)).remove(name);
            }
        }
        Ok(())
    }

    fn route_fields(
        &mut self,
        changed: &mut Changed,
        fields: fn(&mut Kubeconfig) -> &mut Map<String, Value>,
    ) -> Result<(), Error> {
        let before = fields(&mut self.before).clone();
        let now = fields(&mut self.now).clone();
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for name in names.into_iter().filter(|name| before.get(*name) != now.get(*name)) {
            let file = self.first_file(|kubeconfig| fields(&mut kubeconfig.clone()).contains_key(name))?;
            let raw = fields(self.copy(changed, &file));
            match now.get(name) {
                Some(value) => raw.insert(name.clone(), value.clone()),
                None => raw.remove(name),
            };
        }
        Ok(())
    }

    /// Returns the first file for which `has` is true, or else the default file.
    fn first_file(&self, has: impl Fn(&Kubeconfig) -> bool) -> Result<Arc<Path>, Error> {
        match self.files.iter().find(|(_, kubeconfig)| has(kubeconfig)) {
            Some((path, _)) => Ok(Arc::clone(path)),
            None => self.new_file(),
        }
    }

    fn new_file(&self) -> Result<Arc<Path>, Error> {
        let missing = || Error::new(ErrorKind::Config, "no kubeconfig to write to: set KUBECONFIG or HOME");
        self.default_file.clone().ok_or_else(missing)
    }

    /// Returns the content that will be written to that file.
    fn copy<'a>(&self, changed: &'a mut Changed, file: &Arc<Path>) -> &'a mut Kubeconfig {
        changed.entry(Arc::clone(file)).or_insert_with(|| {
            let read = self.files.iter().find(|(path, _)| path == file);
            read.map(|(_, kubeconfig)| kubeconfig.clone()).unwrap_or_default()
        })
    }
}

type Changed = BTreeMap<Arc<Path>, Kubeconfig>;

/// Restores the original spelling of unchanged paths, and makes new ones relative.
fn restore_paths<T: EntryValue>(value: &mut T, mut before: Option<T>, mut raw: Option<T>, base: &Path) {
    let mut before: BTreeMap<_, _> = before.iter_mut().flat_map(EntryValue::paths).collect();
    let mut raw: BTreeMap<_, _> = raw.iter_mut().flat_map(EntryValue::paths).collect();
    for (field, path) in value.paths() {
        *path = match (before.remove(field), raw.remove(field)) {
            (Some(before), Some(raw)) if before == path => raw.clone(),
            _ => paths::relativize(base, path),
        };
        // A command without a separator would be looked up in PATH.
        if field == "exec.command" && path.components().count() == 1 {
            *path = Path::new(".").join(&path);
        }
    }
}

fn failed(path: &Path, why: &str, error: io::Error) -> Error {
    Problem::new("", why).in_file(Some(path.into())).with_source(error).into()
}

impl Deref for KubeconfigEdit {
    type Target = Kubeconfig;

    fn deref(&self) -> &Kubeconfig {
        &self.now
    }
}

impl DerefMut for KubeconfigEdit {
    fn deref_mut(&mut self) -> &mut Kubeconfig {
        &mut self.now
    }
}

impl fmt::Debug for KubeconfigEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeconfigEdit").field("kubeconfig", &self.now).finish_non_exhaustive()
    }
}
