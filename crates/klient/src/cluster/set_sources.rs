//! Sets of clusters that change by themselves: kubeconfigs in Secrets, and in the files of a directory.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    ClusterSet,
    set::{Feed, Member, Members},
};
use crate::{
    client::{Api, Client},
    informer::SharedInformer,
};

impl ClusterSet {
    /// Creates a set of the clusters whose kubeconfigs are in Secrets of a namespace that match a label selector, under the key
    /// `kubeconfig` or, as Cluster API has it, `value`. The name of a cluster is that of its Secret.
    ///
    /// When a Secret changes, its cluster gets a new client. Kubeconfigs that run programs for credentials are refused.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and texts in place")]
    pub fn secrets(client: Client, namespace: &str, selector: impl ToString) -> Self {
        let api = Api::<Secret>::namespaced(client, namespace);
        let informer = SharedInformer::builder(api).labels(selector.to_string()).build();
        Self { members: watch::Sender::new(Members::new()), source: Some(Arc::new(Secrets { informer })) }
    }

    /// Creates a set of the clusters whose kubeconfigs are the files of a directory, which is read every ten seconds. The name of a cluster is
    /// that of its file without the extension. Files whose names begin with a dot are ignored.
    ///
    /// Kubeconfigs that run programs for credentials are refused.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self { members: watch::Sender::new(Members::new()), source: Some(Arc::new(Directory { path: path.into() })) }
    }
}

struct Secrets {
    informer: SharedInformer<Secret>,
}

impl Feed for Secrets {
    fn begin(&self, members: &watch::Sender<Members>) -> JoinSet<()> {
        let (informer, members) = (self.informer.clone(), members.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut events = informer.events();
            informer.start();
            if informer.wait_for_sync().await.is_err() {
                return;
            }
            loop {
                update(
                    &members,
                    informer.lister().list().iter().map(|secret| {
                        let name: Arc<str> = secret.key().name().into();
                        let member = match secret.decode() {
                            Ok(secret) => of_secret(&name, &secret),
                            Err(error) => Member::problem(error.to_string()),
                        };
                        (name, member)
                    }),
                );
                if events.next().await.is_none() {
                    return;
                }
            }
        });
        tasks
    }
}

fn of_secret(name: &Arc<str>, secret: &Secret) -> Member {
    let data = secret.data.as_ref();
    let kubeconfig = ["kubeconfig", "value"].iter().find_map(|key| data?.get(*key));
    match kubeconfig {
        Some(kubeconfig) => Member::from_kubeconfig(name, &kubeconfig.0),
        None => Member::problem("the Secret has no kubeconfig: expected it under the key \"kubeconfig\" or \"value\""),
    }
}

struct Directory {
    path: PathBuf,
}

impl Feed for Directory {
    fn begin(&self, members: &watch::Sender<Members>) -> JoinSet<()> {
        let (path, members) = (self.path.clone(), members.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let folder = path.clone();
                match tokio::task::spawn_blocking(move || read(&folder)).await {
                    Ok(Ok(found)) => update(&members, found.into_iter()),
                    // The clusters that are known stay.
                    Ok(Err(error)) => {
                        tracing::warn!(path = %path.display(), %error, "cannot read the directory of kubeconfigs");
                    }
                    Err(error) => tracing::warn!(%error, "reading the directory of kubeconfigs failed"),
                }
                sleep(PERIOD).await;
            }
        });
        tasks
    }
}

/// Reads the kubeconfigs of a directory. Of two files with one name, the first counts, and the other is a problem.
fn read(path: &std::path::Path) -> std::io::Result<Vec<(Arc<str>, Member)>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !is_hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let mut members: Vec<(Arc<str>, Member)> = Vec::new();
    for file in files {
        let stem: Arc<str> = file.file_stem().unwrap_or_default().to_string_lossy().into();
        if members.iter().any(|(name, _)| *name == stem) {
            let full: Arc<str> = file.file_name().unwrap_or_default().to_string_lossy().into();
            members.push((full, Member::problem(format!("another file has the cluster {stem:?}: rename one of them"))));
            continue;
        }
        let member = match std::fs::read(&file) {
            Ok(bytes) => Member::from_kubeconfig(&stem, &bytes),
            Err(error) => Member::problem(format!("cannot read {}: {error}", file.display())),
        };
        members.push((stem, member));
    }
    Ok(members)
}

/// Replaces the clusters of a set. A cluster whose kubeconfig is unchanged keeps its client.
fn update(members: &watch::Sender<Members>, found: impl Iterator<Item = (Arc<str>, Member)>) {
    let mut new: Members = found.collect();
    members.send_if_modified(|known| {
        for (name, member) in &mut new {
            let same = known.get(name).filter(|known| known.fingerprint == member.fingerprint && known.cluster.is_ok());
            if let Some(same) = same.filter(|_| member.cluster.is_ok()) {
                *member = same.clone();
            }
        }
        let is_same = known.len() == new.len()
            && known.iter().zip(&new).all(|((a, old), (b, new))| {
                a == b && old.fingerprint == new.fingerprint && old.cluster.as_ref().err() == new.cluster.as_ref().err()
            });
        *known = new;
        !is_same
    });
}

/// How often a directory is read.
const PERIOD: Duration = Duration::from_secs(10);
