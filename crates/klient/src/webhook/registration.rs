//! Registrations: the configurations of admission webhooks and the conversion of definitions, built from the code.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::{
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient_core::{ClusterScope, Resource};
use serde_json::{Value, json};

use super::{
    Webhooks,
    hook::Sort,
    service::{CONVERT, Named},
};
use crate::{
    Api, Client, Error, ErrorKind,
    custom::{ConversionReview, CustomResourceExt, Versions},
};

/// Where webhooks are called.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Service { namespace: String, name: String, port: u16 },
    Url(String),
}

impl Place {
    /// Returns the `clientConfig` of a path.
    fn client_config(&self, path: &str, authority: Option<&str>) -> Value {
        let mut config = match self {
            Self::Service { namespace, name, port } => {
                json!({"service": {"namespace": namespace, "name": name, "port": port, "path": path}})
            }
            Self::Url(url) => json!({"url": format!("{url}{path}")}),
        };
        if let Some(authority) = authority {
            config["caBundle"] = json!(STANDARD.encode(authority));
        }
        config
    }

    /// Returns the names that a certificate must have, the one that the server verifies first.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name, .. } => vec![
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}"),
                format!("{name}.{namespace}.svc.cluster.local"),
            ],
            Self::Url(url) => {
                let uri: http::Uri = url.parse().unwrap_or_default();
                let host = uri.host().unwrap_or("localhost");
                vec![host.trim_start_matches('[').trim_end_matches(']').to_owned()]
            }
        }
    }
}

/// The versions of a custom kind, with the hub's type erased.
pub(super) trait AnyVersions: Send + Sync {
    fn has(&self, api_version: &str, kind: &str) -> bool;
    fn convert_review(&self, review: ConversionReview) -> ConversionReview;
    fn definition(&self) -> Result<CustomResourceDefinition, Error>;
}

impl<Hub: Resource + CustomResourceExt> AnyVersions for Versions<Hub> {
    fn has(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        group == Hub::GROUP && kind == Hub::KIND
    }

    fn convert_review(&self, review: ConversionReview) -> ConversionReview {
        self.convert(review)
    }

    fn definition(&self) -> Result<CustomResourceDefinition, Error> {
        self.crd().map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("cannot merge the versions of {}", Hub::KIND)).with_source(error)
        })
    }
}

impl Webhooks {
    /// Returns the registrations as YAML, for those who install by manifest. `authority` is the PEM of the certificates that the server
    /// trusts; without it, another program has to inject it.
    ///
    /// Definitions are not included, except for their conversion.
    pub fn to_yaml(&self, authority: Option<&str>) -> String {
        let documents = self.configurations(authority).into_iter().chain(self.conversions(authority));
        let text = |value: Value| serde_saphyr::to_string(&value).unwrap_or_default();
        documents.map(text).collect::<Vec<_>>().join("---\n")
    }

    /// Applies the registrations by server-side apply. `authority` is the PEM of the certificates that the server trusts.
    ///
    /// [`WebhookServer`](super::WebhookServer) does this by itself. Call it in tests, and in programs that have their own server. The
    /// definition of a kind with conversions is installed if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses a registration.
    pub async fn register(&self, client: &Client, authority: Option<&str>) -> Result<(), Error> {
        for configuration in self.configurations(authority) {
            if configuration["kind"] == MUTATING {
                self.apply::<MutatingWebhookConfiguration>(client, &configuration).await?;
            } else {
                self.apply::<ValidatingWebhookConfiguration>(client, &configuration).await?;
            }
        }
        for (versions, stanza) in self.versions.iter().zip(self.conversions(authority)) {
            let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
            let name = stanza["metadata"]["name"].as_str().unwrap_or_default();
            if definitions.get_opt(name).await?.is_none() {
                let mut whole = serde_json::to_value(versions.definition()?).unwrap_or_default();
                whole["spec"]["conversion"] = stanza["spec"]["conversion"].clone();
                self.apply::<CustomResourceDefinition>(client, &whole).await?;
            } else {
                self.apply::<CustomResourceDefinition>(client, &stanza).await?;
            }
        }
        Ok(())
    }

    async fn apply<K>(&self, client: &Client, configuration: &Value) -> Result<(), Error>
    where
        K: Resource<Scope = ClusterScope>,
    {
        let api: Api<K> = Api::cluster(client.clone());
        let applied = api.apply(configuration).manager(self.manager()).force().await;
        applied.map(drop).map_err(|error| {
            let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
            error.context(format!("cannot register webhooks in {} {name}", K::KIND))
        })
    }

    /// Returns the authorities that all registrations show: one text for each webhook. A registration that is missing has an empty one.
    pub(super) async fn registered(&self, client: &Client) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for configuration in self.configurations(None) {
            let shown = if configuration["kind"] == MUTATING {
                bundles::<MutatingWebhookConfiguration>(client, &self.name).await?
            } else {
                bundles::<ValidatingWebhookConfiguration>(client, &self.name).await?
            };
            let wanted = configuration["webhooks"].as_array().map_or(0, Vec::len);
            // A webhook that was removed from a registration is as bad as one that trusts nothing.
            found.extend(shown.into_iter().chain(std::iter::repeat(String::new())).take(wanted));
        }
        for stanza in self.conversions(None) {
            let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
            let definition = definitions.get_opt(stanza["metadata"]["name"].as_str().unwrap_or_default()).await?;
            let value = serde_json::to_value(definition).unwrap_or_default();
            found.push(bundle(&value["spec"]["conversion"]["webhook"]["clientConfig"]));
        }
        Ok(found)
    }

    /// Returns the field manager of registrations.
    fn manager(&self) -> String {
        format!("klient-webhooks-{}", self.name)
    }

    fn configurations(&self, authority: Option<&str>) -> Vec<Value> {
        let of_sort = |sort: Sort, kind: &str| {
            let hooks = self.hooks.iter().filter(|named| named.hook.sort == sort);
            let entry =
                |Named { name, path, hook }: &Named| hook.entry(name, self.place.client_config(path, authority));
            let entries: Vec<Value> = hooks.map(entry).collect();
            let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": self.name}, "webhooks": entries});
            (!entries.is_empty()).then_some(configuration)
        };
        let both = [of_sort(Sort::Mutating, MUTATING), of_sort(Sort::Validating, "ValidatingWebhookConfiguration")];
        both.into_iter().flatten().collect()
    }

    /// Returns the conversion of each definition.
    fn conversions(&self, authority: Option<&str>) -> Vec<Value> {
        let stanza = |definition: CustomResourceDefinition| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": definition.metadata.name},
                "spec": {"conversion": {"strategy": "Webhook", "webhook": {
                    "clientConfig": self.place.client_config(CONVERT, authority),
                    "conversionReviewVersions": ["v1"]}}}})
        };
        self.versions.iter().filter_map(|versions| versions.definition().ok()).map(stanza).collect()
    }
}

/// Returns the authorities of a configuration's webhooks.
async fn bundles<K: Resource<Scope = ClusterScope>>(client: &Client, name: &str) -> Result<Vec<String>, Error> {
    let api: Api<K> = Api::cluster(client.clone());
    let value = serde_json::to_value(api.get_opt(name).await?).unwrap_or_default();
    let hooks = value["webhooks"].as_array().into_iter().flatten();
    Ok(hooks.map(|hook| bundle(&hook["clientConfig"])).collect())
}

fn bundle(client_config: &Value) -> String {
    let bytes = STANDARD.decode(client_config["caBundle"].as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

const MUTATING: &str = "MutatingWebhookConfiguration";
