//! A progress bar on a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    sync::{Mutex, PoisonError},
};

use klient::client::streams::Copied;

/// A line of a terminal that shows how far a copy is. Nothing is written where standard error is no terminal.
pub(crate) struct ProgressBar {
    /// The number of bytes to copy, if known.
    total: Option<u64>,
    /// The line that is shown now.
    shown: Option<Mutex<String>>,
}

impl ProgressBar {
    /// Creates a bar for a copy of this many bytes.
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self { total, shown: io::stderr().is_terminal().then(Mutex::default) }
    }

    /// Shows the progress, if it differs from what is shown.
    pub(crate) fn show(&self, copied: &Copied) {
        let Some(shown) = &self.shown else { return };
        let text = line(copied, self.total);
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != text {
            // Progress that cannot be shown is no failure.
            let _ = write!(io::stderr(), "\r{text}");
            *shown = text;
        }
    }

    /// Ends the line.
    pub(crate) fn end(&self) {
        if self.shown.is_some() {
            let _ = writeln!(io::stderr());
        }
    }
}

/// Returns the number of bytes in the files of a path. Files that cannot be read count as empty: the copy reports them.
pub(crate) fn bytes_in(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else { return 0 };
    if !metadata.is_dir() {
        return if metadata.is_file() { metadata.len() } else { 0 };
    }
    std::fs::read_dir(path).map_or(0, |entries| entries.flatten().map(|entry| bytes_in(&entry.path())).sum())
}

fn line(copied: &Copied, total: Option<u64>) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let done = megabytes(copied.bytes);
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{} entries, {done:.1} MB", copied.entries);
    };
    // A file may grow while it is copied.
    let part = (copied.bytes as f64 / total as f64).min(1.0);
    let filled = "#".repeat((part * WIDTH as f64) as usize);
    format!("[{filled:WIDTH$}] {:3.0} % of {:.1} MB, {} entries", part * 100.0, megabytes(total), copied.entries)
}

/// The number of characters in a full bar.
const WIDTH: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bytes: u64) -> Copied {
        let mut copied = Copied::default();
        (copied.entries, copied.bytes) = (3, bytes);
        copied
    }

    #[test]
    fn bar_fills_up_and_is_never_too_long() {
        assert_eq!(line(&at(0), Some(4_000_000)), format!("[{}]   0 % of 4.0 MB, 3 entries", " ".repeat(30)));
        assert_eq!(
            line(&at(2_000_000), Some(4_000_000)),
            format!("[{}{}]  50 % of 4.0 MB, 3 entries", "#".repeat(15), " ".repeat(15))
        );
        assert_eq!(line(&at(9_000_000), Some(4_000_000)), format!("[{}] 100 % of 4.0 MB, 3 entries", "#".repeat(30)));
    }

    #[test]
    fn bar_of_an_unknown_size_counts() {
        assert_eq!(line(&at(1_500_000), None), "3 entries, 1.5 MB");
        assert_eq!(line(&at(0), Some(0)), "3 entries, 0.0 MB");
    }

    #[test]
    fn bytes_of_a_folder_are_those_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        std::fs::write(folder.path().join("a"), "123").unwrap();
        std::fs::write(folder.path().join("inner/b"), "4567").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        assert_eq!(bytes_in(folder.path()), 7);
        assert_eq!(bytes_in(&folder.path().join("a")), 3);
        assert_eq!(bytes_in(&folder.path().join("missing")), 0);
    }
}
