//! Validation of jobs and cron jobs.

use serde_json::{Value, json};

use super::{
    field::{Causes, Field},
    indexes, pods,
    same::is_same,
    schedules, selectors, template,
};
use crate::metadata::formats;

/// Validates a job.
pub(in crate::builtin) fn job(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    generated_selector(object, old, &spec, causes);
    job_with_selector(&spec, causes);
    let (completions, name) = (spec.field("completions").number(), &object["metadata"]["name"]);
    if spec.field("completionMode").text() == "Indexed" && completions > 0 {
        let host = format!("{}-{}", name.as_str().unwrap_or_default(), completions - 1);
        if !formats::label_problems(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            Field::of(object, "metadata").field("name").invalid(&detail, causes);
        }
    }
    if let Some(old) = old {
        update(&spec, old, causes);
    }
}

/// Validates that the selector of a job and the labels of its pods are those that the server generated.
fn generated_selector(object: &Value, old: Option<&Value>, spec: &Field<'_, '_>, causes: &mut Causes) {
    if spec.field("manualSelector").is_true() || !spec.field("selector").is_set() {
        return;
    }
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    let (uid, name) = (text("uid"), text("name"));
    let had = |label: &str| old.is_none_or(|old| old["spec"]["template"]["metadata"]["labels"].get(label).is_some());
    let has_domain = had("batch.kubernetes.io/job-name") && had("batch.kubernetes.io/controller-uid");
    let pods = spec.field("template");
    let metadata = pods.field("metadata");
    let labels = metadata.field("labels");
    let mut expected = vec![("controller-uid", uid), ("job-name", name)];
    if has_domain {
        expected.extend([("batch.kubernetes.io/controller-uid", uid), ("batch.kubernetes.io/job-name", name)]);
    }
    for (label, value) in &expected {
        let found = labels.key(label);
        let detail = format!("must be '{value}'");
        if !found.is_set() {
            found.required(&detail, causes);
        } else if found.text() != *value {
            found.invalid_as(labels.value.clone(), &detail, causes);
        }
    }
    let expected: Value = expected.iter().map(|(label, value)| ((*label).to_owned(), json!(value))).collect();
    let selector = spec.field("selector");
    if selectors::selects(selector.value, &expected) == Some(false) {
        let shown = selectors::text(selector.value);
        selector.invalid_text(&shown, "`selector` not auto-generated", causes);
    }
}

fn job_with_selector(spec: &Field<'_, '_>, causes: &mut Causes) {
    job_spec(spec, causes);
    let selector = spec.field("selector");
    if selector.is_set() {
        selector.label_selector(causes);
    } else {
        selector.required("", causes);
    }
    let pods = spec.field("template");
    let metadata = pods.field("metadata");
    let labels = metadata.field("labels");
    if selectors::selects(selector.value, labels.value) == Some(false) {
        labels.invalid_as(labels.value.clone(), "`selector` does not match template `labels`", causes);
    }
}

fn job_spec(spec: &Field<'_, '_>, causes: &mut Causes) {
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.field(name).not_negative(causes);
    }
    if spec.field("maxFailedIndexes").is_set() && !spec.field("backoffLimitPerIndex").is_set() {
        spec.field("backoffLimitPerIndex").required("when maxFailedIndexes is specified", causes);
    }
    if let Some(manager) = spec.set("managedBy") {
        domain_path(&manager, causes);
        if manager.text().len() > 63 {
            manager.too_long(63, causes);
        }
    }
    completion(spec, causes);
    if spec.field("podFailurePolicy").is_set() {
        failure_policy(spec, causes);
    }
    if let Some(policy) = spec.set("successPolicy") {
        if spec.field("completionMode").text() == "Indexed" {
            success_policy(spec, &policy, causes);
        } else {
            policy.invalid_text(&success_text(policy.value), "requires indexed completion mode", causes);
        }
    }
    if let Some(policy) = spec.set("podReplacementPolicy") {
        let has_failures = spec.field("podFailurePolicy").is_set();
        let known: &[&str] = if has_failures { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        policy.optional_one_of(known, causes);
    }
    template::validate(&spec.field("template"), causes);
    let pods = spec.field("template");
    let pod = pods.field("spec");
    let restart = pod.field("restartPolicy");
    match restart.text() {
        "" | "Always" => restart.required("valid values: \"OnFailure\", \"Never\"", causes),
        "Never" => {}
        "OnFailure" if spec.field("podFailurePolicy").is_set() => {
            restart.invalid("only \"Never\" is supported when podFailurePolicy is specified", causes);
        }
        "OnFailure" => {}
        _ => restart.not_supported(&["OnFailure", "Never"], causes),
    }
}

/// Validates a path with a domain, such as `example.com/controller`.
pub(super) fn domain_path(field: &Field<'_, '_>, causes: &mut Causes) {
    if !field.not_empty(causes) {
        return;
    }
    let parts = field.text().split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = parts else {
        return field.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")", causes);
    };
    for problem in formats::subdomain_problems(host) {
        field.invalid_as(host, &problem, causes);
    }
    if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        field.invalid_as(path, detail, causes);
    }
}

fn completion(spec: &Field<'_, '_>, causes: &mut Causes) {
    let mode = spec.field("completionMode");
    let (completions, parallelism) = (spec.field("completions"), spec.field("parallelism"));
    let (failed, backoff) = (spec.field("maxFailedIndexes"), spec.field("backoffLimitPerIndex"));
    mode.optional_one_of(&["NonIndexed", "Indexed"], causes);
    if mode.text() == "Indexed" {
        if !completions.is_set() {
            completions.required("when completion mode is Indexed", causes);
        }
        if parallelism.number() > 100_000 {
            parallelism.invalid("must be less than or equal to 100000 when completion mode is Indexed", causes);
        }
        if completions.is_set() && failed.is_set() && failed.number() > completions.number() {
            failed.invalid("must be less than or equal to completions", causes);
        }
        if failed.number() > 100_000 {
            failed.invalid("must be less than or equal to 100000", causes);
        }
        if completions.number() > 100_000 && backoff.is_set() {
            let detail = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index";
            if !failed.is_set() {
                failed.required("must be specified when completions is above 100000", causes);
            }
            if parallelism.number() > 10_000 {
                parallelism.invalid(detail, causes);
            }
            if failed.number() > 10_000 {
                failed.invalid(detail, causes);
            }
        }
    }
    if !mode.is_set() || mode.text() == "NonIndexed" {
        for field in [backoff, failed] {
            if field.is_set() {
                field.invalid("requires indexed completion mode", causes);
            }
        }
    }
}

fn failure_policy(spec: &Field<'_, '_>, causes: &mut Causes) {
    let policy = spec.field("podFailurePolicy");
    let rules = policy.field("rules");
    if rules.list().len() > 20 {
        rules.too_many(20, causes);
    }
    let pod = &spec.value["template"]["spec"];
    let names: Vec<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod[*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    for rule in rules.items() {
        let action = rule.field("action");
        match action.text() {
            "" => action.required("valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]", causes),
            "FailIndex" if !spec.field("backoffLimitPerIndex").is_set() => {
                action.invalid("requires the backoffLimitPerIndex to be set", causes);
            }
            "Count" | "FailIndex" | "FailJob" | "Ignore" => {}
            _ => action.not_supported(&["Count", "FailIndex", "FailJob", "Ignore"], causes),
        }
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, &names, causes);
        }
        if !conditions.is_empty() {
            pod_conditions(&conditions, causes);
        }
        match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => {
                rule.invalid_hidden("specifying both OnExitCodes and OnPodConditions is not supported", causes);
            }
            (false, false) => {
                rule.invalid_hidden("specifying one of OnExitCodes and OnPodConditions is required", causes);
            }
            _ => {}
        }
    }
}

fn pod_conditions(conditions: &Field<'_, '_>, causes: &mut Causes) {
    if conditions.list().len() > 20 {
        conditions.too_many(20, causes);
    }
    for condition in conditions.items() {
        condition.field("type").qualified_name(causes);
        let status = condition.field("status");
        match status.text() {
            "" => status.required("valid values: [\"False\" \"True\" \"Unknown\"]", causes),
            "False" | "True" | "Unknown" => {}
            _ => status.not_supported(&["False", "True", "Unknown"], causes),
        }
    }
}

fn exit_codes(codes: &Field<'_, '_>, names: &[&str], causes: &mut Causes) {
    let (operator, values) = (codes.field("operator"), codes.field("values"));
    match operator.text() {
        "" => operator.required("valid values: [\"In\" \"NotIn\"]", causes),
        "In" | "NotIn" => {}
        _ => operator.not_supported(&["In", "NotIn"], causes),
    }
    if let Some(name) = codes.set("containerName")
        && !names.contains(&name.text())
    {
        name.invalid("must be one of the container or initContainer names in the pod template", causes);
    }
    if values.is_empty() {
        values.invalid_as(values.value.clone(), "at least one value is required", causes);
    } else if values.list().len() > 255 {
        values.too_many(255, causes);
    }
    let mut seen: Vec<i64> = Vec::new();
    let mut is_ordered = true;
    for value in values.items() {
        let number = value.number();
        if operator.text() == "In" && number == 0 {
            value.invalid_as(0, "must not be 0 for the In operator", causes);
        }
        if seen.contains(&number) {
            value.duplicate(causes);
        }
        is_ordered &= seen.last().is_none_or(|last| *last <= number);
        seen.push(number);
    }
    if !is_ordered {
        values.invalid("must be ordered", causes);
    }
}

fn success_policy(spec: &Field<'_, '_>, policy: &Field<'_, '_>, causes: &mut Causes) {
    let rules = policy.field("rules");
    if rules.is_empty() {
        rules.required("at least one rules must be specified when the successPolicy is specified", causes);
    }
    if rules.list().len() > 20 {
        rules.too_many(20, causes);
    }
    // Without completions, the real server does not respond to this request.
    let completions = spec.field("completions").number();
    for rule in rules.items() {
        let (count, list) = (rule.field("succeededCount"), rule.field("succeededIndexes"));
        if !count.is_set() && !list.is_set() {
            rule.required("at least one of succeededCount or succeededIndexes must be specified", causes);
        }
        let mut total = 0;
        if list.is_set() {
            if list.text().len() > 64 << 10 {
                list.too_long(64 << 10, causes);
            }
            match indexes::count(list.text(), completions) {
                Ok(count) => total = count,
                Err(why) => list.invalid(&format!("error parsing succeededIndexes: {why}"), causes),
            }
        }
        if let Some(number) = count.int() {
            count.not_negative(causes);
            if number > completions {
                let detail =
                    format!("must be less than or equal to {completions} (the number of specified completions)");
                count.invalid(&detail, causes);
            }
            if list.is_set() && number > total {
                let detail = format!(
                    "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
                );
                count.invalid(&detail, causes);
            }
        }
    }
}

fn success_text(policy: &Value) -> String {
    let rules: Vec<String> = policy["rules"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| {
            format!(
                "{{\"SucceededIndexes\":{},\"SucceededCount\":{}}}",
                rule["succeededIndexes"], rule["succeededCount"]
            )
        })
        .collect();
    match policy {
        Value::Null => "null".to_owned(),
        _ if policy["rules"].is_null() => "{\"Rules\":null}".to_owned(),
        _ => format!("{{\"Rules\":[{}]}}", rules.join(",")),
    }
}

fn failure_text(policy: &Value) -> String {
    if policy.is_null() {
        return "null".to_owned();
    }
    let text = |value: &Value| Value::from(value.as_str().unwrap_or_default());
    let rule = |rule: &Value| {
        let codes = match &rule["onExitCodes"] {
            Value::Null => "null".to_owned(),
            codes => format!(
                "{{\"ContainerName\":{},\"Operator\":{},\"Values\":{}}}",
                codes["containerName"],
                text(&codes["operator"]),
                codes["values"]
            ),
        };
        let conditions = match rule["onPodConditions"].as_array() {
            None => "null".to_owned(),
            Some(conditions) => {
                let shown = conditions.iter().map(|condition| {
                    format!("{{\"Type\":{},\"Status\":{}}}", text(&condition["type"]), text(&condition["status"]))
                });
                format!("[{}]", shown.collect::<Vec<_>>().join(","))
            }
        };
        format!("{{\"Action\":{},\"OnExitCodes\":{codes},\"OnPodConditions\":{conditions}}}", text(&rule["action"]))
    };
    match policy["rules"].as_array() {
        None => "{\"Rules\":null}".to_owned(),
        Some(rules) => format!("{{\"Rules\":[{}]}}", rules.iter().map(rule).collect::<Vec<_>>().join(",")),
    }
}

fn update(spec: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    let before = &old["spec"];
    let completions = spec.field("completions");
    if spec.field("completionMode").text() != "Indexed" {
        completions.immutable(&before["completions"], causes);
    } else if completions.is_set()
        && *completions.value != before["completions"]
        && completions.value != spec.field("parallelism").value
    {
        completions.invalid("can only be modified in tandem with spec.parallelism", causes);
    }
    let selector = spec.field("selector");
    if !is_same(selector.value, &before["selector"]) {
        selector.invalid_text(&selectors::text(selector.value), "field is immutable", causes);
    }
    template_update(spec, old, causes);
    spec.field("completionMode").immutable(&before["completionMode"], causes);
    let policy = spec.field("podFailurePolicy");
    if !is_same(policy.value, &before["podFailurePolicy"]) {
        policy.invalid_text(&failure_text(policy.value), "field is immutable", causes);
    }
    spec.field("backoffLimitPerIndex").immutable(&before["backoffLimitPerIndex"], causes);
    spec.field("managedBy").immutable(&before["managedBy"], causes);
    let policy = spec.field("successPolicy");
    if !is_same(policy.value, &before["successPolicy"]) {
        policy.invalid_text(&success_text(policy.value), "field is immutable", causes);
    }
}

/// Validates that the pods of a job do not change. Those of a suspended job can change in part.
fn template_update(spec: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    let template = spec.field("template");
    let mut before = old["spec"]["template"].clone();
    let is_suspended = old["spec"]["suspend"] == true;
    let conditions = old["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_marked = conditions.iter().any(|known| known["type"] == "Suspended" && known["status"] == "True");
    let is_open = is_suspended && is_marked && old["status"]["active"].as_i64().unwrap_or_default() == 0;
    if is_open {
        let new = template.value;
        for name in ["nodeSelector", "tolerations", "schedulingGates"] {
            before["spec"][name] = new["spec"][name].clone();
        }
        for name in ["annotations", "labels"] {
            before["metadata"][name] = new["metadata"][name].clone();
        }
        let affinity = &new["spec"]["affinity"];
        pods::with_node_affinity(&mut before["spec"], &affinity["nodeAffinity"], affinity.is_object());
        for list in ["containers", "initContainers"] {
            let new = new["spec"][list].as_array().map_or(&[][..], Vec::as_slice);
            let known = before["spec"][list].as_array_mut();
            for (known, new) in known.into_iter().flatten().zip(new).filter(|(known, new)| known["name"] == new["name"])
            {
                known["resources"] = new["resources"].clone();
            }
        }
    }
    if !is_same(template.value, &before) {
        let at = if is_open { template.field("spec") } else { template };
        at.invalid_as(at.value.clone(), "field is immutable", causes);
    }
}

/// Validates a cron job.
pub(in crate::builtin) fn cron_job(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let schedule = spec.field("schedule");
    let zone = spec.field("timeZone");
    if schedule.not_empty(causes) {
        if let Some(problem) = schedules::problem(schedule.text()) {
            schedule.invalid(&problem, causes);
        }
        let has_zone = schedule.text().contains("TZ");
        let had_zone = old.is_some_and(|old| old["spec"]["schedule"].as_str().is_some_and(|text| text.contains("TZ")));
        if has_zone && had_zone && zone.is_set() {
            schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule", causes);
        } else if has_zone && !had_zone {
            schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead", causes);
        }
    }
    spec.field("startingDeadlineSeconds").not_negative(causes);
    if old.is_none_or(|old| old["spec"]["timeZone"] != *zone.value) && zone.is_set() {
        time_zone(&zone, causes);
    }
    spec.field("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], causes);
    let job = spec.field("jobTemplate");
    let job = job.field("spec");
    job_spec(&job, causes);
    if let Some(selector) = job.set("selector") {
        let shown = selectors::text(selector.value);
        selector.invalid_text(&shown, "`selector` will be auto-generated", causes);
    }
    if job.field("manualSelector").is_true() {
        job.field("manualSelector").not_supported(&["nil", "false"], causes);
    }
    spec.field("successfulJobsHistoryLimit").not_negative(causes);
    spec.field("failedJobsHistoryLimit").not_negative(causes);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if old.is_none() && name.len() > 52 {
        Field::of(object, "metadata").field("name").invalid("must be no more than 52 characters", causes);
    }
}

fn time_zone(zone: &Field<'_, '_>, causes: &mut Causes) {
    if zone.text().is_empty() {
        return zone.invalid("timeZone must be nil or non-empty string", causes);
    }
    if zone.text().eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        zone.invalid(detail, causes);
    }
    if let Some(problem) = schedules::zone_problem(zone.text()) {
        zone.invalid(&problem, causes);
    }
}
