//! The environment of the process: variables, the home directory, the mounted service account.
//!
//! All code that reads the environment takes it as a value, so that tests run in parallel without changing the
//! process's own. Files are always the real ones.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The source of variables, and the directory where a pod's service account is mounted.
pub(crate) struct Environment {
    lookup: Lookup,
    service_account: PathBuf,
}

impl Environment {
    /// Returns the environment of this process.
    pub(crate) fn of_process() -> Self {
        Self { lookup: Box::new(|name| std::env::var_os(name)), service_account: PathBuf::from(SERVICE_ACCOUNT) }
    }

    /// Creates an environment for a test, with the service account mounted under `root`.
    #[cfg(test)]
    pub(crate) fn of_test(root: &Path, variables: &[(&str, &str)]) -> Self {
        let variables: std::collections::HashMap<_, _> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        Self {
            lookup: Box::new(move |name| variables.get(name).cloned()),
            service_account: root.join("serviceaccount"),
        }
    }

    /// Returns a variable. An empty variable is treated as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    /// Returns a variable, if it is UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.variable(name)?.into_string().ok()
    }

    /// Returns the home directory.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        if !cfg!(windows) {
            return self.variable("HOME").map(PathBuf::from);
        }
        let drive_and_path = || {
            let mut home = self.variable("HOMEDRIVE")?;
            home.push(self.variable("HOMEPATH")?);
            Some(home)
        };
        let homes = [self.variable("HOME"), drive_and_path(), self.variable("USERPROFILE")];
        let homes: Vec<PathBuf> = homes.into_iter().flatten().map(PathBuf::from).collect();
        let find = |matches: fn(&Path) -> bool| homes.iter().find(|home| matches(home)).cloned();
        find(|home| home.join(".kube").join("config").exists())
            .or_else(|| find(Path::exists))
            .or(homes.into_iter().next())
    }

    /// Returns the path of a file of the mounted service account: `token`, `ca.crt` or `namespace`.
    pub(crate) fn service_account_file(&self, name: &str) -> PathBuf {
        self.service_account.join(name)
    }
}

type Lookup = Box<dyn Fn(&str) -> Option<OsString>>;

const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variable_is_treated_as_unset() {
        let environment = Environment::of_test(Path::new("/nowhere"), &[("KUBECONFIG", ""), ("HOME", "/home/me")]);
        assert_eq!(environment.variable("KUBECONFIG"), None);
        assert_eq!(environment.variable("OTHER"), None);
        assert_eq!(environment.text("HOME").as_deref(), Some("/home/me"));
    }
}
