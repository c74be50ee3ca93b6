//! Validation of the statuses of a pod's containers: users, and health of resources.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::field::{Causes, Field};

/// Validates the statuses of all containers. Values are the pod's status and spec.
pub(super) fn container_statuses(status: &Field<'_, '_>, spec: &Field<'_, '_>, causes: &mut Causes) {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let os = spec.field("os");
    let os = os.field("name").text();
    for list in lists {
        for container in status.field(list).items() {
            user(&container, os, causes);
        }
    }
    for (list, containers) in [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")] {
        let mut known = HashMap::new();
        for container in spec.field(containers).list() {
            known.entry(container["name"].as_str()).or_insert_with(|| Resources::of(&container["resources"]));
        }
        for container in status.field(list).items() {
            allocated(&container, known.get(&container.value["name"].as_str()), causes);
        }
    }
    for container in status.field("ephemeralContainerStatuses").items() {
        let allocated = container.field("allocatedResourcesStatus");
        if !allocated.list().is_empty() {
            allocated.forbidden("must not be specified in container status", causes);
        }
    }
}

fn user(container: &Field<'_, '_>, os: &str, causes: &mut Causes) {
    let user = container.field("user");
    let linux = user.field("linux");
    if !linux.is_set() {
        return;
    }
    match os {
        "windows" => linux.forbidden("cannot be set for a windows pod", causes),
        "" | "linux" => {
            let groups = linux.field("supplementalGroups");
            for id in [linux.field("uid"), linux.field("gid")].into_iter().chain(groups.items()) {
                if !(0..=i64::from(i32::MAX)).contains(&id.number()) {
                    id.invalid(&format!("must be between 0 and {}, inclusive", i32::MAX), causes);
                }
            }
        }
        _ => {}
    }
}

/// Validates the health of the resources that a container has. A container that the pod does not have is not looked at.
fn allocated(status: &Field<'_, '_>, own: Option<&Resources<'_>>, causes: &mut Causes) {
    for resource in status.field("allocatedResourcesStatus").items() {
        let name = resource.field("name");
        if let Some(own) = own {
            let claim = name.text().strip_prefix("claim:");
            let (is_known, detail) = match claim {
                Some(wanted) => (
                    own.has_claim(wanted),
                    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
                ),
                None => {
                    (own.requests.get(name.text()).is_some(), "must match one of the container's resource requests")
                }
            };
            if !is_known {
                name.invalid(detail, causes);
            }
        }
        let mut seen = HashSet::new();
        for device in resource.field("resources").items() {
            let (health, message, id) = (device.field("health"), device.field("message"), device.field("resourceID"));
            if !HEALTH.contains(&health.text()) {
                health.not_supported(&HEALTH, causes);
            }
            if message.is_set() && message.text().is_empty() {
                message.required("must be non-empty if specified", causes);
            } else if message.text().len() > MAX_MESSAGE {
                message.too_long(MAX_MESSAGE, causes);
            }
            if !seen.insert(id.text()) {
                id.duplicate(causes);
            }
        }
    }
}

/// The resources that a container of the specification has.
struct Resources<'v> {
    requests: &'v Value,
    /// The names of claims, each with a request or an empty text.
    claims: HashSet<(&'v str, &'v str)>,
}

impl<'v> Resources<'v> {
    fn of(resources: &'v Value) -> Self {
        let text = |claim: &'v Value, name: &str| claim[name].as_str().unwrap_or_default();
        let claims = resources["claims"].as_array().into_iter().flatten();
        let claims = claims.map(|claim| (text(claim, "name"), text(claim, "request"))).collect();
        Self { requests: &resources["requests"], claims }
    }

    /// Returns whether the container has a claim, which is named `CLAIM` or `CLAIM/REQUEST`.
    fn has_claim(&self, wanted: &str) -> bool {
        let with_request = wanted.split_once('/').filter(|(_, request)| !request.is_empty());
        self.claims.contains(&(wanted, "")) || with_request.is_some_and(|claim| self.claims.contains(&claim))
    }
}

/// The number of bytes that a message about health can have.
const MAX_MESSAGE: usize = 1024;
const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
