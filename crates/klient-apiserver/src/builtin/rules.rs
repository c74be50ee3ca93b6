//! Validation of built-in kinds, with the real server's messages in its order: one file for each kind or family of kinds.
//!
//! Kinds that are not here are accepted without it.

mod access;
mod addresses;
mod admission_policies;
mod autoscalers;
mod batch;
mod budgets;
mod claims;
mod classes;
mod container_statuses;
mod containers;
mod counts;
mod data;
mod endpoints;
mod environment;
mod events;
mod field;
mod indexes;
mod ingresses;
mod job_status;
mod leases;
mod limit_ranges;
mod mounts;
mod network_policies;
mod nodes;
mod paths;
mod persistent_volumes;
mod pod_spec;
mod pods;
mod probes;
mod projected;
mod quotas;
mod resize;
mod resources;
mod same;
mod schedules;
mod scheduling;
mod security;
mod selectors;
mod services;
mod signing_requests;
mod template;
mod volume_sources;
mod volumes;
mod webhooks;
mod workloads;

use klient_core::StatusCause;
use serde_json::Value;

pub(super) use self::{
    access::{cluster_role, cluster_role_binding, role, role_binding},
    addresses::{parse as parse_address, parse_range},
    admission_policies::policy as admission_policy,
    autoscalers::{autoscaler, autoscaler_status},
    batch::{cron_job, job},
    budgets::{budget, budget_status},
    claims::{claim, claim_status},
    classes::{deleted_priority_class, priority_class, runtime_class, storage_class},
    data::{config_map, secret},
    endpoints::{endpoint_slice, endpoints},
    field::Field,
    ingresses::{ingress, ingress_class, ingress_status},
    job_status::validate as job_status,
    leases::lease,
    limit_ranges::limit_range,
    network_policies::network_policy,
    nodes::{node, node_status},
    persistent_volumes::volume,
    pods::{pod, pod_part, pod_status},
    quotas::{quota, quota_status},
    services::{cluster_addresses, service, service_status},
    signing_requests::{signing_request_approval, signing_request_status},
    webhooks::configuration as webhooks,
    workloads::{
        controller_revision, daemon_set, daemon_set_status, deployment, deployment_status, pod_template, replica_set,
        replica_set_status, replication_controller, stateful_set, stateful_set_status,
    },
};
pub(crate) use self::{
    pods::qos_class,
    resources::{aggregate, resource_names},
};
use crate::causes::Causes;

/// Validates a namespace.
pub(super) fn namespace(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    let finalizers = object["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for (index, name) in finalizers.enumerate() {
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.add(|| StatusCause::invalid(format!("spec.finalizers[{index}]"), name, detail));
        }
    }
}

/// Validates the status of a namespace.
pub(super) fn namespace_status(object: &Value, _: &Value, causes: &mut Causes) {
    let (expected, what) = match crate::metadata::is_deleting(object) {
        true => ("Terminating", "is not empty"),
        false => ("Active", "is empty"),
    };
    let phase = &object["status"]["phase"];
    if *phase != expected {
        let detail = format!("may only be '{expected}' if `deletionTimestamp` {what}");
        causes.add(|| StatusCause::invalid("status.Phase", phase.clone(), &detail));
    }
}

/// Validates a new event of the core group or of `events.k8s.io`.
pub(super) fn event(is_new_group: bool, object: &Value, old: Option<&Value>, causes: &mut Causes) {
    if old.is_none() {
        events::validate(is_new_group, object, causes);
    }
}
