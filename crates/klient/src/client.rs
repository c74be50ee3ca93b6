//! The HTTP client: every request to an API server.
//!
//! [`Client`] sends requests and returns responses. [`Api`] has the typed verbs of one kind,
//! [`Clientset`](crate::Clientset) has every built-in kind by group and version, [`DynamicClient`] has kinds known at
//! run time, and [`RestClient`] builds a request part by part.
//!
//! - [`verbs`]: the requests that verbs return, with their options.
//! - [`config`]: where the cluster is and how to authenticate: kubeconfig files, service accounts.
//! - [`auth`]: sources of credentials.
//! - [`discovery`]: the kinds that a server serves, and their schemas.
//! - [`http`]: the transport, and hooks into it.
//! - [`logs`]: logs by lines, through reconnects, of one container or of many pods.

pub(crate) mod api;
pub mod auth;
mod builder;
mod call;
pub(crate) mod clientset;
pub mod config;
pub mod discovery;
mod dynamic;
mod endpoint;
pub(crate) mod handle;
pub mod http;
mod list;
pub mod logs;
mod metrics;
mod pager;
mod rest;
mod retry_watch;
mod scale;
mod setup;
#[cfg(feature = "streams")]
pub mod streams;
pub mod verbs;
mod watch;

use self::handle::Inner;
pub(crate) use self::{api::Api, handle::Client};
pub use self::{
    api::{Deleted, LogStream, Subresource},
    builder::ClientBuilder,
    dynamic::DynamicClient,
    list::ListStream,
    pager::Pager,
    rest::{RestClient, RestRequest},
    retry_watch::RetryWatch,
    scale::ScaleClient,
    watch::Watch,
};

/// The built-in kinds of each group and version, as the accessors of [`Clientset`](crate::Clientset) and
/// [`InformerFactory`](crate::informer::InformerFactory) return them.
pub mod groups {
    pub use super::clientset::generated::*;
}
