//! CEL rules: the estimate of any text ends, and so does the evaluation of whatever parses, within its budget and with the same result each time.

#![no_main]

use std::sync::LazyLock;

use klient_cel::{Budget, CelValue, Expression, Scope, Type, Variables, check, to_cel};
use klient_core::rule_cost::{self, Occurrence};
use serde_json::{Value, json};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string", "maxLength": 20});
    json!({"type": "object", "properties": {
        "text": text, "at": {"type": "string", "format": "date-time"}, "wait": {"type": "string", "format": "duration"},
        "code": {"type": "string", "format": "byte"}, "count": {"type": "integer"}, "ratio": {"type": "number"},
        "flag": {"type": "boolean"}, "union": {"x-kubernetes-int-or-string": true},
        "names": {"type": "array", "items": text}, "labels": {"type": "object", "additionalProperties": text},
        "items": {"type": "array", "items": {"type": "object", "properties": {"name": text, "count": {"type": "integer"}}}},
    }})
});

static OBJECT: LazyLock<CelValue> = LazyLock::new(|| {
    let object = json!({
        "text": "10.0.0.1", "at": "2020-01-01T00:00:00Z", "wait": "5m", "code": "YWJj", "count": 3, "ratio": 0.5, "flag": true,
        "union": "50%", "names": ["a", "bc"], "labels": {"app": "web"}, "items": [{"name": "a", "count": 1}],
    });
    to_cel(&object, &SCHEMA)
});

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = rule_cost::estimate(text, &SCHEMA, Occurrence::ROOT, false);
    let Ok(expression) = Expression::parse(text) else { return };
    let own = Type::of_schema(&SCHEMA);
    let scope = Scope::new().with("self", own.clone()).with("oldSelf", own);
    let _ = check(&expression, &scope);
    let mut variables = Variables::new();
    variables.set("self", OBJECT.clone());
    variables.set("oldSelf", OBJECT.clone());
    let evaluate = || {
        let mut budget = Budget::new(20_000);
        let found = expression.evaluate(&variables, &mut budget);
        // Maps are printed in any order: equal values have the same characters.
        let mut shown = format!("{found:?}").into_bytes();
        shown.sort_unstable();
        (shown, budget.spent())
    };
    assert!(evaluate() == evaluate(), "{text:?} has two results");
});
