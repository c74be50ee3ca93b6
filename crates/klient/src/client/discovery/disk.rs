//! The discovery cache on disk, shared by runs of a program.
//!
//! There is one directory per server and one file per document. A file is replaced atomically, so that many processes
//! can share it. A file that is truncated, damaged or of another server is ignored. Its content is not secret, but it
//! is writable by its owner only: the content decides how a program resolves the names of resources.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{Root, RootApis, aggregated::GroupList};
use crate::client::{config::Config, config::environment::Environment};

/// A discovery cache on disk, with the time that a file is valid.
#[doc(alias = "CachedDiscoveryClient")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskCache {
    /// The directory of this server, created by the first write.
    pub directory: PathBuf,
    /// The maximum age of a file that is used without querying the server.
    pub max_age: Duration,
    server: String,
}

/// The content of a file.
#[derive(Debug)]
pub(super) struct CachedDocument {
    pub(super) apis: RootApis,
    /// The time since the server sent it, or `None` if that is unknown.
    pub(super) age: Option<Duration>,
}

/// The first line of a file, before the document.
#[derive(Deserialize, Serialize)]
struct Head {
    format: u32,
    server: String,
    path: String,
    etag: Option<String>,
    /// The time of writing, in seconds since 1970.
    saved: u64,
    length: usize,
    checksum: u64,
}

impl DiskCache {
    /// Creates a cache in that directory, which must be used for one server only.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), max_age: MAX_AGE, server: String::new() }
    }

    /// Creates a cache beside kubectl's: in `$KUBECACHEDIR` or `~/.kube/cache`, in a directory for that server. Returns
    /// `None` without a home directory.
    pub fn for_server(config: &Config) -> Option<Self> {
        Self::in_environment(config, &Environment::of_process())
    }

    /// Sets the maximum age of a file that is used without querying the server; six hours by default.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    fn in_environment(config: &Config, environment: &Environment) -> Option<Self> {
        let root = match environment.variable("KUBECACHEDIR") {
            Some(directory) => PathBuf::from(directory),
            None => environment.home()?.join(".kube").join("cache"),
        };
        let server = config.server.to_string();
        // The file format differs from kubectl's, so the directory does, too.
        Some(Self { server: server.clone(), ..Self::new(root.join("klient").join("discovery").join(folder(&server))) })
    }

    /// Loads a document.
    pub(super) fn load(&self, root: Root) -> Option<CachedDocument> {
        let text = fs::read(self.file(root)).ok()?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let (head, body) = (serde_json::from_slice::<Head>(&text[..end]).ok()?, &text[end + 1..]);
        let same = head.format == FORMAT && head.server == self.server && head.path == root.path();
        if !same || head.length != body.len() || head.checksum != checksum(body) {
            return None;
        }
        let (groups, failures) = serde_json::from_slice::<GroupList>(body).ok()?.read();
        let saved = UNIX_EPOCH.checked_add(Duration::from_secs(head.saved));
        // A file from the future was written by a wrong clock.
        let age = saved.and_then(|saved| SystemTime::now().duration_since(saved).ok());
        Some(CachedDocument { apis: RootApis { etag: head.etag, groups, failures }, age })
    }

    /// Stores a document with the current time.
    pub(super) fn save(&self, root: Root, apis: &RootApis) -> io::Result<()> {
        let body = serde_json::to_vec(&GroupList::new(&apis.groups, &apis.failures))?;
        let head = Head {
            format: FORMAT,
            server: self.server.clone(),
            path: root.path().to_owned(),
            etag: apis.etag.clone(),
            saved: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            length: body.len(),
            checksum: checksum(&body),
        };
        let mut text = serde_json::to_vec(&head)?;
        text.push(b'\n');
        text.extend_from_slice(&body);
        create_directory(&self.directory)?;
        replace(&self.file(root), &text)
    }

    fn file(&self, root: Root) -> PathBuf {
        self.directory.join(match root {
            Root::Core => "api.json",
            Root::Named => "apis.json",
        })
    }
}

/// Returns the name of a server's directory: its address, without characters that are special in paths.
fn folder(server: &str) -> String {
    let address = server.split_once("://").map_or(server, |(_, address)| address).trim_end_matches('/');
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    let name: String = address.chars().map(plain).collect();
    // Neither `.` nor `..`.
    if name.chars().all(|c| c == '.') { format!("_{name}") } else { name }
}

fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Replaces a file atomically: readers see the old text or the new one.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}.{count}.tmp", process::id()));
    // Removes the leftover of a process with the same id, and never follows a link.
    let _ = fs::remove_file(&temporary);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written =
        options.open(&temporary).and_then(|mut file| file.write_all(text)).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The file may not exist; the error above is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns the FNV-1a hash, which is enough to detect accidental damage.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

const FORMAT: u32 = 1;
const MAX_AGE: Duration = Duration::from_secs(6 * 60 * 60);

#[cfg(test)]
mod tests;
