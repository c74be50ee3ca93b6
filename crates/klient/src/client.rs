//! The HTTP half: how a cluster is found and talked to.
//!
//! [`Kubeconfig`] is the file format that settings mostly come from.

mod environment;
pub mod kubeconfig;
mod secret;

pub use self::{
    kubeconfig::{Kubeconfig, KubeconfigFiles},
    secret::{EmbeddedData, Secret},
};
