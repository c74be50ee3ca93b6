//! What a server offers: its groups, versions and resources.
//!
//! Asked for in the form that has everything in two documents; a server that does not know it is asked for one document
//! per group version instead, a few at a time. An aggregated server that is down takes its own group versions with it and
//! nothing else: they are listed as failures. In client-go: `discovery`.

mod aggregated;
mod apis;
mod cached;
mod disk;
pub(in crate::client) mod document;
mod legacy;
mod mapper;
mod openapi;
mod served;

pub use apis::{ApiGroup, ApiGroupVersion, DiscoveryFailure, ServerApis};
pub use cached::CachedDiscovery;
pub use disk::DiskCache;
pub use mapper::{Resolved, RestMapper};
pub use openapi::{OpenApiClient, OpenApiIndex};
pub use served::{ServedResource, ServedSubresource};

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::version::Info;
use klient_core::{GroupVersion, Status, media_type};
use serde::Deserialize;
use tokio::task::JoinSet;

use self::document::Document;
use crate::client::Client;
use crate::{Error, ErrorKind};

/// Asks a server what it offers, each time anew; see [`CachedDiscovery`] for one that remembers.
///
/// ```no_run
/// use klient::{Client, client::discovery::DiscoveryClient};
///
/// # async fn show() -> Result<(), klient::Error> {
/// let apis = DiscoveryClient::new(Client::infer()?).apis().await?;
/// for served in apis.preferred_resources().filter(|served| served.supports("list")) {
///     println!("{} {}", served.resource.group_version(), served.resource.plural);
/// }
/// for failure in &apis.failures {
///     eprintln!("not known: {failure}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DiscoveryClient {
    client: Client,
    accept: &'static str,
}

/// The two documents that everything is under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// The core group.
    Core,
    /// All other groups.
    Named,
}

/// What is under one of the roots.
#[derive(Debug, Default, PartialEq, Eq)]
struct RootApis {
    /// The tag of the document, if it has everything in it.
    etag: Option<String>,
    groups: Vec<Arc<ApiGroup>>,
    failures: Vec<DiscoveryFailure>,
}

impl DiscoveryClient {
    /// Asks the server of that client.
    pub fn new(client: Client) -> Self {
        Self { client, accept: media_type::ACCEPT_DISCOVERY }
    }

    /// Asks in the old form only, for servers whose new form is wrong.
    #[must_use]
    #[doc(alias = "UseLegacyDiscovery")]
    pub fn legacy(mut self) -> Self {
        self.accept = media_type::JSON;
        self
    }

    /// Everything that the server offers. Group versions that cannot be learnt are
    /// [failures](ServerApis::failures) in the result and no error.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or its answer not be read.
    #[doc(alias = "ServerGroupsAndResources")]
    pub async fn apis(&self) -> Result<ServerApis, Error> {
        let (core, named) = tokio::try_join!(self.root(Root::Core, None), self.root(Root::Named, None))?;
        Ok(merged(core.as_ref(), named.as_ref()))
    }

    /// What one version of a group offers.
    ///
    /// # Errors
    ///
    /// If it is not served, cannot be asked for, or cannot be read.
    #[doc(alias = "ServerResourcesForGroupVersion")]
    pub async fn resources(&self, version: &GroupVersion) -> Result<ApiGroupVersion, Error> {
        resources(&self.client, version.clone()).await
    }

    /// The version of the server itself.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or its answer not be read.
    pub async fn server_version(&self) -> Result<Info, Error> {
        Document::fetch(&self.client, "/version", media_type::JSON).await?.json()
    }

    /// The groups under a root; nothing if its document still has that tag.
    async fn root(&self, root: Root, etag: Option<&str>) -> Result<Option<RootApis>, Error> {
        let path = root.path();
        let asked = match Document::fetch_changed(&self.client, path, self.accept, etag).await {
            // A server that takes the list of forms as a whole.
            Err(error) if error.status().is_some_and(Status::is_not_acceptable) && self.accept != media_type::JSON => {
                Document::fetch(&self.client, path, media_type::JSON).await.map(Some)
            }
            outcome => outcome,
        };
        let document = match asked {
            Ok(Some(document)) => document,
            Ok(None) => return Ok(None),
            // A server of one aggregated API has no core group; others hide it.
            Err(error) if root == Root::Core && (error.is_not_found() || error.is_forbidden()) => {
                return Ok(Some(RootApis::default()));
            }
            Err(error) => return Err(error.context(format!("cannot read the server's APIs at {path}"))),
        };
        self.read(&document).await.map(Some)
    }

    async fn read(&self, document: &Document) -> Result<RootApis, Error> {
        let kind: Kind = document.json()?;
        let groups: Vec<Vec<GroupVersion>> = match kind.kind.as_str() {
            aggregated::KIND => {
                let (groups, failures) = document.json::<aggregated::GroupList>()?.read();
                return Ok(RootApis { etag: document.etag.clone(), groups, failures });
            }
            "APIVersions" => vec![document.json::<legacy::Versions>()?.group_versions()],
            "APIGroupList" => {
                let groups = document.json::<legacy::GroupList>()?.groups;
                groups.into_iter().map(legacy::Group::group_versions).collect()
            }
            other => {
                let what = format!("an object of kind {other:?} is no list of APIs");
                return Err(document.malformed().with_source(Error::new(ErrorKind::Decode, what)));
            }
        };
        Ok(self.one_by_one(groups).await)
    }

    /// Asks for each group version, a few at a time, and keeps their order.
    async fn one_by_one(&self, groups: Vec<Vec<GroupVersion>>) -> RootApis {
        let mut waiting = groups.iter().flatten().cloned().enumerate();
        let mut answers: Vec<Option<Result<ApiGroupVersion, Error>>> = Vec::new();
        answers.resize_with(groups.iter().map(Vec::len).sum(), || None);
        // Dropping the set ends what it runs.
        let mut running = JoinSet::new();
        loop {
            while running.len() < AT_ONCE
                && let Some((place, version)) = waiting.next()
            {
                let client = self.client.clone();
                running.spawn(async move { (place, resources(&client, version).await) });
            }
            match running.join_next().await {
                Some(Ok((place, answer))) => answers[place] = Some(answer),
                // A task that panicked: its place stays empty, and is a failure below.
                Some(Err(_)) => {}
                None => break,
            }
        }
        let mut answers = answers.into_iter();
        let mut root = RootApis::default();
        for group in groups {
            let mut versions = Vec::with_capacity(group.len());
            let name = group.first().map(|version| version.group.to_string()).unwrap_or_default();
            for version in group {
                match answers.next().flatten() {
                    Some(Ok(answer)) => versions.push(answer),
                    Some(Err(error)) => root.failures.push(DiscoveryFailure::new(version, &error)),
                    None => root.failures.push(DiscoveryFailure::stale(version)),
                }
            }
            if !versions.is_empty() {
                root.groups.push(Arc::new(ApiGroup { name, versions }));
            }
        }
        root
    }
}

impl Root {
    fn path(self) -> &'static str {
        match self {
            Self::Core => "/api",
            Self::Named => "/apis",
        }
    }
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}

async fn resources(client: &Client, version: GroupVersion) -> Result<ApiGroupVersion, Error> {
    let document = Document::fetch(client, &legacy::path(&version), media_type::JSON).await?;
    if document.json::<Kind>()?.kind != "APIResourceList" {
        return Err(document.malformed());
    }
    Ok(document.json::<legacy::ResourceList>()?.read(version))
}

/// Both roots as one.
fn merged(core: Option<&RootApis>, named: Option<&RootApis>) -> ServerApis {
    let roots = || [core, named].into_iter().flatten();
    ServerApis {
        groups: roots().flat_map(|root| root.groups.iter().cloned()).collect(),
        failures: roots().flat_map(|root| root.failures.iter().cloned()).collect(),
    }
}

/// Enough to be quick, few enough to leave a server room for others.
const AT_ONCE: usize = 16;
