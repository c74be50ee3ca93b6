//! Sets of clusters: how to reach each of them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use tokio::{sync::watch, task::JoinSet};

use crate::{
    Error, ErrorKind,
    client::{
        Client,
        config::{Config, Kubeconfig, Overrides, PluginPolicy},
    },
};

/// One of several clusters: its name, and a client for it. Clones refer to the same cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    name: Arc<str>,
    client: Client,
}

impl Cluster {
    /// Creates a cluster with a name that is unique among the clusters of a program.
    pub fn new(name: impl Into<Arc<str>>, client: Client) -> Self {
        Self { name: name.into(), client }
    }

    /// Returns the name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a client for the cluster.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

/// A set of clusters, fixed or changing while a [`Fleet`](super::Fleet) uses it. Clones refer to the same set.
///
/// ```no_run
/// use klient::{Client, cluster::{Cluster, ClusterSet}};
///
/// # fn set_up(east: Client, west: Client, hub: Client) -> Result<(), klient::Error> {
/// let fixed = ClusterSet::of([Cluster::new("east", east), Cluster::new("west", west)])?;
/// let of_secrets = ClusterSet::secrets(hub, "fleet", "shop.example.com/cluster=true");
/// let of_files = ClusterSet::directory("/etc/clusters");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClusterSet {
    pub(super) members: watch::Sender<Members>,
    pub(super) source: Option<Arc<dyn Feed>>,
}

/// The clusters of a set by name.
pub(super) type Members = BTreeMap<Arc<str>, Member>;

/// A cluster of a set, or the reason for which it cannot be used.
#[derive(Clone)]
pub(super) struct Member {
    /// The text from which the cluster was created; a change replaces the cluster. Never shown: it has credentials.
    pub(super) fingerprint: u64,
    pub(super) cluster: Result<Cluster, String>,
}

/// The source of a set that changes by itself.
pub(super) trait Feed: Send + Sync {
    /// Starts tasks that update the set until they are dropped.
    fn begin(&self, members: &watch::Sender<Members>) -> JoinSet<()>;
}

impl ClusterSet {
    /// Creates a set of these clusters. [`set`](Self::set) changes it, for programs that find their clusters by themselves.
    ///
    /// # Errors
    ///
    /// Returns a [`Config`](ErrorKind::Config) error if two clusters have the same name.
    pub fn of(clusters: impl IntoIterator<Item = Cluster>) -> Result<Self, Error> {
        let set = Self { members: watch::Sender::new(Members::new()), source: None };
        set.set(clusters)?;
        Ok(set)
    }

    /// Replaces the clusters of the set. A cluster whose name stays keeps running with its present client.
    ///
    /// # Errors
    ///
    /// Returns a [`Config`](ErrorKind::Config) error if two clusters have the same name. The set is unchanged then.
    pub fn set(&self, clusters: impl IntoIterator<Item = Cluster>) -> Result<(), Error> {
        let mut members = Members::new();
        for cluster in clusters {
            let name = cluster.shared_name();
            if members.insert(Arc::clone(&name), Member { fingerprint: 0, cluster: Ok(cluster) }).is_some() {
                let message = format!("two clusters are named {name:?}: use different names");
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        self.members.send_replace(members);
        Ok(())
    }

    /// Returns the names of the clusters, also of those that cannot be used.
    pub fn names(&self) -> Vec<String> {
        self.members.borrow().keys().map(ToString::to_string).collect()
    }
}

impl Member {
    /// Creates a cluster from a kubeconfig, which must not run programs: who can write it could run them in this process's place.
    pub(super) fn from_kubeconfig(name: &Arc<str>, kubeconfig: &[u8]) -> Self {
        let client = || -> Result<Client, Error> {
            let kubeconfig = Kubeconfig::parse(kubeconfig)?;
            let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default())?;
            Client::from_config(&config.plugin_policy(PluginPolicy::DenyAll))
        };
        let cluster = client().map(|client| Cluster::new(Arc::clone(name), client));
        Self { fingerprint: fingerprint(kubeconfig), cluster: cluster.map_err(|error| error.to_string()) }
    }

    pub(super) fn problem(message: impl Into<String>) -> Self {
        Self { fingerprint: 0, cluster: Err(message.into()) }
    }
}

fn fingerprint(bytes: &[u8]) -> u64 {
    use std::hash::BuildHasher as _;
    foldhash::quality::FixedState::default().hash_one(bytes)
}

impl fmt::Debug for ClusterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClusterSet").field(&self.names()).finish()
    }
}
