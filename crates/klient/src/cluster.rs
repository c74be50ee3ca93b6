//! Several clusters: the same controllers for each of them, in one process.
//!
//! A [`Fleet`] runs controllers for every cluster of a [`ClusterSet`], each with a client, caches, a queue and workers of its own. So the
//! events and keys of one cluster never mix with those of another, and a cluster that fails delays no other. Clusters come and
//! go while the fleet runs. In controller-runtime: `multicluster-runtime`.

mod fleet;
mod set;
mod set_sources;

pub use self::{
    fleet::{ClusterState, ClusterStatus, Fleet, FleetBuilder},
    set::{Cluster, ClusterSet},
};
