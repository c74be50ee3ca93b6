//! Objects that are stored as they are: what another server wrote, for tests and for replays of a recording.
//!
//! Nothing is defaulted, validated, admitted or owned. Watches and caches see such a write as they see any other.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{
    managed::text,
    metadata,
    registry::Resource,
    server::{ApiServer, Core},
    store::{CommitError, Expected, Write},
};

/// An error of an object that could not be restored.
#[derive(Debug)]
pub struct RestoreError {
    message: String,
}

impl ApiServer {
    /// Stores an object exactly as another server wrote it: with its UID, times, status and field managers. An object with the same name is
    /// replaced.
    ///
    /// The object keeps its resource version, unless the server has reached that revision already.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Client};
    /// use klient_apiserver::ApiServer;
    /// use serde_json::json;
    ///
    /// let server = ApiServer::builder().revision(1000).start().await?;
    /// server
    ///     .restore(json!({
    ///         "apiVersion": "v1",
    ///         "kind": "ConfigMap",
    ///         "metadata": {"name": "web", "namespace": "default", "uid": "a-uid", "resourceVersion": "4711"},
    ///     }))
    ///     .await?;
    /// let maps: Api<ConfigMap> = Api::namespaced(Client::from_service(server.service()), "default");
    /// let web = maps.get("web").await?;
    /// assert_eq!((web.metadata.uid.as_deref(), web.metadata.resource_version.as_deref()), (Some("a-uid"), Some("4711")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the object has no name, or is of a kind that the server does not have: restore or create its
    /// `CustomResourceDefinition` first.
    pub async fn restore(&self, mut object: Value) -> Result<(), RestoreError> {
        let core = self.core();
        let resource = resource_of(core, &object)?;
        let name = metadata::text(&object, "name").to_owned();
        if name.is_empty() {
            return Err(RestoreError::new(format!("cannot restore a {} without a name", resource.kind)));
        }
        let key = resource.key(metadata::text(&object, "namespace"), &name);
        if let Ok(version) = metadata::text(&object, "resourceVersion").parse::<u64>() {
            self.skip_to_revision(version);
        }
        text::fold(&mut object);
        let failed =
            |what: &dyn fmt::Display| RestoreError::new(format!("cannot restore {} {key}: {what}", resource.kind));
        let mut put = core.to_storage(&resource, object).await.map_err(|status| failed(&status.message))?;
        loop {
            let expected = expected(core, &resource, &key);
            match core.store.commit(&resource.table, &key, expected, Write::Put(put.clone())).await {
                Ok(committed) => {
                    core.after_change(&resource, &committed).await;
                    return Ok(());
                }
                // A client wrote the object meanwhile.
                Err(CommitError::Changed(_)) => metadata::of(&mut put).remove("resourceVersion"),
                Err(CommitError::Invalid(error) | CommitError::Disk(error)) => return Err(failed(&error)),
            };
        }
    }

    /// Skips the revisions before this one: the next write has it as its resource version, unless the server has reached it already.
    pub fn skip_to_revision(&self, revision: u64) {
        self.core().store.raise(revision.saturating_sub(1));
    }

    /// Removes an object, whatever its finalizers are. Watches see its last state. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Returns an error if `object` is of a kind that the server does not have. Only its `apiVersion`, `kind`, name and namespace matter; its resource
    /// version becomes that of the deletion, unless the server has reached that revision already.
    pub async fn erase(&self, object: &Value) -> Result<bool, RestoreError> {
        let core = self.core();
        let resource = resource_of(core, object)?;
        let key = resource.key(metadata::text(object, "namespace"), metadata::text(object, "name"));
        if let Ok(version) = metadata::text(object, "resourceVersion").parse::<u64>() {
            self.skip_to_revision(version);
        }
        loop {
            let Some(stored) = core.store.get(&resource.table, &key) else { return Ok(false) };
            let expected = Expected::Revision(stored.revision);
            match core.store.commit(&resource.table, &key, expected, Write::Delete(stored.value())).await {
                Ok(committed) => {
                    core.after_change(&resource, &committed).await;
                    return Ok(true);
                }
                Err(CommitError::Changed(_)) => {}
                Err(CommitError::Invalid(error) | CommitError::Disk(error)) => {
                    return Err(RestoreError::new(format!("cannot erase {} {key}: {error}", resource.kind)));
                }
            }
        }
    }
}

fn expected(core: &Core, resource: &Resource, key: &str) -> Expected {
    let stored = core.store.get(&resource.table, key);
    stored.map_or(Expected::Absent, |stored| Expected::Revision(stored.revision))
}

fn resource_of(core: &Core, object: &Value) -> Result<Arc<Resource>, RestoreError> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    core.registry.groups().of_kind(group, version, kind).ok_or_else(|| {
        RestoreError::new(format!(
            "the server has no kind {kind:?} of {api_version:?}: restore its CustomResourceDefinition first"
        ))
    })
}

impl RestoreError {
    fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RestoreError {}
