//! The verdicts of the real server on the same rules are in `crates/klient/tests/e2e/custom_types.rs`.

use serde_json::{Value, json};

use super::*;

fn problems(schema: &Value, occurrence: Occurrence) -> Vec<String> {
    let mut found = Vec::new();
    check_rules(schema, occurrence, &mut |problem| found.push(problem));
    found
}

fn with_rule(mut schema: Value, rule: &str) -> Value {
    schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
    schema
}

#[test]
fn rules_are_parsed() {
    for rule in [
        "self.a + 1 > 2 && !(self.b in ['x', \"y\"]) || has(self.c)",
        "self.list.all(item, item.name.matches('^[a-z]+$'))",
        "self.?a.orValue(0) == 1 ? true : self.map['k'] != null",
        "size(self.a) <= 10 && {'a': 1, 'b': [1, 2.5e-3, 0x1F, 3u]}.size() == 2",
        "r'\\d' == '''a\nb''' // words",
        "-self < 1 && [?self.a, 2][0] == 1",
    ] {
        assert_eq!(rule_cost::estimate(rule, &Value::Null, Occurrence::ROOT, false).map(drop), Ok(()), "{rule}");
    }
    for (rule, message) in [
        ("self.", "expected a field after `.`"),
        ("self ==", "the expression is incomplete"),
        ("(self", "expected `)`, found the end"),
        ("self.a b", "unexpected `b`"),
        ("'a", "a string has no end"),
        ("self # 1", "unexpected character `#`"),
        ("has(self)", "`has` needs a field: `has(self.field)`"),
    ] {
        assert_eq!(rule_cost::estimate(rule, &Value::Null, Occurrence::ROOT, false), Err(message.to_owned()), "{rule}");
    }
    let deep = format!("{}self{}", "(".repeat(10_000), ")".repeat(10_000));
    let estimate = rule_cost::estimate(&deep, &Value::Null, Occurrence::ROOT, false);
    assert_eq!(estimate, Err("nested too deeply".to_owned()));
}

#[test]
fn cost_follows_the_bounds_of_the_schema() {
    let list = |bound: Value| json!({"type": "array", "items": {"type": "string", "maxLength": 10}, "maxItems": bound});
    let rule = "self.all(a, self.all(b, a == b))";
    assert!(problems(&with_rule(list(json!(100)), rule), Occurrence::ROOT).is_empty());
    let unbounded = problems(&with_rule(list(Value::Null), rule), Occurrence::ROOT);
    assert!(unbounded[0].contains("more than 100 times the limit"), "{unbounded:?}");

    let text = json!({"type": "string"});
    assert!(problems(&with_rule(text.clone(), "self.contains('abc')"), Occurrence::ROOT).is_empty());
    let items = Occurrence::ROOT.within(&json!({"type": "array", "items": text}));
    assert_eq!(problems(&with_rule(text, "self.contains('abc')"), items).len(), 1);
}

#[test]
fn message_expression_has_a_cost_as_well() {
    let mut schema = with_rule(json!({"type": "integer"}), "self > 0");
    schema["x-kubernetes-validations"][0]["messageExpression"] = json!("'not ' + string(self)");
    assert!(problems(&schema, Occurrence::ROOT)[0].starts_with("the CEL message expression"));
}

#[test]
fn rule_with_old_value_needs_an_identity() {
    let rule = with_rule(json!({"type": "string", "maxLength": 5}), "self == oldSelf");
    let list = |kind: &str| json!({"type": "array", "items": {}, "maxItems": 5, "x-kubernetes-list-type": kind});
    assert!(problems(&rule, Occurrence::ROOT.within(&list("map"))).is_empty());
    assert!(problems(&rule, Occurrence::ROOT.within(&list("set")))[0].contains("oldSelf"));
}
