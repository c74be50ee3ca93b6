//! The options that select a cluster and objects of it.

use std::{error::Error, path::PathBuf};

use clap::Args;
use klient::{
    Api, Client, Resource,
    client::{
        config::{Config, KubeconfigFiles, Overrides},
        discovery::{CachedDiscovery, DiscoveryClient, RestMapper},
    },
    object::DynamicObject,
    request::Target,
    resource::{ApiResource, NamespaceScope},
};

/// The options that select a cluster.
#[derive(Args)]
pub(crate) struct Cluster {
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long)]
    context: Option<String>,
}

/// The options that select a cluster and a namespace of it.
#[derive(Args)]
pub(crate) struct Namespaced {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// The namespace [default: the context's]
    #[arg(long, short)]
    namespace: Option<String>,
}

/// The options that select objects.
#[derive(Args)]
pub(crate) struct Selection {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// The resource, by any of its names: pods, po, deployments.apps, deploy/web
    #[arg(value_name = "KIND[/NAME]")]
    kind: String,
    /// The names of objects [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The namespace [default: the context's]
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Select objects by label
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
    /// Select objects by field
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) field_selector: Option<String>,
}

/// Selected objects, after discovery.
pub(crate) struct Selected {
    pub(crate) client: Client,
    pub(crate) resource: ApiResource,
    pub(crate) target: Target,
    pub(crate) names: Vec<String>,
}

impl Cluster {
    pub(crate) fn client(&self) -> Result<Client, Box<dyn Error>> {
        let files = match &self.kubeconfig {
            Some(path) => KubeconfigFiles::explicit(path),
            None => KubeconfigFiles::from_env(),
        };
        let overrides = match &self.context {
            Some(context) => Overrides::default().context(context),
            None => Overrides::default(),
        };
        Ok(Client::from_config(&Config::load(&files, &overrides)?)?)
    }
}

impl Namespaced {
    /// Returns the name of the namespace.
    pub(crate) fn namespace(&self, client: &Client) -> String {
        self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned())
    }

    /// Returns the objects of a kind in the namespace.
    pub(crate) fn api<K: Resource<Scope = NamespaceScope>>(&self) -> Result<Api<K>, Box<dyn Error>> {
        let client = self.cluster.client()?;
        let namespace = self.namespace(&client);
        Ok(Api::namespaced(client, &namespace))
    }
}

impl Selection {
    /// Resolves the resource through discovery.
    pub(crate) async fn find(&self) -> Result<Selected, Box<dyn Error>> {
        let client = self.cluster.client()?;
        let (kind, name) = match self.kind.split_once('/') {
            Some((kind, name)) => (kind, Some(name.to_owned())),
            None => (self.kind.as_str(), None),
        };
        let names: Vec<String> = name.into_iter().chain(self.names.iter().cloned()).collect();
        let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(client.clone())));
        let resource = mapper.resolve(kind).await?.resource;
        let target = match (resource.is_namespaced(), self.all_namespaces) {
            (false, _) => Target::Cluster,
            (true, true) if !names.is_empty() => {
                return Err("--all-namespaces cannot be used with names of objects: use --namespace".into());
            }
            (true, true) => Target::AllNamespaces,
            (true, false) => {
                let namespace = self.namespace.clone();
                Target::Namespace(namespace.unwrap_or_else(|| client.default_namespace().to_owned()))
            }
        };
        Ok(Selected { client, resource, target, names })
    }
}

impl Selected {
    pub(crate) fn api(&self) -> Api<DynamicObject> {
        Api::dynamic(self.client.clone(), self.resource.clone(), self.target.clone())
    }
}
