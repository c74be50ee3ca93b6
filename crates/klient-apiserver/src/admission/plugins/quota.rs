//! Resource quotas: a write that would use more than a quota allows is refused.
//!
//! The status of a quota has what is used. An accepted write adds to it, as on the real server. On a server that does the work of a controller
//! manager, every change in the namespace counts it anew.

mod usage;

use std::sync::Arc;

use klient_core::Quantity;
use serde_json::{Value, json};

use self::usage::{Amounts, Counted};
use crate::{
    Result,
    admission::{Attributes, Operation, Plugin, Stage, Verdict},
    builtin,
    registry::Resource,
    server::Core,
    store::{CommitError, Expected, Stored, Write},
};

/// Refuses writes that exceed a quota.
pub(crate) struct ResourceQuota;

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn is_active(&self, core: &Core, resource: &Resource) -> bool {
        resource.namespaced && core.store.count(QUOTAS) > 0
    }

    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool {
        let counted = Counted::of(request.resource);
        stage == Stage::Validating
            && self.is_active(core, request.resource)
            && !request.namespace.is_empty()
            && match (request.operation, request.subresource) {
                (Operation::Create, "") => true,
                (Operation::Update, "") => matches!(counted, Counted::Services | Counted::Claims),
                (Operation::Update, "resize") => matches!(counted, Counted::Pods),
                _ => false,
            }
    }

    fn validate<'a>(&'a self, core: &'a Arc<Core>, request: &'a Attributes<'_>) -> Verdict<'a> {
        Box::pin(check(core, request))
    }
}

/// Checks a write against all quotas of its namespace, then adds to what is used.
async fn check(core: &Arc<Core>, request: &Attributes<'_>) -> Result<()> {
    let Some(object) = &request.object else { return Ok(()) };
    loop {
        let quotas = core.store.list(QUOTAS, &format!("{}/", request.namespace)).objects;
        let mut changed = Vec::new();
        for stored in &quotas {
            let quota = stored.value();
            if let Some(used) = used_after(request, object, &quota)? {
                changed.push((stored, quota, used));
            }
        }
        if request.dry_run {
            return Ok(());
        }
        let mut is_done = true;
        for (stored, quota, used) in changed {
            is_done &= put(core, stored, quota, json!(used)).await;
        }
        // Another write changed a quota meanwhile. What was added to the others is counted once more, and too much for a moment.
        if is_done {
            return Ok(());
        }
    }
}

/// Returns what will be used of a quota, or `None` if a write does not change that.
fn used_after(request: &Attributes<'_>, object: &Value, quota: &Value) -> Result<Option<Amounts>> {
    let counted = Counted::of(request.resource);
    let hard = usage::amounts(&quota["status"]["hard"]);
    let names: Vec<&str> = hard.keys().map(String::as_str).filter(|name| counted.has(name)).collect();
    if names.is_empty() || !counted.is_in_scope(quota, object) {
        return Ok(None);
    }
    let quota_name = crate::metadata::text(quota, "name");
    if let Some(why) = counted.missing(object, &names) {
        return Err(request.forbidden(format!("failed quota: {quota_name}: {why}")));
    }
    let mut used = usage::amounts(&quota["status"]["used"]);
    if names.iter().any(|name| !used.contains_key(*name)) {
        let why = format!("status unknown for quota: {quota_name}, resources: {}", names.join(","));
        return Err(request.forbidden(why));
    }
    let before = match request.old {
        Some(old) if counted.is_in_scope(quota, old) => counted.usage(old),
        _ => Amounts::new(),
    };
    let mut requested = Amounts::new();
    for (name, amount) in counted.usage(object) {
        let more = amount - before.get(&name).copied().unwrap_or_default();
        if hard.contains_key(&name) && !more.is_negative() && !more.is_zero() {
            requested.insert(name, more);
        }
    }
    let is_exceeded =
        |(name, more): &(&String, &Quantity)| used.get(*name).is_some_and(|used| *used + **more > hard[*name]);
    let exceeded: Vec<&String> = requested.iter().filter(is_exceeded).map(|(name, _)| name).collect();
    if !exceeded.is_empty() {
        let shown = |amounts: &Amounts| {
            let parts =
                exceeded.iter().map(|name| format!("{name}={}", amounts.get(*name).copied().unwrap_or_default()));
            parts.collect::<Vec<_>>().join(",")
        };
        let why = format!(
            "exceeded quota: {quota_name}, requested: {}, used: {}, limited: {}",
            shown(&requested),
            shown(&used),
            shown(&hard)
        );
        return Err(request.forbidden(why));
    }
    if requested.is_empty() {
        return Ok(None);
    }
    for (name, more) in requested {
        *used.entry(name).or_default() += more;
    }
    Ok(Some(used))
}

/// Stores what is used of a quota. Returns false if the quota has changed.
async fn put(core: &Core, stored: &Stored, quota: Value, used: Value) -> bool {
    let mut before = quota.clone();
    let mut new = quota;
    new["status"]["used"] = used;
    builtin::record_status(core, "", "resourcequotas", &mut before, &mut new);
    let key = format!("{}/{}", crate::metadata::text(&new, "namespace"), crate::metadata::text(&new, "name"));
    let expected = Expected::Revision(stored.revision);
    !matches!(
        core.store.commit(&Arc::from(QUOTAS), &key, expected, Write::Put(new)).await,
        Err(CommitError::Changed(_))
    )
}

/// Counts what is used of the quotas of a namespace in which an object has changed, as a controller manager does.
pub(crate) async fn recount(core: &Arc<Core>, resource: &Resource, key: &str) {
    let Some((namespace, _)) = key.split_once('/').filter(|_| resource.namespaced) else { return };
    if core.namespace_contents.is_none() || core.store.count(QUOTAS) == 0 {
        return;
    }
    let counted = Counted::of(resource);
    let is_quota = resource.group.is_empty() && resource.plural == "resourcequotas";
    for stored in core.store.list(QUOTAS, &format!("{namespace}/")).objects {
        let quota = stored.value();
        let hard = usage::amounts(&quota["spec"]["hard"]);
        if !is_quota && !hard.keys().any(|name| counted.has(name)) {
            continue;
        }
        let used = count(core, namespace, &quota, &hard);
        let status = json!({"hard": quota["spec"]["hard"], "used": used});
        if quota["status"] == status {
            continue;
        }
        let mut new = quota.clone();
        new["status"]["hard"] = quota["spec"]["hard"].clone();
        // A quota that has changed meanwhile is counted after that change.
        put(core, &stored, new, json!(used)).await;
    }
}

/// Counts what is used of a quota.
fn count(core: &Core, namespace: &str, quota: &Value, hard: &Amounts) -> Amounts {
    let mut used: Amounts = hard.keys().map(|name| (name.clone(), Quantity::default())).collect();
    for resource in core.registry.groups().preferred().iter().filter(|resource| resource.namespaced) {
        let counted = Counted::of(resource);
        if !hard.keys().any(|name| counted.has(name)) {
            continue;
        }
        for stored in core.store.list(&resource.table, &format!("{namespace}/")).objects {
            let object = stored.value();
            if !counted.is_in_scope(quota, &object) {
                continue;
            }
            for (name, amount) in counted.usage(&object) {
                if let Some(sum) = used.get_mut(&name) {
                    *sum += amount;
                }
            }
        }
    }
    used
}

/// The table of quotas.
const QUOTAS: &str = "resourcequotas";
