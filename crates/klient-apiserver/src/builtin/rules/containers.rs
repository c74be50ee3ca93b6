//! Validation of containers: of those that run, of those that run before, and of those that are added later.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::{
    environment,
    field::{Causes, Field},
    mounts,
    probes::{self, Handlers},
    resources::{self, Scope},
    security,
};
use crate::metadata::formats;

/// The parts of a pod that its containers refer to.
pub(super) struct Pod<'a, 'p, 'v> {
    pub(super) spec: &'a Field<'p, 'v>,
    /// The volumes that are valid.
    pub(super) volumes: Vec<&'v Value>,
    /// The names of the pod's resource claims.
    pub(super) claims: BTreeSet<&'v str>,
}

impl Pod<'_, '_, '_> {
    fn grace_period(&self) -> Option<i64> {
        self.spec.field("terminationGracePeriodSeconds").int()
    }

    fn handlers(&self) -> Handlers<'_> {
        Handlers { grace_period: self.grace_period(), os: self.spec.field("os").field("name").value.as_str() }
    }

    fn uses_host_users(&self) -> bool {
        !self.spec.field("hostUsers").is_false()
    }
}

/// Validates the containers of a pod.
pub(super) fn running(pod: &Pod<'_, '_, '_>, causes: &mut Causes) {
    let containers = pod.spec.field("containers");
    if containers.is_empty() {
        return containers.required("", causes);
    }
    let mut names: HashSet<&str> = HashSet::new();
    for container in containers.items() {
        common(&container, pod, causes);
        unique_name(&container, &mut names, true, causes);
        probes::lifecycle(&container.field("lifecycle"), &pod.handlers(), causes);
        probes::all(&container, &pod.handlers(), causes);
        restart_policy(&container, causes);
    }
    host_ports(&containers, containers.list(), 0, causes);
}

/// Validates the containers that run before the others.
pub(super) fn initial(pod: &Pod<'_, '_, '_>, causes: &mut Causes) {
    let containers = pod.spec.field("initContainers");
    let mut names: HashSet<&str> = name_list(&pod.spec.field("containers")).collect();
    for (index, container) in containers.items().enumerate() {
        common(&container, pod, causes);
        let is_sidecar = container.field("restartPolicy").text() == "Always";
        restart_policy(&container, causes);
        unique_name(&container, &mut names, false, causes);
        host_ports(&containers, &containers.list()[index..=index], 0, causes);
        if is_sidecar {
            probes::lifecycle(&container.field("lifecycle"), &pod.handlers(), causes);
            probes::all(&container, &pod.handlers(), causes);
        } else {
            for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if let Some(field) = container.set(name) {
                    field.forbidden("may not be set for init containers without restartPolicy=Always", causes);
                }
            }
            for policy in container.field("resizePolicy").items() {
                let restart = policy.field("restartPolicy");
                if restart.text() == "RestartContainer" {
                    let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                    restart.invalid(detail, causes);
                }
            }
        }
    }
}

/// Validates the containers that were added to a running pod.
pub(super) fn ephemeral(pod: &Pod<'_, '_, '_>, causes: &mut Causes) {
    let others: HashSet<&str> =
        name_list(&pod.spec.field("containers")).chain(name_list(&pod.spec.field("initContainers"))).collect();
    let mut names = others.clone();
    for container in pod.spec.field("ephemeralContainers").items() {
        common(&container, pod, causes);
        untrimmed_image(&container, causes);
        unique_name(&container, &mut names, true, causes);
        let target = container.field("targetContainerName");
        if !target.text().is_empty() && !others.contains(target.text()) {
            target.not_found(causes);
        }
        for name in EPHEMERAL_FORBIDDEN {
            let field = container.field(name);
            if field.is_set() && !(field.is_empty() && name == "resources") {
                field.forbidden("cannot be set for an Ephemeral Container", causes);
            }
        }
        for mount in container.field("volumeMounts").items() {
            for name in ["subPath", "subPathExpr"] {
                if !mount.field(name).text().is_empty() {
                    mount.field(name).forbidden("cannot be set for an Ephemeral Container", causes);
                }
            }
        }
    }
}

/// Validates that the image of a container has no space around it. Templates do not need that.
pub(super) fn untrimmed_image(container: &Field<'_, '_>, causes: &mut Causes) {
    let image = container.field("image");
    if image.text().trim().len() != image.text().len() {
        image.invalid("must not have leading or trailing whitespace", causes);
    }
}

fn name_list<'v>(containers: &Field<'_, 'v>) -> impl Iterator<Item = &'v str> + use<'v> {
    containers.list().iter().map(|container| container["name"].as_str().unwrap_or_default())
}

fn unique_name<'v>(container: &Field<'_, 'v>, names: &mut HashSet<&'v str>, keeps_empty: bool, causes: &mut Causes) {
    let name = container.field("name");
    if names.contains(&name.text()) {
        name.duplicate(causes);
    } else if keeps_empty || !name.text().is_empty() {
        names.insert(name.text());
    }
}

/// Validates what all sorts of containers share.
fn common(container: &Field<'_, '_>, pod: &Pod<'_, '_, '_>, causes: &mut Causes) {
    let name = container.field("name");
    if name.not_empty(causes) {
        name.label(causes);
    }
    container.field("image").not_empty(causes);
    container.field("terminationMessagePolicy").one_of(&["File", "FallbackToLogsOnError"], causes);
    ports(&container.field("ports"), causes);
    environment::variables(&container.field("env"), causes);
    environment::sources(&container.field("envFrom"), causes);
    mounts::validate(container, &pod.volumes, causes);
    mounts::devices(container, &pod.volumes, causes);
    container.field("imagePullPolicy").one_of(&PULL_POLICIES, causes);
    resources::requirements(&container.field("resources"), Scope::Container, &pod.claims, causes);
    resize_policies(&container.field("resizePolicy"), pod.spec, causes);
    security::container(&container.field("securityContext"), pod.uses_host_users(), causes);
}

fn ports(ports: &Field<'_, '_>, causes: &mut Causes) {
    let mut names: HashSet<&str> = HashSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.text().is_empty() {
            let problems = formats::port_name_problems(name.text());
            if !problems.is_empty() {
                name.problems(problems, causes);
            } else if names.contains(&name.text()) {
                name.duplicate(causes);
            } else {
                names.insert(name.text());
            }
        }
        let number = port.field("containerPort");
        if number.number() == 0 {
            number.required("", causes);
        } else {
            number.port_number(causes);
        }
        if port.field("hostPort").number() != 0 {
            port.field("hostPort").port_number(causes);
        }
        port.field("protocol").one_of(&PROTOCOLS, causes);
    }
}

/// Validates that no two ports of containers are the same port of a node.
fn host_ports(containers: &Field<'_, '_>, list: &[Value], first: usize, causes: &mut Causes) {
    let mut taken: HashSet<(&Value, &Value, i64)> = HashSet::new();
    for (index, container) in list.iter().enumerate() {
        for (at, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let key = (&port["protocol"], &port["hostIP"], number);
            if taken.contains(&key) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let item = containers.index(first + index);
                let ports = item.field("ports");
                let port = ports.index(at);
                let shown = format!("{}/{}/{number}", text(key.0), text(key.1));
                port.field("hostPort").duplicate_as(shown, causes);
            } else {
                taken.insert(key);
            }
        }
    }
}

fn resize_policies(policies: &Field<'_, '_>, spec: &Field<'_, '_>, causes: &mut Causes) {
    let mut names: HashSet<&str> = HashSet::new();
    for policy in policies.items() {
        let (name, restart) = (policy.field("resourceName"), policy.field("restartPolicy"));
        if names.contains(&name.text()) {
            policy.duplicate_as(name.text(), causes);
        }
        names.insert(name.text());
        policies.with(name.value).one_of(&["cpu", "memory"], causes);
        policies.with(restart.value).one_of(&["NotRequired", "RestartContainer"], causes);
        if spec.field("restartPolicy").text() == "Never" && restart.text() != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            policies.invalid_as(restart.text(), detail, causes);
        }
    }
}

fn restart_policy(container: &Field<'_, '_>, causes: &mut Causes) {
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    if !policy.is_set() && rules.is_empty() {
        return;
    }
    if policy.is_set() {
        policy.optional_one_of(&["Always", "Never", "OnFailure"], causes);
    } else {
        policy.required("must specify restartPolicy when restart rules are used", causes);
        // Containers that run before the others are validated no further.
        if container.path().contains("initContainers[") {
            return;
        }
    }
    if rules.list().len() > MAX_RULES {
        rules.too_many(MAX_RULES, causes);
    }
    for rule in rules.items() {
        let action = rule.field("action");
        if !["Restart", "RestartAllContainers"].contains(&action.text()) {
            action.not_supported(&["Restart", "RestartAllContainers"], causes);
        }
        let Some(codes) = rule.set("exitCodes") else {
            rule.field("exitCodes").required("must be specified", causes);
            continue;
        };
        let operator = codes.field("operator");
        if !["In", "NotIn"].contains(&operator.text()) {
            operator.not_supported(&["In", "NotIn"], causes);
        }
        if codes.field("values").list().len() > MAX_CODES {
            codes.field("values").too_many(MAX_CODES, causes);
        }
    }
}

pub(super) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// The fields that containers which are added later cannot have, in the order of Go's struct.
const EPHEMERAL_FORBIDDEN: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const MAX_RULES: usize = 20;
const MAX_CODES: usize = 255;
