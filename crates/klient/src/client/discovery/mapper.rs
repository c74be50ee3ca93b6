//! Resolves the names of kinds and resources to what a server serves.
//!
//! The server's order decides if a name is ambiguous: groups by priority, versions by preference. A name that is not
//! found triggers a new discovery, because it may be new; a rate limit protects the server.
//! In client-go: `restmapper`.

mod lookup;
mod name;
mod refresh_limit;

use std::{fmt, sync::Arc};

use klient_core::{ApiResource, GroupKind, GroupVersion, GroupVersionKind};
use tokio::time::Instant;

use self::refresh_limit::RefreshLimit;
use super::{CachedDiscovery, ServerApis};
use crate::{Error, ErrorKind};

/// A mapper from kinds and names to the resources that serve them.
///
/// Clones share the discovery cache.
///
/// ```no_run
/// use klient::Client;
/// use klient::client::discovery::{CachedDiscovery, DiscoveryClient, RestMapper};
/// use klient::resource::GroupVersionKind;
///
/// # async fn show() -> Result<(), klient::Error> {
/// let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(Client::infer()?)));
/// let deployments = mapper.resource_for_kind(&GroupVersionKind::new("apps", "v1", "Deployment")).await?;
/// assert_eq!(mapper.resolve("deploy").await?.resource, deployments);
/// for resource in mapper.category("all").await? {
///     println!("{}", resource.group_resource());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RESTMapper")]
#[doc(alias = "DeferredDiscoveryRESTMapper")]
#[derive(Clone)]
pub struct RestMapper {
    discovery: CachedDiscovery,
    refreshes: Arc<RefreshLimit>,
}

/// The resource that a name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The resource, in the group of the highest priority and the version that the server prefers.
    pub resource: ApiResource,
    /// Other matches of lower priority.
    pub others: Vec<ApiResource>,
    short_name: Option<String>,
}

impl RestMapper {
    /// Creates a mapper that uses this discovery cache.
    pub fn new(discovery: CachedDiscovery) -> Self {
        Self { discovery, refreshes: Arc::new(RefreshLimit::new()) }
    }

    /// Returns the discovery cache.
    pub fn discovery(&self) -> &CachedDiscovery {
        &self.discovery
    }

    /// Returns the resource that serves a kind in one version.
    ///
    /// # Errors
    ///
    /// Returns [`NotFound`](ErrorKind::NotFound) if the server does not serve the kind,
    /// [`Unavailable`](ErrorKind::Unavailable) if its group version could not be read, or the error of the request.
    #[doc(alias = "RESTMapping")]
    pub async fn resource_for_kind(&self, gvk: &GroupVersionKind) -> Result<ApiResource, Error> {
        let missing = |apis: &ServerApis| {
            let versions = apis.group(&gvk.group).map(|group| group.versions.iter()).into_iter().flatten();
            let serves = |version: &&GroupVersion| {
                lookup::by_kind(apis, &GroupVersion::clone(version).with_kind(gvk.kind.clone())).is_some()
            };
            let elsewhere: Vec<String> =
                versions.map(|version| &version.group_version).filter(serves).map(ToString::to_string).collect();
            let hint = if elsewhere.is_empty() {
                close(apis, &gvk.kind)
            } else {
                format!("; it is served as {}", elsewhere.join(", "))
            };
            not_found(apis, &format!("kind {} of {}", gvk.kind, gvk.group_version()), Some(&gvk.group), &hint)
        };
        self.find(|apis| lookup::by_kind(apis, gvk), missing).await
    }

    /// Returns the resource that serves a kind, in the version that the server prefers.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resource_for_kind`](Self::resource_for_kind).
    #[doc(alias = "RESTMapping")]
    pub async fn resource_for_group_kind(&self, kind: &GroupKind) -> Result<ApiResource, Error> {
        let missing =
            |apis: &ServerApis| not_found(apis, &format!("kind {kind}"), Some(&kind.group), &close(apis, &kind.kind));
        self.find(|apis| lookup::by_group_kind(apis, kind), missing).await
    }

    /// Resolves a plural, singular, short name or kind, with an optional group, or version and group. Examples are
    /// `po`, `pod`, `Deployment`, `deployments.apps` and `deployments.v1.apps`.
    ///
    /// If there are several matches, the first in the server's order is returned; [`Resolved::warning`] describes a
    /// match that may surprise.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resource_for_kind`](Self::resource_for_kind). The message suggests similar names.
    #[doc(alias = "ResourceFor")]
    #[doc(alias = "KindFor")]
    pub async fn resolve(&self, name: &str) -> Result<Resolved, Error> {
        let readings = name::readings(name);
        let missing = |apis: &ServerApis| {
            let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
                return Error::new(ErrorKind::Invalid, format!("invalid resource name {name:?}"));
            };
            not_found(apis, &format!("resource {name:?}"), last.group.as_deref(), &close(apis, &first.resource))
        };
        self.find(|apis| lookup::by_name(apis, &readings), missing).await
    }

    /// Returns the resources of a category, such as `all`, or none if there is no such category.
    ///
    /// # Errors
    ///
    /// Returns an error if discovery fails.
    #[doc(alias = "CategoryExpander")]
    pub async fn category(&self, name: &str) -> Result<Vec<ApiResource>, Error> {
        // An unknown category does not trigger a new discovery, because most names in this position are not categories.
        let apis = self.discovery.apis().await?;
        Ok(lookup::in_category(&apis, name))
    }

    /// Looks up a resource, again after a new discovery if it is not found.
    async fn find<T>(
        &self,
        look: impl Fn(&ServerApis) -> Option<T>,
        missing: impl Fn(&ServerApis) -> Error,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let known = self.discovery.snapshot().await?;
        if let Some(found) = look(&known.apis) {
            return Ok(found);
        }
        if known.is_newer_than(started) {
            return Err(missing(&known.apis));
        }
        let newer = self.discovery.newer_than(started, || self.refreshes.permit()).await;
        match newer.map_err(|error| error.context("unknown resource, and discovery failed"))? {
            Some(newer) => look(&newer.apis).ok_or_else(|| missing(&newer.apis)),
            None => Err(missing(&known.apis)),
        }
    }
}

impl Resolved {
    /// Returns a warning if a short name also matches other resources.
    pub fn warning(&self) -> Option<String> {
        let short = self.short_name.as_ref().filter(|_| !self.others.is_empty())?;
        let others: Vec<String> = self.others.iter().map(|other| other.group_resource().to_string()).collect();
        let meant = self.resource.group_resource();
        Some(format!("short name {short:?} is ambiguous: using {meant}, also matches {}", others.join(" and ")))
    }
}

impl fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestMapper").field("discovery", &self.discovery).finish_non_exhaustive()
    }
}

/// Returns the error for a resource that is not served, or may be in a failed group version.
fn not_found(apis: &ServerApis, what: &str, group: Option<&str>, hint: &str) -> Error {
    let in_doubt = apis.failures.iter().find(|failure| group.is_some_and(|group| failure.group_version.group == group));
    if let Some(failure) = in_doubt {
        return Error::new(ErrorKind::Unavailable, format!("cannot tell whether {what} is served: {failure}"));
    }
    let unknown = match apis.failures.as_slice() {
        [] => String::new(),
        failures => {
            let versions: Vec<String> = failures.iter().map(|failure| failure.group_version.to_string()).collect();
            format!("; discovery failed for {}", versions.join(", "))
        }
    };
    Error::new(ErrorKind::NotFound, format!("the server does not serve {what}{hint}{unknown}"))
}

fn close(apis: &ServerApis, name: &str) -> String {
    let names = lookup::close_to(apis, name);
    if names.is_empty() { String::new() } else { format!("; similar: {}", names.join(", ")) }
}
