//! From the names of kinds and resources to what a server offers.
//!
//! The server's own order decides where a name means several things: groups by priority, versions by preference. A name
//! that is not found has the server asked once more, as it may be new; not more often than the server can bear.
//! In client-go: `restmapper`.

mod lookup;
mod misses;
mod name;

use std::{fmt, sync::Arc};

use klient_core::{ApiResource, GroupKind, GroupVersion, GroupVersionKind};
use tokio::time::Instant;

use self::misses::Misses;
use super::{CachedDiscovery, ServerApis};
use crate::{Error, ErrorKind};

/// Finds the resource that serves a kind, or that a name stands for.
///
/// A handle: clones share what is remembered.
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
    misses: Arc<Misses>,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The resource: in the first group, in the server's order, and the version that it prefers.
    pub resource: ApiResource,
    /// Other resources, of less priority, that the name could stand for as well.
    pub others: Vec<ApiResource>,
    short_name: Option<String>,
}

impl RestMapper {
    /// Looks things up in what that discovery remembers.
    pub fn new(discovery: CachedDiscovery) -> Self {
        Self { discovery, misses: Arc::new(Misses::new()) }
    }

    /// What is looked up in.
    pub fn discovery(&self) -> &CachedDiscovery {
        &self.discovery
    }

    /// The resource that serves a kind in one version.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if the server does not serve it, [`Unavailable`](ErrorKind::Unavailable) if it
    /// is in a group version that could not be learnt, or why the server could not be asked.
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

    /// The resource that serves a kind, in the version that the server prefers.
    ///
    /// # Errors
    ///
    /// As [`resource_for_kind`](Self::resource_for_kind).
    #[doc(alias = "RESTMapping")]
    pub async fn resource_for_group_kind(&self, kind: &GroupKind) -> Result<ApiResource, Error> {
        let missing =
            |apis: &ServerApis| not_found(apis, &format!("kind {kind}"), Some(&kind.group), &close(apis, &kind.kind));
        self.find(|apis| lookup::by_group_kind(apis, kind), missing).await
    }

    /// What a name stands for: a plural, singular, short name or kind, with or without its group, or version and group.
    /// `po`, `pod`, `Deployment`, `deployments.apps` and `deployments.v1.apps` are such names.
    ///
    /// Of several, the first in the server's order is meant; [`Resolved::warning`] says so where it is easily missed.
    ///
    /// # Errors
    ///
    /// As [`resource_for_kind`](Self::resource_for_kind); the error names what is nearly called so.
    #[doc(alias = "ResourceFor")]
    #[doc(alias = "KindFor")]
    pub async fn resolve(&self, name: &str) -> Result<Resolved, Error> {
        let readings = name::readings(name);
        let missing = |apis: &ServerApis| {
            let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
                return Error::new(ErrorKind::Invalid, format!("{name:?} is no name of a resource"));
            };
            not_found(apis, &format!("resource {name:?}"), last.group.as_deref(), &close(apis, &first.resource))
        };
        self.find(|apis| lookup::by_name(apis, &readings), missing).await
    }

    /// The resources of a category, such as `all`; there may be none.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    #[doc(alias = "CategoryExpander")]
    pub async fn category(&self, name: &str) -> Result<Vec<ApiResource>, Error> {
        // Not asked for again when it is empty: people write names here of which most are no categories.
        let apis = self.discovery.apis().await?;
        Ok(lookup::in_category(&apis, name))
    }

    /// Looks something up, once more after the server was asked again.
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
        let newer = self.discovery.newer_than(started, || self.misses.permit()).await;
        match newer.map_err(|error| error.context("a resource is not known, and the server cannot be asked again"))? {
            Some(newer) => look(&newer.apis).ok_or_else(|| missing(&newer.apis)),
            None => Err(missing(&known.apis)),
        }
    }
}

impl Resolved {
    /// Says that a short name stands for other resources as well, if it does.
    pub fn warning(&self) -> Option<String> {
        let short = self.short_name.as_ref().filter(|_| !self.others.is_empty())?;
        let others: Vec<String> = self.others.iter().map(|other| other.group_resource().to_string()).collect();
        let meant = self.resource.group_resource();
        Some(format!("{short:?} is taken for {meant}, and is short for {} too", others.join(" and ")))
    }
}

impl fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestMapper").field("discovery", &self.discovery).finish_non_exhaustive()
    }
}

/// The error about something that is not served, or of which it cannot be told.
fn not_found(apis: &ServerApis, what: &str, group: Option<&str>, hint: &str) -> Error {
    let in_doubt = apis.failures.iter().find(|failure| group.is_some_and(|group| failure.group_version.group == group));
    if let Some(failure) = in_doubt {
        return Error::new(ErrorKind::Unavailable, format!("cannot tell whether {what} is served: {failure}"));
    }
    let unknown = match apis.failures.as_slice() {
        [] => String::new(),
        failures => {
            let versions: Vec<String> = failures.iter().map(|failure| failure.group_version.to_string()).collect();
            format!("; nothing is known about {}", versions.join(", "))
        }
    };
    Error::new(ErrorKind::NotFound, format!("the server has no {what}{hint}{unknown}"))
}

fn close(apis: &ServerApis, name: &str) -> String {
    let names = lookup::close_to(apis, name);
    if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) }
}
