//! Kubeconfig files: the format, the merging of several files, and writing changes back.
//!
//! Reading and writing back loses only comments and layout: unknown fields and extensions are preserved. Secrets
//! appear neither in `Debug` output nor in errors.
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
    fields::ObjectBuilder,
    problem::Problem,
};
use crate::Error;

/// Clusters, users and contexts, from one file or merged from several.
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
    /// The name of the context to use.
    pub current_context: Option<String>,
    /// The clusters, by name.
    pub clusters: Entries<Cluster>,
    /// The users, by name.
    pub users: Entries<AuthInfo>,
    /// The contexts, each a cluster, a user and a namespace.
    pub contexts: Entries<Context>,
    /// Data of other programs.
    pub extensions: Entries<Extension>,
    /// Settings for old command line tools, unused today.
    pub preferences: Map<String, Value>,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
    current_context_origin: Option<Arc<Path>>,
    format: text::Format,
}

impl Kubeconfig {
    /// Loads and merges the files in `KUBECONFIG`, or else `~/.kube/config`.
    ///
    /// Missing files are skipped. Relative paths are resolved.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is invalid.
    pub fn load() -> Result<Self, Error> {
        KubeconfigFiles::from_env().load()
    }

    /// Loads one file. Relative paths are resolved.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is missing, cannot be read or is invalid.
    #[doc(alias = "LoadFromFile")]
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        KubeconfigFiles::explicit(path.as_ref()).load()
    }

    /// Parses YAML or JSON, in UTF-8 or UTF-16. Relative paths are not resolved.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither, or if a field has the wrong type. The message names the field.
    #[doc(alias = "clientcmd.Load")]
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, Error> {
        Ok(Self::read(bytes.as_ref())?)
    }

    /// Returns the text of a file with this content, secrets included.
    ///
    /// # Errors
    ///
    /// Returns an error if YAML cannot express an extension.
    #[doc(alias = "clientcmd.Write")]
    pub fn to_yaml(&self) -> Result<String, Error> {
        Ok(text::write(&self.to_value(), text::Format::Yaml)?)
    }

    /// Returns whether nothing is configured.
    #[doc(alias = "IsConfigEmpty")]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    pub(crate) fn current_context_origin(&self) -> Option<Arc<Path>> {
        self.current_context_origin.clone()
    }

    fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let (value, format) = text::read(bytes)?;
        Ok(Self { format, ..Self::from_value(value)? })
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
            format: text::Format::default(),
        })
    }

    fn to_value(&self) -> Value {
        ObjectBuilder::new(&self.other)
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

    /// Records the file that all entries were read from.
    fn set_origin(&mut self, file: &Arc<Path>) {
        self.clusters.set_origin(file);
        self.users.set_origin(file);
        self.contexts.set_origin(file);
        self.extensions.set_origin(file);
        self.current_context_origin = self.current_context.as_ref().map(|_| Arc::clone(file));
    }

    /// Adds the entries and settings of a later file that are not set yet.
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

/// Parses YAML or JSON. An error names the position, never the content.
pub(in crate::client) fn read_text(bytes: &[u8]) -> Result<Value, Problem> {
    text::read(bytes).map(|(value, _)| value)
}

fn resolve_entries<T: entries::EntryValue>(entries: &mut Entries<T>) {
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

/// Compares the content; the origins of entries are ignored.
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

/// Serializes the content of a file, secrets included.
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
