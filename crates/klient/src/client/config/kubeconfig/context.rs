//! A context in a kubeconfig: a cluster, a user and a namespace.

use std::fmt;

use serde_json::{Map, Value};

use super::{
    entries::{Entries, EntryValue, read_entries, write_entries},
    extension::Extension,
    fields::{Fields, ObjectBuilder},
    problem::Problem,
};

/// A combination of a cluster, a user and a namespace.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Context {
    /// The name of the cluster.
    pub cluster: Option<String>,
    /// The name of the user; anonymous without one.
    pub user: Option<String>,
    /// The namespace of requests that do not name one.
    pub namespace: Option<String>,
    /// Data of other programs.
    pub extensions: Entries<Extension>,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
}

impl Context {
    /// Creates a context of that cluster and that user.
    pub fn new(cluster: impl Into<String>, user: impl Into<String>) -> Self {
        Self { cluster: Some(cluster.into()), user: Some(user.into()), ..Self::default() }
    }
}

impl EntryValue for Context {
    const NAMES: (&'static str, &'static str) = ("contexts", "context");

    fn read(path: String, value: Value) -> Result<Self, Problem> {
        let mut fields = Fields::new(path, value)?;
        Ok(Self {
            cluster: fields.text("cluster")?,
            user: fields.text("user")?,
            namespace: fields.text("namespace")?,
            extensions: read_entries(&mut fields)?,
            other: fields.rest(),
        })
    }

    fn write(&self) -> Value {
        ObjectBuilder::new(&self.other)
            .always("cluster", self.cluster.as_deref().unwrap_or_default())
            .always("user", self.user.as_deref().unwrap_or_default())
            .text("namespace", self.namespace.as_deref())
            .list("extensions", write_entries(&self.extensions))
            .done()
            .into()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("cluster", &self.cluster)
            .field("user", &self.user)
            .field("namespace", &self.namespace)
            .field("extensions", &self.extensions)
            .field("other", &self.other.keys().collect::<Vec<_>>())
            .finish()
    }
}
