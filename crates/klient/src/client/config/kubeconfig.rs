//! Kubeconfig files: the format, how several become one, and how a change finds its way back.
//!
//! Nothing is lost between reading and writing but comments and layout: unknown fields and extensions stay. Secrets
//! show neither in `Debug` nor in errors.
//! In client-go: `tools/clientcmd`, whose rules these are.

mod auth_provider;
mod cluster;
mod context;
mod edit;
mod entries;
mod exec;
mod extension;
mod fields;
mod files;
mod lock;
mod overrides;
mod paths;
pub(crate) mod problem;
mod replace;
mod text;
mod user;

use std::{fmt, path::Path, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

pub use self::{
    auth_provider::AuthProviderConfig,
    cluster::Cluster,
    context::Context,
    edit::KubeconfigEdit,
    entries::Entries,
    exec::{ExecConfig, ExecEnvVar},
    extension::Extension,
    files::KubeconfigFiles,
    overrides::Overrides,
    user::AuthInfo,
};
use self::{
    entries::{read_entries, write_entries},
    fields::Making,
    problem::Problem,
};
use crate::Error;

/// Clusters, users, and contexts that join them; from one file or from several.
///
/// ```
/// use klient::client::config::Kubeconfig;
///
/// let kubeconfig: Kubeconfig = "
/// current-context: kind
/// clusters: [{name: kind, cluster: {server: 'https://127.0.0.1:6443'}}]
/// users: [{name: admin, user: {token: s3cret}}]
/// contexts: [{name: kind, context: {cluster: kind, user: admin}}]
/// ".parse()?;
/// assert_eq!(kubeconfig.current_context.as_deref(), Some("kind"));
/// assert_eq!(kubeconfig.contexts.get("kind").unwrap().user.as_deref(), Some("admin"));
/// assert!(!format!("{kubeconfig:?}").contains("s3cret"));
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "clientcmdapi.Config")]
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Kubeconfig {
    /// Name of the context to use.
    pub current_context: Option<String>,
    /// Servers.
    pub clusters: Entries<Cluster>,
    /// Credentials.
    pub users: Entries<AuthInfo>,
    /// What to use together.
    pub contexts: Entries<Context>,
    /// What other programs keep here.
    pub extensions: Entries<Extension>,
    /// Once for command line tools; nothing uses it any more.
    pub preferences: Map<String, Value>,
    /// Fields that this version does not know; written back as they are.
    pub other: Map<String, Value>,
    current_context_origin: Option<Arc<Path>>,
    form: text::Form,
}

impl Kubeconfig {
    /// Loads what the environment names: the files in `KUBECONFIG`, or else `~/.kube/config`, merged.
    ///
    /// Missing files are skipped. Relative paths are resolved.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or makes no sense.
    pub fn load() -> Result<Self, Error> {
        KubeconfigFiles::from_env().load()
    }

    /// Loads one file. Relative paths are resolved.
    ///
    /// # Errors
    ///
    /// If the file is missing, cannot be read or makes no sense.
    #[doc(alias = "LoadFromFile")]
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        KubeconfigFiles::explicit(path.as_ref()).load()
    }

    /// Reads YAML or JSON, in UTF-8 or UTF-16. Relative paths stay as they are.
    ///
    /// # Errors
    ///
    /// If it is neither, or a field has the wrong type; the message names the field.
    #[doc(alias = "clientcmd.Load")]
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, Error> {
        Ok(Self::read(bytes.as_ref())?)
    }

    /// The text of a file that holds all of this, secrets included.
    ///
    /// # Errors
    ///
    /// If an extension is something that YAML cannot express.
    #[doc(alias = "clientcmd.Write")]
    pub fn to_yaml(&self) -> Result<String, Error> {
        Ok(text::write(&self.to_value(), text::Form::Yaml)?)
    }

    /// Whether it says nothing at all.
    #[doc(alias = "IsConfigEmpty")]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    pub(crate) fn current_context_origin(&self) -> Option<Arc<Path>> {
        self.current_context_origin.clone()
    }

    fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let (value, form) = text::read(bytes)?;
        Ok(Self { form, ..Self::from_value(value)? })
    }

    fn from_value(value: Value) -> Result<Self, Problem> {
        let mut fields = fields::Fields::new("", value)?;
        for (field, expected) in [("apiVersion", "v1"), ("kind", "Config")] {
            if let Some(found) = fields.text(field)?
                && found != expected
            {
                return Err(Problem::new(field, format!("expected {expected:?}, found {found:?}")));
            }
        }
        Ok(Self {
            current_context: fields.text("current-context")?,
            clusters: read_entries(&mut fields)?,
            users: read_entries(&mut fields)?,
            contexts: read_entries(&mut fields)?,
            extensions: read_entries(&mut fields)?,
            preferences: fields.object("preferences")?.map(fields::Fields::rest).unwrap_or_default(),
            other: fields.rest(),
            current_context_origin: None,
            form: text::Form::default(),
        })
    }

    fn to_value(&self) -> Value {
        Making::new(&self.other)
            .always("apiVersion", "v1")
            .always("kind", "Config")
            .always("current-context", self.current_context.as_deref().unwrap_or_default())
            .always("clusters", write_entries(&self.clusters))
            .always("users", write_entries(&self.users))
            .always("contexts", write_entries(&self.contexts))
            .list("extensions", write_entries(&self.extensions))
            .object("preferences", Some(self.preferences.clone()).filter(|preferences| !preferences.is_empty()))
            .done()
            .into()
    }

    /// Remembers which file all of this was read from.
    fn set_origin(&mut self, file: &Arc<Path>) {
        self.clusters.set_origin(file);
        self.users.set_origin(file);
        self.contexts.set_origin(file);
        self.extensions.set_origin(file);
        self.current_context_origin = self.current_context.as_ref().map(|_| Arc::clone(file));
    }

    /// Adds what a later file says, as far as this says nothing about it.
    fn add_missing(&mut self, later: Self) {
        if self.current_context.is_none() {
            self.current_context = later.current_context;
            self.current_context_origin = later.current_context_origin;
        }
        self.clusters.add_missing(later.clusters);
        self.users.add_missing(later.users);
        self.contexts.add_missing(later.contexts);
        self.extensions.add_missing(later.extensions);
        for (field, value) in later.preferences {
            self.preferences.entry(field).or_insert(value);
        }
        for (field, value) in later.other {
            self.other.entry(field).or_insert(value);
        }
    }

    fn resolve_paths(&mut self) {
        resolve_entries(&mut self.clusters);
        resolve_entries(&mut self.users);
    }
}

/// Reads YAML or JSON. The error says where, and never what.
pub(in crate::client) fn read_text(bytes: &[u8]) -> Result<Value, Problem> {
    text::read(bytes).map(|(value, _)| value)
}

fn resolve_entries<T: entries::Stanza>(entries: &mut Entries<T>) {
    for entry in entries.entries_mut() {
        let Some(origin) = &entry.origin else { continue };
        let base = paths::base_of(origin);
        for (_, path) in entry.value.paths() {
            *path = paths::resolve(&base, path);
        }
    }
}

impl FromStr for Kubeconfig {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// By content; where it came from does not matter.
impl PartialEq for Kubeconfig {
    fn eq(&self, other: &Self) -> bool {
        self.current_context == other.current_context
            && self.clusters == other.clusters
            && self.users == other.users
            && self.contexts == other.contexts
            && self.extensions == other.extensions
            && self.preferences == other.preferences
            && self.other == other.other
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("current_context", &self.current_context)
            .field("clusters", &self.clusters)
            .field("users", &self.users)
            .field("contexts", &self.contexts)
            .field("extensions", &self.extensions)
            .field("preferences", &self.preferences.keys().collect::<Vec<_>>())
            .field("other", &self.other.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// As in a file, secrets included.
impl Serialize for Kubeconfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Kubeconfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
