//! Discovery: the groups, versions and resources that a server serves.
//!
//! The aggregated format has everything in two documents. A server without it gets one request per group version, a few
//! at a time. An aggregated server that is down affects only its own group versions, which are listed as failures.
//! In client-go: `discovery`.

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

/// A client of a server's discovery API that caches nothing. [`CachedDiscovery`] does.
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
///     eprintln!("unavailable: {failure}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DiscoveryInterface")]
#[doc(alias = "Discovery")]
#[derive(Clone, Debug)]
pub struct DiscoveryClient {
    client: Client,
    accept: &'static str,
}

/// The two root documents of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// The core group.
    Core,
    /// All other groups.
    Named,
}

/// The groups and failures under one root.
#[derive(Debug, Default, PartialEq, Eq)]
struct RootApis {
    /// The ETag of the document, if it is aggregated.
    etag: Option<String>,
    groups: Vec<Arc<ApiGroup>>,
    failures: Vec<DiscoveryFailure>,
}

impl DiscoveryClient {
    /// Creates a client for the server of `client`.
    pub fn new(client: Client) -> Self {
        Self { client, accept: media_type::ACCEPT_DISCOVERY }
    }

    /// Uses only the unaggregated format, for servers whose aggregated format is wrong.
    #[must_use]
    #[doc(alias = "UseLegacyDiscovery")]
    pub fn legacy(mut self) -> Self {
        self.accept = media_type::JSON;
        self
    }

    /// Returns all groups, versions and resources. Group versions that cannot be read are
    /// [failures](ServerApis::failures) in the result, not errors.
    ///
    /// # Errors
    ///
    /// Returns an error if a request fails or a response cannot be decoded.
    #[doc(alias = "ServerGroupsAndResources")]
    pub async fn apis(&self) -> Result<ServerApis, Error> {
        let (core, named) = tokio::try_join!(self.root(Root::Core, None), self.root(Root::Named, None))?;
        Ok(merged(core.as_ref(), named.as_ref()))
    }

    /// Returns the resources of one group version.
    ///
    /// # Errors
    ///
    /// Returns an error if the group version is not served, if the request fails, or if the response cannot be decoded.
    #[doc(alias = "ServerResourcesForGroupVersion")]
    pub async fn resources(&self, version: &GroupVersion) -> Result<ApiGroupVersion, Error> {
        resources(&self.client, version.clone()).await
    }

    /// Returns the version of the server itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails or the response cannot be decoded.
    #[doc(alias = "ServerVersion")]
    #[doc(alias = "apiserver_version")]
    pub async fn server_version(&self) -> Result<Info, Error> {
        Document::fetch(&self.client, "/version", media_type::JSON).await?.json()
    }

    /// Returns the groups under a root, or `None` if its document still has that ETag.
    async fn root(&self, root: Root, etag: Option<&str>) -> Result<Option<RootApis>, Error> {
        let path = root.path();
        let asked = match Document::fetch_changed(&self.client, path, self.accept, etag).await {
            // The server does not split the list of accepted formats.
            Err(error) if error.status().is_some_and(Status::is_not_acceptable) && self.accept != media_type::JSON => {
                Document::fetch(&self.client, path, media_type::JSON).await.map(Some)
            }
            outcome => outcome,
        };
        let document = match asked {
            Ok(Some(document)) => document,
            Ok(None) => return Ok(None),
            // A server of one aggregated API has no core group; others do not permit access to it.
            Err(error) if root == Root::Core && (error.is_not_found() || error.is_forbidden()) => {
                return Ok(Some(RootApis::default()));
            }
            Err(error) => return Err(error.context(format!("cannot read the API groups at {path}"))),
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
                let what = format!("expected a list of API groups, found kind {other:?}");
                return Err(document.malformed().with_source(Error::new(ErrorKind::Decode, what)));
            }
        };
        Ok(self.one_by_one(groups).await)
    }

    /// Requests each group version, a few at a time, and preserves their order.
    async fn one_by_one(&self, groups: Vec<Vec<GroupVersion>>) -> RootApis {
        let mut waiting = groups.iter().flatten().cloned().enumerate();
        let mut results: Vec<Option<Result<ApiGroupVersion, Error>>> = Vec::new();
        results.resize_with(groups.iter().map(Vec::len).sum(), || None);
        // Dropping the set cancels its tasks.
        let mut running = JoinSet::new();
        loop {
            while running.len() < AT_ONCE
                && let Some((index, version)) = waiting.next()
            {
                let client = self.client.clone();
                running.spawn(async move { (index, resources(&client, version).await) });
            }
            match running.join_next().await {
                Some(Ok((index, result))) => results[index] = Some(result),
                // The task panicked: its slot stays empty and becomes a failure below.
                Some(Err(_)) => {}
                None => break,
            }
        }
        let mut results = results.into_iter();
        let mut root = RootApis::default();
        for group in groups {
            let mut versions = Vec::with_capacity(group.len());
            let name = group.first().map(|version| version.group.to_string()).unwrap_or_default();
            for version in group {
                match results.next().flatten() {
                    Some(Ok(version)) => versions.push(version),
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

/// Merges the groups of both roots.
fn merged(core: Option<&RootApis>, named: Option<&RootApis>) -> ServerApis {
    let roots = || [core, named].into_iter().flatten();
    ServerApis {
        groups: roots().flat_map(|root| root.groups.iter().cloned()).collect(),
        failures: roots().flat_map(|root| root.failures.iter().cloned()).collect(),
    }
}

/// The number of concurrent requests: fast, and without overloading the server.
const AT_ONCE: usize = 16;
