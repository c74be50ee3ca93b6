//! The installation of a definition: checked, applied, established and served.

use std::{cmp::Ordering, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use klient_core::{ApiResource, GroupVersionKind, Scope, compare_versions};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::info;

use super::check;
use crate::{
    Api, Client, Error, ErrorKind, Result,
    client::{DynamicClient, verbs::ResponseFuture},
    deadline,
    retry::Backoff,
    wait::{Until, wait_for},
};

/// Installs a definition, or brings the installed one up to date, and waits until the server serves the kind.
///
/// ```no_run
/// # #[derive(klient::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// # #[kube(group = "example.com", version = "v1", kind = "Shop")]
/// # struct ShopSpec { size: u32 }
/// use klient::{Client, CustomResourceExt, custom::install};
///
/// # async fn start(client: Client) -> klient::Result<()> {
/// install(&client, Shop::crd()).manager("shop-operator").await?;
/// # Ok(())
/// # }
/// ```
///
/// The definition is [checked](check()) first, then applied by server-side apply with force. An older program does not undo
/// the definition of a newer one: see [`Install::allow_downgrade`].
///
/// # Errors
///
/// Returns an error if the definition is invalid, if it would remove a version or go back to an older stored version, if
/// the server refuses it, if its names are taken, or if the kind is not served within the [timeout](Install::timeout).
/// Nothing is changed on the server by the first two.
#[doc(alias = "CreateCRD")]
pub fn install(client: &Client, definition: CustomResourceDefinition) -> Install {
    Install {
        client: client.clone(),
        definition,
        manager: "klient".to_owned(),
        timeout: Duration::from_secs(30),
        downgrade: false,
    }
}

/// An installation of a definition. See [`install`].
#[derive(Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Install {
    client: Client,
    definition: CustomResourceDefinition,
    manager: String,
    timeout: Duration,
    downgrade: bool,
}

impl Install {
    /// Sets the field manager; by default `klient`.
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.manager = manager.into();
        self
    }

    /// Sets how long to wait until the kind is served; by default 30 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Allows that versions and a conversion webhook are removed, and that an older version is stored again.
    ///
    /// A version in which objects are stored cannot be removed in any case: call
    /// [`migrate_storage`](crate::custom::migrate_storage) first.
    pub fn allow_downgrade(mut self) -> Self {
        self.downgrade = true;
        self
    }

    async fn run(self) -> Result<CustomResourceDefinition> {
        let name = self.definition.metadata.name.clone().unwrap_or_default();
        let context = |error: Error| error.context(format!("cannot install the CustomResourceDefinition {name}"));
        check(&self.definition)
            .map_err(|error| context(Error::new(ErrorKind::Invalid, error.to_string()).with_source(error)))?;
        let deadline = deadline::after(Instant::now(), self.timeout);
        let definitions: Api<CustomResourceDefinition> = Api::cluster(self.client.clone());
        self.apply(&definitions, &name).await.map_err(context)?;
        let established = self.established(&definitions, &name, deadline).await.map_err(context)?;
        self.served(deadline).await.map_err(context)?;
        info!(name, "custom resource definition installed");
        Ok(established)
    }

    /// Applies the definition to the state that was read, so that a concurrent upgrade is not undone.
    async fn apply(&self, definitions: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
        let mut delays = Backoff::default().delays();
        loop {
            let mut definition = self.definition.clone();
            if let Some(installed) = definitions.get_opt(name).await? {
                self.refuse_downgrade(&installed)?;
                definition.metadata.resource_version = installed.metadata.resource_version;
            }
            match definitions.apply(&definition).manager(self.manager.as_str()).force().await {
                Err(error) if error.is_conflict() => match delays.next() {
                    Some(delay) => sleep(delay).await,
                    None => return Err(error),
                },
                applied => return applied.map(drop),
            }
        }
    }

    fn refuse_downgrade(&self, installed: &CustomResourceDefinition) -> Result<()> {
        let refuse = |reason: String| Err(Error::new(ErrorKind::Invalid, reason));
        if installed.metadata.deletion_timestamp.is_some() {
            return refuse("the installed definition is being deleted: wait until it is deleted".to_owned());
        }
        let has = |name: &str| self.definition.spec.versions.iter().any(|version| version.name == name);
        let stored = installed.status.iter().flat_map(|status| status.stored_versions.iter().flatten());
        if let Some(version) = stored.into_iter().find(|version| !has(version)) {
            return refuse(format!(
                "objects may be stored in version {version}, which this definition does not have: migrate them with \
                 `migrate_storage` and the newer program"
            ));
        }
        if self.downgrade {
            return Ok(());
        }
        if let Some(version) = installed.spec.versions.iter().find(|version| !has(&version.name)) {
            let name = &version.name;
            return refuse(format!(
                "version {name} is installed, and would be removed: call `allow_downgrade` if that is intended"
            ));
        }
        let storage = |definition: &CustomResourceDefinition| {
            definition.spec.versions.iter().find(|version| version.storage).map(|version| version.name.clone())
        };
        if let (Some(old), Some(new)) = (storage(installed), storage(&self.definition))
            && compare_versions(&old, &new) == Ordering::Greater
        {
            return refuse(format!(
                "version {old} is stored, and {new} would be stored instead, which is older: call `allow_downgrade` if that is intended"
            ));
        }
        let has_webhook = |definition: &CustomResourceDefinition| {
            definition.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook")
        };
        if has_webhook(installed) && !has_webhook(&self.definition) {
            return refuse(
                "the installed definition has a conversion webhook, and this one has none: call `allow_downgrade` if that is intended"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Waits until the names are accepted and the kind is established.
    async fn established(
        &self,
        definitions: &Api<CustomResourceDefinition>,
        name: &str,
        deadline: Instant,
    ) -> Result<CustomResourceDefinition> {
        let decided = Until::is(|definition: &CustomResourceDefinition| {
            is(definition, "Established", "True") || is(definition, "NamesAccepted", "False")
        })
        .described_as("condition Established=True");
        let left = deadline.saturating_duration_since(Instant::now());
        let found = wait_for(definitions, name, &decided, left).await?;
        let definition =
            found.ok_or_else(|| Error::new(ErrorKind::NotFound, "the definition was deleted meanwhile"))?;
        match condition(&definition, "NamesAccepted") {
            Some(names) if names.status == "False" => {
                let reason = names.reason.as_deref().unwrap_or("unknown reason");
                let message = names.message.as_deref().unwrap_or_default();
                let text = format!("the names are taken by another definition: {reason}: {message}");
                Err(Error::new(ErrorKind::Invalid, text))
            }
            _ => Ok(definition),
        }
    }

    /// Waits until each version is served: the server sets the condition a moment before.
    async fn served(&self, deadline: Instant) -> Result<()> {
        let spec = &self.definition.spec;
        let client = DynamicClient::new(self.client.clone());
        let scope = if spec.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
        for version in spec.versions.iter().filter(|version| version.served) {
            let gvk = GroupVersionKind::new(spec.group.clone(), version.name.clone(), spec.names.kind.clone());
            let objects = client.all(&ApiResource::new(gvk, spec.names.plural.clone(), scope));
            let polling = async {
                let backoff = Backoff::growing().first(Duration::from_millis(20)).max(Duration::from_secs(1));
                for delay in backoff.steps(u32::MAX).delays() {
                    match objects.list().limit(1).await {
                        Err(error) if error.is_not_found() => sleep(delay).await,
                        // The client is not authorized to list objects, so that there is nothing to wait for.
                        Err(error) if error.kind() == ErrorKind::Forbidden => return Ok(()),
                        result => return result.map(drop),
                    }
                }
                Ok(())
            };
            timeout_at(deadline, polling).await.unwrap_or_else(|_| {
                let message = format!("version {} is not served within {:?}", version.name, self.timeout);
                Err(Error::new(ErrorKind::Timeout, message))
            })?;
        }
        Ok(())
    }
}

impl IntoFuture for Install {
    type Output = Result<CustomResourceDefinition>;
    type IntoFuture = ResponseFuture<'static, CustomResourceDefinition>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

fn is(definition: &CustomResourceDefinition, type_: &str, status: &str) -> bool {
    condition(definition, type_).is_some_and(|condition| condition.status == status)
}

fn condition<'a>(
    definition: &'a CustomResourceDefinition,
    type_: &str,
) -> Option<&'a CustomResourceDefinitionCondition> {
    definition.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}
