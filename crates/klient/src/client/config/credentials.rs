//! The credentials of a client, and the user that it impersonates.

use std::{collections::BTreeMap, path::PathBuf};

use super::ExecPlugin;
use crate::{
    Error,
    client::config::{KubeconfigFiles, Secret, kubeconfig::AuthProviderConfig},
};

/// Credentials, besides a client certificate.
///
/// If a user of a kubeconfig has several, the first of these is used: a token file, a token, a password, a plugin, a
/// provider. A plugin is not used together with a client certificate.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Credentials {
    /// No credentials.
    #[default]
    Anonymous,
    /// A bearer token.
    Token(Secret),
    /// A bearer token from a file, which is read periodically.
    TokenFile {
        /// The path of the file.
        path: PathBuf,
        /// The token to use until the file can be read.
        initial: Secret,
    },
    /// A user name and a password.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// Credentials from a program.
    Exec(Box<ExecPlugin>),
    /// Credentials from a built-in provider.
    AuthProvider(Box<AuthProvider>),
}

/// A built-in provider, and the kubeconfig that stores its tokens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AuthProvider {
    /// The settings of the provider, tokens included.
    pub config: AuthProviderConfig,
    /// The kubeconfig, and the name of the user in it.
    pub(super) origin: Option<(PathBuf, String)>,
}

impl AuthProvider {
    /// Writes changed settings, such as new tokens, back to the kubeconfig that they were read from, if any.
    ///
    /// Blocks while other programs write to the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be locked, read or written.
    #[doc(alias = "AuthProviderConfigPersister")]
    pub fn persist(&self, settings: BTreeMap<String, String>) -> Result<(), Error> {
        self.update(|stored| *stored = settings)
    }

    /// Changes the settings in the kubeconfig, if any, while it is locked. `change` receives those that are stored.
    pub(crate) fn update(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<(), Error> {
        let Some((file, user)) = &self.origin else { return Ok(()) };
        KubeconfigFiles::explicit(file).modify(|kubeconfig| {
            // A provider that was removed from the file meanwhile is not added again.
            if let Some(provider) = kubeconfig.users.get_mut(user).and_then(|user| user.auth_provider.as_mut()) {
                change(&mut provider.config);
            }
        })
    }
}

impl AuthProvider {
    /// Creates a provider with settings that are not stored in a file.
    pub fn new(config: AuthProviderConfig) -> Self {
        Self { config, origin: None }
    }

    /// Returns the settings in the kubeconfig, or `None` if it cannot be read or has none any more.
    pub(crate) fn stored_settings(&self) -> Option<BTreeMap<String, String>> {
        let (file, user) = self.origin.as_ref()?;
        let kubeconfig = KubeconfigFiles::explicit(file).load().ok()?;
        let provider = kubeconfig.users.get(user)?.auth_provider.as_ref()?;
        (provider.name == self.config.name).then(|| provider.config.clone())
    }
}

/// Returns the reason why there is no built-in provider of that name.
pub(crate) fn why_not(name: &str) -> String {
    match name {
        "gcp" => "gcp was removed from clients: use exec with gke-gcloud-auth-plugin".to_owned(),
        "azure" => "azure was removed from clients: use exec with kubelogin (Azure/kubelogin)".to_owned(),
        other => format!("{other:?} is unknown: expected oidc"),
    }
}

/// The user to impersonate, if the server allows it.
#[doc(alias = "ImpersonationConfig")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Impersonation {
    /// The name of the user.
    pub user: String,
    /// The UID of the user.
    pub uid: Option<String>,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// Additional attributes of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// Creates the impersonation of that user.
    pub fn new(user: impl Into<String>) -> Self {
        Self { user: user.into(), ..Self::default() }
    }

    /// Sets the UID.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Sets the groups.
    #[must_use]
    pub fn groups(mut self, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.groups = groups.into_iter().map(Into::into).collect();
        self
    }

    /// Sets additional attributes of the user.
    #[must_use]
    pub fn extra(mut self, extra: BTreeMap<String, Vec<String>>) -> Self {
        self.extra = extra;
        self
    }
}
