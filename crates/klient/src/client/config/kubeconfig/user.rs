//! A user in a kubeconfig: credentials, and the user to impersonate.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    auth_provider::AuthProviderConfig,
    entries::{Entries, EntryValue, read_entries, write_entries},
    exec::ExecConfig,
    extension::Extension,
    fields::{Fields, ObjectBuilder},
    problem::Problem,
};
use crate::client::{config::EmbeddedData, config::Secret};

/// Credentials, and the user to impersonate.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct AuthInfo {
    /// The file with the client certificate. Cannot be set together with the data.
    pub client_certificate: Option<PathBuf>,
    /// The client certificate.
    pub client_certificate_data: Option<EmbeddedData>,
    /// The file with the client's private key. Cannot be set together with the data.
    pub client_key: Option<PathBuf>,
    /// The client's private key.
    pub client_key_data: Option<EmbeddedData>,
    /// The bearer token. Cannot be set together with a password.
    pub token: Option<Secret>,
    /// The file with a bearer token, which is read periodically and takes precedence over `token`.
    pub token_file: Option<PathBuf>,
    /// The user to impersonate.
    pub impersonate: Option<String>,
    /// The UID to impersonate.
    pub impersonate_uid: Option<String>,
    /// The groups to impersonate.
    pub impersonate_groups: Vec<String>,
    /// Additional attributes of the user to impersonate.
    pub impersonate_extra: BTreeMap<String, Vec<String>>,
    /// The user name for basic authentication.
    pub username: Option<String>,
    /// The password for basic authentication.
    pub password: Option<Secret>,
    /// A built-in auth provider; `oidc` is the only one left.
    pub auth_provider: Option<AuthProviderConfig>,
    /// A program that returns credentials.
    pub exec: Option<ExecConfig>,
    /// Data of other programs.
    pub extensions: Entries<Extension>,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
}

impl AuthInfo {
    /// Creates a user with a bearer token.
    pub fn with_token(token: impl Into<Secret>) -> Self {
        Self { token: Some(token.into()), ..Self::default() }
    }
}

impl EntryValue for AuthInfo {
    const NAMES: (&'static str, &'static str) = ("users", "user");

    fn read(path: String, value: Value) -> Result<Self, Problem> {
        let mut fields = Fields::new(path, value)?;
        Ok(Self {
            client_certificate: fields.path("client-certificate")?,
            client_certificate_data: fields.data("client-certificate-data")?,
            client_key: fields.path("client-key")?,
            client_key_data: fields.data("client-key-data")?,
            token: fields.secret("token")?,
            token_file: fields.path("tokenFile")?,
            impersonate: fields.text("as")?,
            impersonate_uid: fields.text("as-uid")?,
            impersonate_groups: fields.texts("as-groups")?,
            impersonate_extra: read_extra(&mut fields)?,
            username: fields.text("username")?,
            password: fields.secret("password")?,
            auth_provider: fields.object("auth-provider")?.map(AuthProviderConfig::read).transpose()?,
            exec: fields.object("exec")?.map(ExecConfig::read).transpose()?,
            extensions: read_entries(&mut fields)?,
            other: fields.rest(),
        })
    }

    fn write(&self) -> Value {
        let extra: Map<String, Value> =
            self.impersonate_extra.iter().map(|(key, values)| (key.clone(), values.as_slice().into())).collect();
        let data = |data: &'_ Option<EmbeddedData>| data.as_ref().map(|data| data.as_base64().to_owned());
        ObjectBuilder::new(&self.other)
            .path("client-certificate", self.client_certificate.as_ref())
            .text("client-certificate-data", data(&self.client_certificate_data).as_deref())
            .path("client-key", self.client_key.as_ref())
            .text("client-key-data", data(&self.client_key_data).as_deref())
            .text("token", self.token.as_ref().map(Secret::expose))
            .path("tokenFile", self.token_file.as_ref())
            .text("as", self.impersonate.as_deref())
            .text("as-uid", self.impersonate_uid.as_deref())
            .list("as-groups", self.impersonate_groups.iter().map(String::as_str))
            .object("as-user-extra", Some(extra).filter(|extra| !extra.is_empty()))
            .text("username", self.username.as_deref())
            .text("password", self.password.as_ref().map(Secret::expose))
            .object("auth-provider", self.auth_provider.as_ref().map(AuthProviderConfig::write))
            .object("exec", self.exec.as_ref().map(ExecConfig::write))
            .list("extensions", write_entries(&self.extensions))
            .done()
            .into()
    }

    fn paths(&mut self) -> Vec<(&'static str, &mut PathBuf)> {
        // A command without a separator is looked up in PATH.
        let command = self.exec.as_mut().map(|exec| &mut exec.command).filter(|command| has_separator(command));
        let named = [
            ("client-certificate", self.client_certificate.as_mut()),
            ("client-key", self.client_key.as_mut()),
            ("tokenFile", self.token_file.as_mut()),
            ("exec.command", command),
        ];
        named.into_iter().filter_map(|(field, path)| path.map(|path| (field, path))).collect()
    }
}

fn has_separator(path: &Path) -> bool {
    path.to_string_lossy().contains(std::path::MAIN_SEPARATOR)
}

fn read_extra(fields: &mut Fields) -> Result<BTreeMap<String, Vec<String>>, Problem> {
    let Some(mut extra) = fields.object("as-user-extra")? else { return Ok(BTreeMap::new()) };
    extra.names().into_iter().map(|key| Ok((key.clone(), extra.texts(&key)?))).collect()
}

impl fmt::Debug for AuthInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthInfo")
            .field("client_certificate", &self.client_certificate)
            .field("client_certificate_data", &self.client_certificate_data)
            .field("client_key", &self.client_key)
            .field("client_key_data", &self.client_key_data)
            .field("token", &self.token)
            .field("token_file", &self.token_file)
            .field("impersonate", &self.impersonate)
            .field("impersonate_uid", &self.impersonate_uid)
            .field("impersonate_groups", &self.impersonate_groups)
            .field("impersonate_extra", &self.impersonate_extra)
            .field("username", &self.username)
            .field("password", &self.password)
            .field("auth_provider", &self.auth_provider)
            .field("exec", &self.exec)
            .field("extensions", &self.extensions)
            .field("other", &self.other.keys().collect::<Vec<_>>())
            .finish()
    }
}
