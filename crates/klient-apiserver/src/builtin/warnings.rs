//! Warnings about valid objects of built-in kinds, with the real server's texts in its order: one file for each kind or family of kinds.
//!
//! The real server sends them once an object is found valid, in dry runs and with errors of later steps, too. Updates of many kinds are
//! warned about only if they change the fields in question.

mod addresses;
mod cluster;
mod definitions;
mod key_pairs;
mod network;
mod node_labels;
mod pem;
mod pod_spec;
mod ports;
mod storage;
mod virtual_paths;
mod workloads;

pub(super) use self::{
    cluster::{admission, node, quota, resource_slice, runtime_class, service_account},
    definitions::definition,
    key_pairs::secret,
    network::{endpoint_slice, endpoints, ingress, load_balancer_status, network_policy, service},
    storage::{claim, csi_driver, storage_capacity, storage_class, volume},
    workloads::{
        cron_job, daemon_set, job, pod, pod_status, pod_template, replicated, replication_controller, stateful_set,
    },
};
use super::rules::Field;

/// The warnings that were found.
type Told = Vec<String>;

/// Adds a warning about a field.
fn warn(field: &Field<'_, '_>, why: &str, told: &mut Told) {
    told.push(format!("{}: {why}", field.path()));
}
