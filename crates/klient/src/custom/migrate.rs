//! The migration of stored objects to the version that a definition stores.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient_core::{ApiResource, GroupVersionKind, Patch, ResourceExt, Scope};
use serde_json::json;
use tracing::info;

use crate::{
    Api, Client, Error, ErrorKind, Result,
    client::DynamicClient,
    retry::{Backoff, retry_on_error},
};

/// The result of [`migrate_storage`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// The version in which all objects are stored now.
    pub version: String,
    /// The number of objects that were rewritten.
    pub objects: u64,
    /// The versions in which no object is stored any more. They can be removed from the definition.
    pub removed: Vec<String>,
}

/// Rewrites all objects of a custom resource in the version that its definition stores, and then removes the other versions
/// from `status.storedVersions`.
///
/// `name` is the name of the definition, such as `shops.example.com`. An empty patch rewrites an object, so that a
/// concurrent write is not lost. It can be repeated after an error.
///
/// ```no_run
/// # async fn migrate(client: klient::Client) -> klient::Result<()> {
/// let migrated = klient::custom::migrate_storage(&client, "shops.example.com").await?;
/// println!("{} objects are stored as {}", migrated.objects, migrated.version);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns an error if a request fails, or if the stored version changes meanwhile.
#[doc(alias = "StorageVersionMigration")]
pub async fn migrate_storage(client: &Client, name: &str) -> Result<Migrated> {
    let context = |error: Error| error.context(format!("cannot migrate the stored objects of {name}"));
    migrate(client, name).await.map_err(context)
}

async fn migrate(client: &Client, name: &str) -> Result<Migrated> {
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition = definitions.get(name).await?;
    let version = stored_version(&definition)?;
    let resource = served_resource(&definition, &version)?;
    let dynamic = DynamicClient::new(client.clone());
    let mut pages = dynamic.all(&resource).metadata().list().limit(500).pages();
    let mut objects = 0;
    while let Some(page) = pages.next_page().await? {
        for object in &page {
            let api = dynamic.in_namespace(&resource, object.namespace().unwrap_or_default()).metadata();
            let rewrite = async || api.patch(object.name(), Patch::merge(json!({}))).await;
            let backoff = Backoff::growing().first(Duration::from_millis(50)).steps(8);
            match retry_on_error(backoff, Error::is_conflict, rewrite).await {
                Ok(_) => objects += 1,
                // It was deleted meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    let backoff = Backoff::growing().first(Duration::from_millis(50)).steps(8);
    let trim = async || trim(&definitions, &definition, &version).await;
    let removed = retry_on_error(backoff, Error::is_conflict, trim).await?;
    info!(name, version, objects, "stored objects migrated");
    Ok(Migrated { version, objects, removed })
}

/// Removes the other versions from the status, if the definition still stores the same version.
async fn trim(
    definitions: &Api<CustomResourceDefinition>,
    before: &CustomResourceDefinition,
    version: &str,
) -> Result<Vec<String>> {
    let name = before.name();
    let now = definitions.get(name).await?;
    if now.uid() != before.uid() || stored_version(&now)? != version {
        let message = "the definition was changed to store another version meanwhile: migrate again";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let stored = now.status.as_ref().and_then(|status| status.stored_versions.clone()).unwrap_or_default();
    let removed: Vec<String> = stored.into_iter().filter(|stored| stored != version).collect();
    if !removed.is_empty() {
        // With the version, the patch fails if the definition was changed after it was read.
        let patch = json!({
            "metadata": {"resourceVersion": now.resource_version()},
            "status": {"storedVersions": [version]},
        });
        definitions.status().patch(name, Patch::merge(patch)).await?;
    }
    Ok(removed)
}

fn stored_version(definition: &CustomResourceDefinition) -> Result<String> {
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    stored
        .map(|version| version.name.clone())
        .ok_or_else(|| Error::new(ErrorKind::Invalid, "the definition stores no version"))
}

/// Returns the resource in the stored version, or in any served one.
fn served_resource(definition: &CustomResourceDefinition, stored: &str) -> Result<ApiResource> {
    let spec = &definition.spec;
    let served = || spec.versions.iter().filter(|version| version.served);
    let version = served().find(|version| version.name == stored).or_else(|| served().next());
    let version = version.ok_or_else(|| Error::new(ErrorKind::Invalid, "the definition serves no version"))?;
    let gvk = GroupVersionKind::new(spec.group.clone(), version.name.clone(), spec.names.kind.clone());
    let scope = if spec.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
    Ok(ApiResource::new(gvk, spec.names.plural.clone(), scope))
}
