//! The credential plugins that may run.
//!
//! A kubeconfig from someone else can name any program. A policy limits what it can start.

use std::path::{Path, PathBuf};

/// A policy for credential plugins.
///
/// ```
/// use klient::client::config::PluginPolicy;
///
/// let policy = PluginPolicy::allowlist(["aws", "/opt/bin/kubelogin"]);
/// ```
#[doc(alias = "credentialPluginPolicy")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginPolicy {
    /// Every plugin may run.
    #[default]
    AllowAll,
    /// No plugin may run.
    DenyAll,
    /// Only these programs may run: absolute paths, or names to look up in this process's `PATH`.
    ///
    /// The command of a plugin is looked up in the same way. It may run if it is the same file as one of these: `aws` in
    /// the list does not allow `/tmp/aws`.
    #[doc(alias = "credentialPluginAllowlist")]
    Allowlist(Vec<PathBuf>),
}

impl PluginPolicy {
    /// Creates a policy that allows these programs only.
    pub fn allowlist(programs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self::Allowlist(programs.into_iter().map(Into::into).collect())
    }

    /// Checks the policy itself. A list that allows nothing is more likely a mistake than an intention.
    pub(in crate::client) fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Allowlist(programs) if programs.is_empty() => {
                Err("the allowlist of credential plugins is empty: use PluginPolicy::DenyAll")
            }
            Self::Allowlist(programs) if programs.iter().any(|program| program.as_os_str().is_empty()) => {
                Err("the allowlist of credential plugins has an empty entry")
            }
            _ => Ok(()),
        }
    }

    /// Returns the program to start for a command, or the reason why it may not run.
    ///
    /// With an allowlist that is the path which was checked, so that no other lookup finds another program.
    pub(in crate::client) fn program(&self, command: &Path) -> Result<PathBuf, &'static str> {
        let programs = match self {
            Self::AllowAll => return Ok(command.to_owned()),
            Self::DenyAll => return Err("may not run: the plugin policy denies all plugins"),
            Self::Allowlist(programs) => programs,
        };
        let found = look_up(command).ok_or("may not run: it is not found, so that it cannot be in the allowlist")?;
        let is_allowed = programs.iter().any(|program| look_up(program).as_ref() == Some(&found));
        if is_allowed { Ok(found) } else { Err("may not run: it is not in the allowlist of the plugin policy") }
    }
}

/// Returns the file of a command: a path as it is, and a name as `PATH` finds it.
fn look_up(command: &Path) -> Option<PathBuf> {
    if command.components().count() > 1 || command.is_absolute() {
        let path = std::path::absolute(command).ok()?;
        return is_program(&path).then_some(path);
    }
    let folders = std::env::var_os("PATH")?;
    // Relative entries depend on the working directory, and are skipped as in Go.
    let folders = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
    folders.map(|folder| with_suffix(folder.join(command))).find(|path| is_program(path))
}

fn with_suffix(mut path: PathBuf) -> PathBuf {
    if path.extension().is_none() && !std::env::consts::EXE_EXTENSION.is_empty() {
        path.set_extension(std::env::consts::EXE_EXTENSION);
    }
    path
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
