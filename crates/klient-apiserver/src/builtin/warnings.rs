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

use std::collections::HashSet;

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
use crate::admission::{CUT, MAX_WARNINGS};

/// The warnings that were found: different ones, and not many more than are sent.
#[derive(Default)]
pub(crate) struct Told {
    texts: Vec<String>,
    seen: HashSet<String>,
    /// The number of characters of all texts, if each was cut.
    length: usize,
}

impl Told {
    /// Adds a warning, unless it would not be sent.
    fn push(&mut self, text: String) {
        if self.is_full() || text.is_empty() || text.contains(char::is_control) || !self.seen.insert(text.clone()) {
            return;
        }
        self.length += text.chars().take(CUT).count();
        self.texts.push(text);
    }

    /// Returns whether the warnings that follow cannot be sent. The request may have as many from before, and drops those that it has.
    fn is_full(&self) -> bool {
        self.length > 2 * (MAX_WARNINGS + CUT)
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.texts
    }
}

impl Extend<String> for Told {
    fn extend<T: IntoIterator<Item = String>>(&mut self, texts: T) {
        texts.into_iter().for_each(|text| self.push(text));
    }
}

/// Adds a warning about a field.
fn warn(field: &Field<'_, '_>, why: &str, told: &mut Told) {
    if told.is_full() {
        return;
    }
    told.push(format!("{}: {why}", field.path()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_end_when_no_more_are_sent() {
        let mut told = Told::default();
        told.extend((0..10_000).map(|n| format!("{n}{}", "x".repeat(400))));
        assert_eq!(told.texts.len(), 2 * (MAX_WARNINGS + CUT) / CUT + 1);
        let mut told = Told::default();
        told.extend(["a", "", "a", "b\n"].map(str::to_owned));
        assert_eq!(told.texts, ["a"]);
    }
}
