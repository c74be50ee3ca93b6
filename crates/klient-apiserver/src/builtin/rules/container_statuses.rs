//! Validation of the statuses of a pod's containers: users, and health of resources.

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
        for container in status.field(list).items() {
            allocated(&container, &spec.field(containers), causes);
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
fn allocated(status: &Field<'_, '_>, containers: &Field<'_, '_>, causes: &mut Causes) {
    let container = containers.items().find(|container| container.value["name"] == status.value["name"]);
    for resource in status.field("allocatedResourcesStatus").items() {
        let name = resource.field("name");
        let own = container.as_ref().map(|container| container.field("resources"));
        if let Some(own) = own {
            let claim = name.text().strip_prefix("claim:");
            let (is_known, detail) = match claim {
                Some(wanted) => (
                    own.field("claims").items().any(|claim| {
                        let (of, request) = (claim.field("name"), claim.field("request"));
                        match request.text() {
                            "" => of.text() == wanted,
                            request => wanted.split_once('/') == Some((of.text(), request)),
                        }
                    }),
                    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
                ),
                None => (
                    own.value["requests"].get(name.text()).is_some(),
                    "must match one of the container's resource requests",
                ),
            };
            if !is_known {
                name.invalid(detail, causes);
            }
        }
        let mut seen: Vec<&str> = Vec::new();
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
            if seen.contains(&id.text()) {
                id.duplicate(causes);
            } else {
                seen.push(id.text());
            }
        }
    }
}

/// The number of bytes that a message about health can have.
const MAX_MESSAGE: usize = 1024;
const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
