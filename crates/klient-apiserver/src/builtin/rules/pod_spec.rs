//! Validation of the specification of pods, in pods and in templates.

use std::collections::HashSet;

use klient_core::StatusCause;
use serde_json::Value;

use super::{
    containers::{self, Pod},
    field::{Causes, Field, go_struct},
    resources, scheduling, security, template, volumes,
};
use crate::metadata::formats;

/// Validates the specification of a pod or a template. `pod` is the pod, which templates do not have.
pub(super) fn validate(spec: &Field<'_, '_>, pod: Option<&Value>, causes: &mut Causes) {
    if !spec.field("terminationGracePeriodSeconds").is_set() {
        spec.field("terminationGracePeriodSeconds").required("", causes);
    }
    let name = pod.map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default()).filter(|name| !name.is_empty());
    let volumes = volumes::validate(spec, name, pod.is_some(), causes);
    let claims = spec.field("resourceClaims");
    if pod.is_some_and(|pod| pod["metadata"]["annotations"].get(template::MIRROR).is_some()) {
        for _ in claims.items() {
            let detail = "static pods do not support resource claims";
            causes.add(|| StatusCause::forbidden(template::NOWHERE, detail));
        }
    } else {
        resource_claims(&claims, causes);
    }
    let names = claims.list().iter().filter_map(|claim| claim["name"].as_str().filter(|name| !name.is_empty()));
    let containers = Pod { spec, volumes, claims: names.collect() };
    containers::running(&containers, causes);
    containers::initial(&containers, causes);
    containers::ephemeral(&containers, causes);
    resources::of_pod(spec, &containers.claims, causes);
    host_network_ports(spec, pod.is_some(), causes);
    spec.field("restartPolicy").one_of(&["Always", "OnFailure", "Never"], causes);
    spec.field("dnsPolicy").one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], causes);
    spec.field("nodeSelector").labels(causes);
    security::pod(spec, causes);
    scheduling::affinity(&spec.field("affinity"), causes);
    dns(spec, causes);
    for gate in spec.field("readinessGates").items() {
        gate.field("conditionType").qualified_name(causes);
    }
    scheduling_gates(&spec.field("schedulingGates"), causes);
    scheduling::spread(&spec.field("topologySpreadConstraints"), causes);
    security::host_processes(spec, causes);
    host_users(spec, causes);
    host_name(spec, causes);
    names_and_numbers(spec, causes);
    os(spec, causes);
    file_keys(spec, causes);
}

/// Validates short fields, in the order of the real server.
fn names_and_numbers(spec: &Field<'_, '_>, causes: &mut Causes) {
    for name in ["serviceAccountName", "nodeName"] {
        if !spec.field(name).text().is_empty() {
            spec.field(name).subdomain(causes);
        }
    }
    if let Some(deadline) = spec.set("activeDeadlineSeconds") {
        deadline.problems(formats::range_problems(deadline.number(), 1, i32::MAX.into()), causes);
    }
    for name in ["hostname", "subdomain"] {
        if !spec.field(name).text().is_empty() {
            spec.field(name).label(causes);
        }
    }
    scheduling::tolerations(&spec.field("tolerations"), causes);
    for alias in spec.field("hostAliases").items() {
        alias.field("ip").address(&[], causes);
        alias.field("hostnames").items().for_each(|name| name.subdomain(causes));
    }
    if !spec.field("priorityClassName").text().is_empty() {
        spec.field("priorityClassName").subdomain(causes);
    }
    if let Some(name) = spec.set("runtimeClassName") {
        name.subdomain(causes);
    }
    if let Some(policy) = spec.set("preemptionPolicy") {
        policy.one_of(&["PreemptLowerPriority", "Never"], causes);
    }
    resources::overhead(&spec.field("overhead"), causes);
}

fn resource_claims(claims: &Field<'_, '_>, causes: &mut Causes) {
    let mut names = HashSet::new();
    for claim in claims.items() {
        let name = claim.field("name");
        if name.text().is_empty() {
            name.required("", causes);
        } else if !names.insert(name.text()) {
            name.duplicate(causes);
        } else {
            name.label(causes);
        }
        let (of, template) = (claim.field("resourceClaimName"), claim.field("resourceClaimTemplateName"));
        let shown = || {
            go_struct(&[
                ("Name", &Value::from(name.text())),
                ("ResourceClaimName", of.value),
                ("ResourceClaimTemplateName", template.value),
            ])
        };
        if of.is_set() && template.is_set() {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
            claim.invalid_text(&shown(), detail, causes);
        }
        if !of.is_set() && !template.is_set() {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            claim.invalid_text(&shown(), detail, causes);
        }
        for name in [of, template] {
            if name.is_set() {
                name.subdomain(causes);
            }
        }
    }
}

fn host_network_ports(spec: &Field<'_, '_>, is_pod: bool, causes: &mut Causes) {
    if !spec.field("hostNetwork").is_true() {
        return;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let host = port.field("hostPort");
            if (is_pod || host.number() != 0) && host.number() != port.field("containerPort").number() {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                host.invalid_as(host.number(), detail, causes);
            }
        }
    }
}

fn dns(spec: &Field<'_, '_>, causes: &mut Causes) {
    let config = spec.field("dnsConfig");
    let servers = config.field("nameservers");
    if spec.field("dnsPolicy").text() == "None" {
        if !config.is_set() {
            return config.required("must provide `dnsConfig` when `dnsPolicy` is None", causes);
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return servers.required(detail, causes);
        }
    }
    if servers.list().len() > 3 {
        servers.invalid("must not have more than 3 nameservers", causes);
    }
    servers.items().for_each(|server| server.address(&[], causes));
    let searches = config.field("searches");
    if searches.list().len() > 32 {
        searches.invalid("must not have more than 32 search paths", causes);
    }
    let length: usize = searches.list().iter().map(|search| search.as_str().map_or(0, str::len) + 1).sum();
    if length.saturating_sub(1) > 2048 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        searches.invalid(detail, causes);
    }
    for search in searches.items() {
        let text = search.text();
        if text != "." {
            let text = text.strip_suffix('.').unwrap_or(text);
            for problem in formats::underscored_subdomain_problems(text) {
                search.invalid_as(text, &problem, causes);
            }
        }
    }
    for option in config.field("options").items() {
        if option.field("name").text().is_empty() {
            option.required("must not be empty", causes);
        }
    }
}

fn scheduling_gates(gates: &Field<'_, '_>, causes: &mut Causes) {
    let mut names: HashSet<&str> = HashSet::new();
    for gate in gates.items() {
        let name = gate.field("name").text();
        for problem in formats::qualified_name_problems(name) {
            gate.invalid_as(name, &problem, causes);
        }
        if names.contains(&name) {
            gate.duplicate_as(name, causes);
        }
        names.insert(name);
    }
}

fn host_users(spec: &Field<'_, '_>, causes: &mut Causes) {
    if !spec.field("hostUsers").is_false() {
        return;
    }
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        let field = spec.named(name, shown);
        if field.is_true() {
            field.forbidden("when `hostUsers` is false", causes);
        }
    }
    for_each_container(spec, |container| {
        if !container.field("volumeDevices").is_empty() {
            container.field("volumeDevices").forbidden("when `hostUsers` is false", causes);
        }
    });
}

fn host_name(spec: &Field<'_, '_>, causes: &mut Causes) {
    let Some(name) = spec.set("hostnameOverride") else { return };
    if spec.field("setHostnameAsFQDN").is_true() {
        name.forbidden("may not be specified when setHostnameAsFQDN is true", causes);
    }
    if spec.field("hostNetwork").is_true() {
        name.forbidden("may not be specified when hostNetwork is true", causes);
    }
    if name.text().len() > 64 {
        name.too_long(64, causes);
    }
    name.subdomain(causes);
}

fn os(spec: &Field<'_, '_>, causes: &mut Causes) {
    let Some(os) = spec.set("os") else { return };
    match os.field("name").text() {
        "" => os.field("name").required("", causes),
        "linux" => linux(spec, causes),
        "windows" => windows(spec, causes),
        other => os.with(&Value::from(other)).not_supported(&["linux", "windows"], causes),
    }
}

fn linux(spec: &Field<'_, '_>, causes: &mut Causes) {
    let detail = "windows options cannot be set for a linux pod";
    if let Some(options) = spec.field("securityContext").set("windowsOptions") {
        options.forbidden(detail, causes);
    }
    for_each_container(spec, |container| {
        if let Some(options) = container.field("securityContext").set("windowsOptions") {
            options.forbidden(detail, causes);
        }
    });
}

fn windows(spec: &Field<'_, '_>, causes: &mut Causes) {
    let detail = "cannot be set for a windows pod";
    let context = spec.field("securityContext");
    for (name, is_of_spec) in OF_LINUX_PODS {
        let field = if *is_of_spec { spec.field(name) } else { context.field(name) };
        // Three of them are no pointers in Go, so that false is not set.
        let is_set = if matches!(*name, "hostPID" | "hostIPC") { field.is_true() } else { field.is_set() };
        if is_set {
            field.forbidden(detail, causes);
        }
    }
    for_each_container(spec, |container| {
        let context = container.field("securityContext");
        for name in OF_LINUX_CONTAINERS {
            if let Some(field) = context.set(name) {
                field.forbidden(detail, causes);
            }
        }
    });
}

/// Validates that variables with keys of files refer to volumes that can have such files.
fn file_keys(spec: &Field<'_, '_>, causes: &mut Causes) {
    let volumes = spec.field("volumes").list();
    for_each_container(spec, |container| {
        for variable in container.field("env").items() {
            let source = variable.field("valueFrom");
            let Some(key) = source.set("fileKeyRef") else { continue };
            let name = key.field("volumeName");
            let own = |volume: &&Value| volume["name"].as_str().unwrap_or_default() == name.text();
            match volumes.iter().rev().find(own) {
                None => name.not_found(causes),
                Some(volume) if volume.get("emptyDir").is_none() => {
                    name.invalid("referenced volume must be of type emptyDir", causes);
                }
                Some(_) => {}
            }
        }
    });
}

/// Calls a function with each container of a pod.
pub(super) fn for_each_container<'v>(spec: &Field<'_, 'v>, mut each: impl FnMut(&Field<'_, 'v>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.field(list).items() {
            each(&container);
        }
    }
}

/// The fields that a Windows pod cannot have, and whether they are fields of the specification.
const OF_LINUX_PODS: &[(&str, bool)] = &[
    ("appArmorProfile", false),
    ("seLinuxOptions", false),
    ("hostUsers", true),
    ("hostPID", true),
    ("hostIPC", true),
    ("seccompProfile", false),
    ("fsGroup", false),
    ("fsGroupChangePolicy", false),
    ("sysctls", false),
    ("shareProcessNamespace", true),
    ("runAsUser", false),
    ("runAsGroup", false),
    ("supplementalGroups", false),
    ("supplementalGroupsPolicy", false),
    ("seLinuxChangePolicy", false),
];
/// The fields that the containers of a Windows pod cannot have.
const OF_LINUX_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];
