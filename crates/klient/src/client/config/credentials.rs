//! How a client proves who asks, and as whom it acts.

use std::{collections::BTreeMap, path::PathBuf};

use super::ExecPlugin;
use crate::{
    Error,
    client::config::{KubeconfigFiles, Secret, kubeconfig::AuthProviderConfig},
};

/// How to prove who asks, besides a client certificate.
///
/// Where a user of a kubeconfig has several: a token file, a token, a password, a plugin, a provider, in this order. A
/// plugin is not used beside a client certificate.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Credentials {
    /// Not at all.
    #[default]
    Anonymous,
    /// With a bearer token.
    Token(Secret),
    /// With a bearer token from a file, which is read again and again.
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The token to begin with, and as long as the file cannot be read.
        initial: Secret,
    },
    /// With a name and a password.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// With what a program gives.
    Exec(Box<ExecPlugin>),
    /// With what a built-in provider gives.
    AuthProvider(Box<AuthProvider>),
}

/// A built-in provider, and where its tokens are kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AuthProvider {
    /// Its settings, the tokens included.
    pub config: AuthProviderConfig,
    /// The kubeconfig and the user in it.
    pub(super) origin: Option<(PathBuf, String)>,
}

impl AuthProvider {
    /// Writes changed settings, such as new tokens, back to the kubeconfig that they came from, if they did.
    ///
    /// Blocks while others write to it.
    ///
    /// # Errors
    ///
    /// If the file cannot be locked, read or written.
    #[doc(alias = "AuthProviderConfigPersister")]
    pub fn persist(&self, settings: BTreeMap<String, String>) -> Result<(), Error> {
        let Some((file, user)) = &self.origin else { return Ok(()) };
        KubeconfigFiles::explicit(file).modify(|kubeconfig| {
            // Whoever took the provider away in the meantime does not want it back.
            if let Some(provider) = kubeconfig.users.get_mut(user).and_then(|user| user.auth_provider.as_mut()) {
                provider.config = settings;
            }
        })
    }
}

impl AuthProvider {
    /// A provider with these settings, that are kept nowhere.
    pub fn new(config: AuthProviderConfig) -> Self {
        Self { config, origin: None }
    }

    /// The settings as the kubeconfig has them by now; none if it cannot be read, or has none any more.
    pub(crate) fn stored_settings(&self) -> Option<BTreeMap<String, String>> {
        let (file, user) = self.origin.as_ref()?;
        let kubeconfig = KubeconfigFiles::explicit(file).load().ok()?;
        let provider = kubeconfig.users.get(user)?.auth_provider.as_ref()?;
        (provider.name == self.config.name).then(|| provider.config.clone())
    }
}

/// Why there is no built-in provider of that name.
pub(crate) fn why_not(name: &str) -> String {
    match name {
        "gcp" => "gcp was removed from clients: use exec with gke-gcloud-auth-plugin".to_owned(),
        "azure" => "azure was removed from clients: use exec with kubelogin (Azure/kubelogin)".to_owned(),
        other => format!("{other:?} is not known, only oidc is"),
    }
}

/// Whom to act as, as far as the server allows it.
#[doc(alias = "ImpersonationConfig")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Impersonation {
    /// Name of the user.
    pub user: String,
    /// UID of the user.
    pub uid: Option<String>,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// More about the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// Acts as that user.
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

    /// Sets what more there is to say about the user.
    #[must_use]
    pub fn extra(mut self, extra: BTreeMap<String, Vec<String>>) -> Self {
        self.extra = extra;
        self
    }
}
