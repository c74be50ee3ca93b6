//! Validation of the security contexts of pods and containers.

use std::collections::HashSet;

use serde_json::Value;

use super::field::{Causes, Field, go_struct};
use crate::metadata::formats;

/// Validates the security context of a container.
pub(super) fn container(context: &Field<'_, '_>, uses_host_users: bool, causes: &mut Causes) {
    if !context.is_set() {
        return;
    }
    identity(&context.field("runAsUser"), causes);
    identity(&context.field("runAsGroup"), causes);
    if let Some(mount) = context.set("procMount") {
        mount.optional_one_of(&["Default", "Unmasked"], causes);
        if uses_host_users && mount.text() == "Unmasked" {
            mount.invalid("`hostUsers` must be false to use `Unmasked`", causes);
        }
    }
    seccomp(&context.field("seccompProfile"), causes);
    escalation(context, causes);
    windows(&context.field("windowsOptions"), causes);
    app_armor(&context.field("appArmorProfile"), causes);
}

fn escalation(context: &Field<'_, '_>, causes: &mut Causes) {
    if !context.field("allowPrivilegeEscalation").is_false() {
        return;
    }
    if context.field("privileged").is_true() {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        context.invalid_text(&context_text(context.value), detail, causes);
    }
    for capability in context.field("capabilities").field("add").list() {
        if capability == "CAP_SYS_ADMIN" {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            context.invalid_text(&context_text(context.value), detail, causes);
        }
    }
}

/// Returns the text of a security context with its fields in Go.
fn context_text(context: &Value) -> String {
    let with_names = |value: &Value, names: &[(&str, &str)]| -> Value {
        if value.is_null() {
            return Value::Null;
        }
        let fields: Vec<(&str, &Value)> = names.iter().map(|(go, name)| (*go, &value[*name])).collect();
        serde_json::from_str(&go_struct(&fields)).unwrap_or_default()
    };
    let capabilities = match &context["capabilities"] {
        Value::Null => "null".to_owned(),
        value => go_struct(&[("Add", &value["add"]), ("Drop", &value["drop"])]),
    };
    let selinux = match &context["seLinuxOptions"] {
        Value::Null => "null".to_owned(),
        value => {
            let text = |name: &str| if value[name].is_null() { Value::from("") } else { value[name].clone() };
            go_struct(&[
                ("User", &text("user")),
                ("Role", &text("role")),
                ("Type", &text("type")),
                ("Level", &text("level")),
            ])
        }
    };
    let windows = with_names(
        &context["windowsOptions"],
        &[
            ("GMSACredentialSpecName", "gmsaCredentialSpecName"),
            ("GMSACredentialSpec", "gmsaCredentialSpec"),
            ("RunAsUserName", "runAsUserName"),
            ("HostProcess", "hostProcess"),
        ],
    );
    let seccomp = match &context["seccompProfile"] {
        Value::Null => "null".to_owned(),
        value => go_struct(&[("Type", &value["type"]), ("LocalhostProfile", &value["localhostProfile"])]),
    };
    let app_armor = match &context["appArmorProfile"] {
        Value::Null => "null".to_owned(),
        value => go_struct(&[("Type", &value["type"]), ("LocalhostProfile", &value["localhostProfile"])]),
    };
    format!(
        "{{\"Capabilities\":{capabilities},\"Privileged\":{},\"SELinuxOptions\":{selinux},\"WindowsOptions\":{windows},\"RunAsUser\":{},\"RunAsGroup\":{},\"RunAsNonRoot\":{},\"ReadOnlyRootFilesystem\":{},\"AllowPrivilegeEscalation\":{},\"ProcMount\":{},\"SeccompProfile\":{seccomp},\"AppArmorProfile\":{app_armor}}}",
        context["privileged"],
        context["runAsUser"],
        context["runAsGroup"],
        context["runAsNonRoot"],
        context["readOnlyRootFilesystem"],
        context["allowPrivilegeEscalation"],
        context["procMount"],
    )
}

/// Validates the security context of a pod.
pub(super) fn pod(spec: &Field<'_, '_>, causes: &mut Causes) {
    let context = spec.field("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        identity(&context.field(name), causes);
    }
    context.field("supplementalGroups").items().for_each(|group| identity(&group, causes));
    if spec.field("shareProcessNamespace").is_true() && spec.field("hostPID").is_true() {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        context.field("shareProcessNamespace").invalid_as(true, detail, causes);
    }
    sysctls(spec, &context.field("sysctls"), causes);
    context.field("fsGroupChangePolicy").optional_one_of(&["Always", "OnRootMismatch"], causes);
    seccomp(&context.field("seccompProfile"), causes);
    windows(&context.field("windowsOptions"), causes);
    app_armor(&context.field("appArmorProfile"), causes);
    context.field("supplementalGroupsPolicy").optional_one_of(&["Merge", "Strict"], causes);
    context.field("seLinuxChangePolicy").optional_one_of(&["Recursive"], causes);
}

fn identity(id: &Field<'_, '_>, causes: &mut Causes) {
    if let Some(number) = id.int() {
        id.problems(formats::range_problems(number, 0, i32::MAX.into()), causes);
    }
}

fn sysctls(spec: &Field<'_, '_>, sysctls: &Field<'_, '_>, causes: &mut Causes) {
    let mut names: HashSet<&str> = HashSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.text().is_empty() {
            name.required("", causes);
        } else if !is_sysctl(name.text()) {
            let detail = format!("must have at most {MAX_SYSCTL} characters and match regex {SYSCTL}");
            name.invalid(&detail, causes);
        } else if names.contains(&name.text()) {
            name.duplicate(causes);
        }
        let plain = normalised(name.text());
        if spec.field("hostNetwork").is_true() && plain.starts_with("net.") {
            name.invalid("may not be specified when 'hostNetwork' is true", causes);
        } else if spec.field("hostIPC").is_true() && (IPC.contains(&plain.as_str()) || plain.starts_with("fs.mqueue."))
        {
            name.invalid("may not be specified when 'hostIPC' is true", causes);
        }
        names.insert(name.text());
    }
}

/// Returns a name with dots between its parts, unless the first separator is a dot already.
fn normalised(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => {
            let swap = |c: char| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            };
            name.chars().map(swap).collect()
        }
        _ => name.to_owned(),
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.iter().all(|byte| is_edge(byte) || matches!(byte, b'-' | b'_'))
            && bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
    };
    name.len() <= MAX_SYSCTL && name.split(['.', '/']).all(is_segment)
}

fn seccomp(profile: &Field<'_, '_>, causes: &mut Causes) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.text() {
        "Localhost" | "RuntimeDefault" | "Unconfined" => {}
        "" => kind.required("type is required when seccompProfile is set", causes),
        _ => kind.not_supported(&PROFILES, causes),
    }
    if kind.text() == "Localhost" {
        if file.is_set() {
            file.descending_path(causes);
        } else {
            file.required("must be set when seccomp type is Localhost", causes);
        }
    } else if file.is_set() {
        let shown = go_struct(&[("Type", kind.value), ("LocalhostProfile", file.value)]);
        file.invalid_text(&shown, "can only be set when seccomp type is Localhost", causes);
    }
}

fn app_armor(profile: &Field<'_, '_>, causes: &mut Causes) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.field("type"), profile.field("localhostProfile"));
    let missing = "must be set when AppArmor type is Localhost";
    match kind.text() {
        "Localhost" if !file.is_set() => file.required(missing, causes),
        "Localhost" => {
            if file.text().trim() != file.text() {
                file.invalid("must not be padded with whitespace", causes);
            } else if file.text().is_empty() {
                file.required(missing, causes);
            }
            if file.text().len() > MAX_PROFILE {
                file.too_long(MAX_PROFILE, causes);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if file.is_set() {
                file.invalid("can only be set when AppArmor type is Localhost", causes);
            }
        }
        "" => kind.required("type is required when appArmorProfile is set", causes),
        _ => kind.not_supported(&PROFILES, causes),
    }
}

fn windows(options: &Field<'_, '_>, causes: &mut Causes) {
    if let Some(name) = options.set("gmsaCredentialSpecName") {
        name.subdomain(causes);
    }
    if let Some(spec) = options.set("gmsaCredentialSpec") {
        if spec.text().is_empty() {
            spec.invalid("gmsaCredentialSpec cannot be an empty string", causes);
        } else if spec.text().len() > MAX_CREDENTIAL {
            spec.invalid("gmsaCredentialSpec size must be under 64 KiB", causes);
        }
    }
    if let Some(user) = options.set("runAsUserName") {
        for problem in user_problems(user.text()) {
            user.invalid(problem, causes);
        }
    }
}

fn user_problems(text: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        _ if text.is_empty() => return vec!["runAsUserName cannot be an empty string"],
        _ if text.chars().any(|c| c.is_ascii_control()) => {
            return vec!["runAsUserName cannot contain control characters"];
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let mut problems = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= 256) {
        problems.push("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_windows_domain(domain)) {
        problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        problems.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        problems.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        problems.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    problems
}

fn is_net_bios(domain: &str) -> bool {
    let count = domain.chars().count();
    (1..=15).contains(&count)
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_windows_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Validates that all containers of a pod run as processes of the host, if one does.
pub(super) fn host_processes(spec: &Field<'_, '_>, causes: &mut Causes) {
    let of_pod = spec.field("securityContext").field("windowsOptions").field("hostProcess").value.as_bool();
    let (mut count, mut of_host) = (0, 0);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.field(list).items() {
            count += 1;
            let context = container.field("securityContext");
            let options = context.field("windowsOptions");
            let own = options.field("hostProcess");
            if let (Some(of_pod), Some(of_container)) = (of_pod, own.value.as_bool())
                && of_pod != of_container
            {
                let detail = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
                own.invalid(&detail, causes);
            }
            of_host += usize::from(own.value.as_bool().or(of_pod).unwrap_or_default());
        }
    }
    if of_host == 0 {
        return;
    }
    if of_host != count {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        spec.invalid_as("", detail, causes);
    }
    if !spec.field("hostNetwork").is_true() {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        spec.field("hostNetwork").invalid_as(false, detail, causes);
    }
}

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const MAX_PROFILE: usize = 4095;
const MAX_CREDENTIAL: usize = 64 << 10;
const MAX_SYSCTL: usize = 253;
const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
/// The sysctls of a pod's own namespace for communication between processes.
const IPC: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];
