//! The HTTP half: how a cluster is found and talked to.
//!
//! [`Config`] holds the resolved settings; [`Kubeconfig`] is the file format that they mostly come from.

pub mod config;
mod environment;
mod in_cluster;
pub mod kubeconfig;
mod secret;

pub use self::{
    config::Config,
    kubeconfig::{Kubeconfig, KubeconfigFiles, Overrides},
    secret::{EmbeddedData, Secret},
};
