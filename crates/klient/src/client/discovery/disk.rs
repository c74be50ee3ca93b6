//! What a server offers, kept in files between runs of a program.
//!
//! One folder per server, one file per document. A file is replaced as a whole, so that many processes can share it; one
//! that is cut, changed or of another server is as good as none. Nothing in it is secret, and yet it is for its owner
//! only: whoever can write it decides what a program takes a name for.

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

/// Where on disk to keep what a server offers, and for how long it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskCache {
    /// The folder of this server; made when something is kept.
    pub directory: PathBuf,
    /// How old a file may be to be believed without asking the server.
    pub max_age: Duration,
    server: String,
}

/// What a file holds.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) apis: RootApis,
    /// When the server said so; nothing if that cannot be told.
    pub(super) age: Option<Duration>,
}

/// The first line of a file; the document follows.
#[derive(Deserialize, Serialize)]
struct Head {
    format: u32,
    server: String,
    path: String,
    etag: Option<String>,
    /// Seconds since 1970.
    saved: u64,
    length: usize,
    checksum: u64,
}

impl DiskCache {
    /// Keeps files in that folder, which must be of one server only.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), max_age: MAX_AGE, server: String::new() }
    }

    /// Keeps files where kubectl has its own: in `$KUBECACHEDIR` or `~/.kube/cache`, in a folder for that server.
    /// Nothing, if there is no home directory.
    pub fn for_server(config: &Config) -> Option<Self> {
        Self::in_environment(config, &Environment::of_process())
    }

    /// Sets how old a file may be to be believed without asking the server. Six hours unless set.
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
        // The form that klient writes is its own, and so is the folder.
        Some(Self { server: server.clone(), ..Self::new(root.join("klient").join("discovery").join(folder(&server))) })
    }

    /// What is kept of a document.
    pub(super) fn load(&self, root: Root) -> Option<Kept> {
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
        Some(Kept { apis: RootApis { etag: head.etag, groups, failures }, age })
    }

    /// Keeps a document as of now.
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

/// The name of a server's folder: its address, with everything that may mean something in a path replaced.
fn folder(server: &str) -> String {
    let address = server.split_once("://").map_or(server, |(_, address)| address).trim_end_matches('/');
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    let name: String = address.chars().map(plain).collect();
    // Neither the folder itself nor the one above it.
    if name.chars().all(|c| c == '.') { format!("_{name}") } else { name }
}

fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Writes beside the file, then takes its name: readers see the old text or the new one.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}.{count}.tmp", process::id()));
    // One that a process of the same number left behind; and never through a link that someone else has put there.
    let _ = fs::remove_file(&temporary);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written =
        options.open(&temporary).and_then(|mut file| file.write_all(text)).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // It may never have been made; what counts is the error above.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// FNV-1a: tells an accident, which is all that has to be told here.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

const FORMAT: u32 = 1;
const MAX_AGE: Duration = Duration::from_secs(6 * 60 * 60);

#[cfg(test)]
mod tests;
