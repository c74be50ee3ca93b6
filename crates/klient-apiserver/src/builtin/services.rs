//! Addresses of services.

use klient_core::Status;
use serde_json::{Value, json};

use crate::{Result, server::Core};

/// Gives a service its address, or keeps the one that it has.
pub(super) fn allocate(core: &Core, object: &mut Value, old: Option<&Value>) -> Result<()> {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        *spec = json!({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"});
    }
    if spec["type"] == "ExternalName" {
        if let Value::Object(fields) = spec {
            fields.remove("internalTrafficPolicy");
        }
        return Ok(());
    }
    let kept = old.map(|old| old["spec"]["clusterIP"].clone()).filter(Value::is_string);
    let asked = spec["clusterIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned);
    let address = match (asked, kept) {
        (Some(asked), _) => asked,
        (None, Some(kept)) => kept.as_str().unwrap_or_default().to_owned(),
        (None, None) => free_address(core)?,
    };
    spec["clusterIP"] = json!(address);
    spec["clusterIPs"] = json!([address]);
    // Whoever has neither an address nor a selector may have endpoints of any family.
    if address == "None" && spec.get("selector").is_none() && spec.get("ipFamilyPolicy").is_none() {
        spec["ipFamilies"] = json!(["IPv4", "IPv6"]);
        spec["ipFamilyPolicy"] = json!("RequireDualStack");
    }
    if spec.get("ipFamilies").is_none() {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    if spec.get("ipFamilyPolicy").is_none() {
        spec["ipFamilyPolicy"] = json!("SingleStack");
    }
    Ok(())
}

/// An address out of 10.96.0.0/16 that no service has.
fn free_address(core: &Core) -> Result<String> {
    let taken: std::collections::HashSet<String> = core
        .store
        .list("services", "")
        .objects
        .iter()
        .filter_map(|stored| stored.value()["spec"]["clusterIP"].as_str().map(str::to_owned))
        .collect();
    let first = core.random();
    let addresses = (0..65_000u64).map(|step| (first + step) % 65_000 + 10);
    let addresses = addresses.map(|number| format!("10.96.{}.{}", number / 256, number % 256));
    addresses
        .into_iter()
        .find(|address| !taken.contains(address))
        .ok_or_else(|| Box::new(Status::internal_error("failed to allocate a serviceIP: range is full")))
}
