//! Validation of limit ranges.

use std::collections::BTreeSet;

use klient_core::{Quantity, QuantityFormat};
use serde_json::Value;

use super::{
    field::{Causes, Field},
    resources::{self, Scope},
};

/// Validates a limit range.
pub(in crate::builtin) fn limit_range(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let mut types = BTreeSet::new();
    for limit in spec.field("limits").items() {
        let kind = limit.field("type");
        let before = causes.len();
        kind.qualified_name(causes);
        if causes.len() == before && !kind.text().contains('/') && !TYPES.contains(&kind.text()) {
            kind.invalid("must be a standard limit type or fully qualified", causes);
        }
        if !types.insert(kind.text()) {
            kind.duplicate(causes);
        }
        item(&limit, causes);
    }
}

fn item(limit: &Field<'_, '_>, causes: &mut Causes) {
    let kind = limit.field("type").text();
    let scope = if matches!(kind, "Pod" | "Container") { Scope::Container } else { Scope::Any };
    let mut names = BTreeSet::new();
    let mut add = |list: &str, causes: &mut Causes| {
        for (name, amount) in limit.field(list).entries() {
            resources::name_problems(name, &amount, scope, causes);
            names.insert(name);
        }
    };
    add("max", causes);
    add("min", causes);
    for list in ["default", "defaultRequest"] {
        if kind != "Pod" {
            add(list, causes);
        } else if !limit.field(list).is_empty() {
            limit.field(list).forbidden("may not be specified when `type` is 'Pod'", causes);
        }
    }
    let has_storage = |list| limit.field(list).key("storage").is_set();
    if kind == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        limit.field("limits").required(detail, causes);
    }
    add("maxLimitRequestRatio", causes);
    for name in names {
        compare(limit, name, kind == "Pod", causes);
        ratio(limit, name, causes);
        not_overcommitted(limit, name, causes);
    }
}

/// Validates that the amounts of a resource are in their order: from the least to the most.
fn compare(limit: &Field<'_, '_>, name: &str, is_pod: bool, causes: &mut Causes) {
    // The real server shows the other value in two messages.
    for (lower, upper, at, shown) in [
        ("min", "max", "min", "min"),
        ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
        ("min", "default", "default", "min"),
        ("default", "max", "default", "max"),
    ] {
        if is_pod && [lower, upper].iter().any(|list| list.starts_with("default")) {
            continue;
        }
        let (low, high) = (limit.field(lower), limit.field(upper));
        let (low, high) = (low.key(name), high.key(name));
        let (Some(least), Some(most)) = (low.quantity(), high.quantity()) else { continue };
        if least > most {
            let called = |list| match list {
                "defaultRequest" => "default request",
                // Only this message tells limits and requests apart.
                "default" if lower == "defaultRequest" => "default limit",
                list => list,
            };
            let detail = format!(
                "{} value {} is greater than {} value {}",
                called(lower),
                low.text(),
                called(upper),
                high.text()
            );
            let shown = if shown == lower { low.text() } else { high.text() };
            limit.field(at).key(name).invalid_as(shown, &detail, causes);
        }
    }
}

fn ratio(limit: &Field<'_, '_>, name: &str, causes: &mut Causes) {
    let quantity = |list: &str| limit.field(list).key(name).quantity();
    let Some(ratio) = quantity("maxLimitRequestRatio") else { return };
    let list = limit.field("maxLimitRequestRatio");
    let field = list.key(name);
    if ratio < Quantity::from_i64(1, QuantityFormat::DecimalSi) {
        field.invalid(&format!("ratio {} is less than 1", field.text()), causes);
    }
    if let (Some(least), Some(most)) = (quantity("min"), quantity("max")) {
        let is_small = [&ratio, &least, &most].iter().all(|quantity| quantity.value() < MAX_MILLI);
        let amount = |quantity: &Quantity| if is_small { quantity.milli_value() } else { quantity.value() };
        #[expect(clippy::cast_precision_loss, reason = "as on the real server")]
        let (own, possible) = (
            if is_small { ratio.milli_value() as f64 / 1000.0 } else { ratio.value() as f64 },
            amount(&most) as f64 / amount(&least) as f64,
        );
        if own > possible {
            field.invalid(&format!("ratio {} is greater than max/min = {possible:.6}", field.text()), causes);
        }
    }
}

/// Validates that requests and limits are the same if more than there is cannot be promised.
fn not_overcommitted(limit: &Field<'_, '_>, name: &str, causes: &mut Causes) {
    if resources::can_overcommit(name) {
        return;
    }
    let (limits, requests) = (limit.field("default"), limit.field("defaultRequest"));
    let (most, asked) = (limits.key(name), requests.key(name));
    if let (Some(left), Some(right)) = (most.quantity(), asked.quantity())
        && left != right
    {
        let detail =
            format!("default value {} must equal to defaultRequest value {} in {name}", most.text(), asked.text());
        asked.invalid(&detail, causes);
    }
}

const TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];
/// The highest value whose thousandths can be counted.
const MAX_MILLI: i64 = i64::MAX / 1000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(limit: &Value) -> Vec<String> {
        let mut causes = Causes::new();
        limit_range(&json!({"spec": {"limits": [limit]}}), None, &mut causes);
        causes.into_iter().map(|cause| cause.message).collect()
    }

    #[test]
    fn ratio_is_between_one_and_most_over_least() {
        let with = |ratio: &str| {
            let amounts = |amount: &str| json!({"cpu": amount});
            let (least, most) = (amounts("100m"), amounts("2"));
            messages(&json!({"type": "Pod", "min": least, "max": most, "maxLimitRequestRatio": amounts(ratio)}))
        };
        assert_eq!(with("20"), [""; 0]);
        assert_eq!(with("21"), ["Invalid value: \"21\": ratio 21 is greater than max/min = 20.000000"]);
        assert_eq!(with("500m"), ["Invalid value: \"500m\": ratio 500m is less than 1"]);
    }

    #[test]
    fn default_above_the_most_is_invalid_and_shows_the_most() {
        let limit = json!({"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "2"}});
        assert_eq!(messages(&limit), ["Invalid value: \"1\": default value 2 is greater than max value 1"]);
    }
}
