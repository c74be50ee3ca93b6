//! Costs beside those that Kubernetes' own code estimates (`cargo xtask cel-tables`).

use std::io::Read as _;

use serde_json::Value;

use super::*;

fn recorded() -> Vec<Value> {
    let mut text = String::new();
    let compressed = &include_bytes!("../../testdata/rule-costs.jsonl.gz")[..];
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn costs_are_those_of_the_server() {
    let recorded = recorded();
    let mut wrong = Vec::new();
    for case in &recorded {
        let text = case["expression"].as_str().unwrap();
        let expression = match expression::parse(text) {
            Ok(expression) => expression,
            Err(error) => {
                wrong.push(format!("{error}: {text}"));
                continue;
            }
        };
        let declared = Declared::of(&case["schema"], case["root"] == true);
        let found = match case.get("schema") {
            Some(_) => estimate::estimate(&expression, declared.as_ref(), case["optional"] == true),
            // Kubernetes' tests of libraries have no schema, and texts of up to 12 characters.
            None => estimate::Estimator::without_schema(12).operand(&expression).cost,
        };
        if Some(found) != case["highest"].as_u64() {
            wrong.push(format!("{}, ours {found}: {text}", case["highest"]));
        }
    }
    assert!(recorded.len() > 1_700, "{} estimates", recorded.len());
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), recorded.len(), wrong.join("\n"));
}

#[test]
fn unbounded_values_are_counted_as_by_the_server() {
    for case in recorded().iter().filter(|case| case.get("schema").is_some()) {
        let declared = Declared::of(&case["schema"], case["root"] == true);
        let within = Occurrence { count: None, ..Occurrence::ROOT };
        assert_eq!(Some(within.highest(declared.as_ref())), case["cardinality"].as_u64(), "{case}");
    }
}

#[test]
fn hostile_expressions_are_refused_or_estimated_quickly() {
    let refused = |text: String| estimate(&text, &Value::Null, Occurrence::ROOT, false).unwrap_err();
    assert_eq!(refused(format!("{}1", "1 + ".repeat(20_000))), "nested too deeply");
    assert_eq!(refused(format!("self{}", ".a".repeat(40_000))), "nested too deeply");
    assert_eq!(refused(format!("self{}", "[0]".repeat(30_000))), "nested too deeply");
    assert_eq!(refused(format!("{}true", "!(".repeat(40_000))), "nested too deeply");
    assert_eq!(refused(format!("{}a", "!-".repeat(40_001))), "nested too deeply");
    assert_eq!(refused(format!("self{}", ".optMap(x, x)".repeat(300))), "nested too deeply");
    assert_eq!(refused(" ".repeat(100_001)), "longer than 100000 characters");
    for call in [".map(x, x)", ".filter(x, x)", ".sortBy(x, x)", ".all(x, x)", ".transformMap(x, y, y)"] {
        assert_eq!(refused(format!("self{}", call.repeat(300))), "nested too deeply", "{call}");
        assert!(
            estimate(&format!("self{}", call.repeat(250)), &Value::Null, Occurrence::ROOT, false).is_ok(),
            "{call}"
        );
    }
    // As many as fit are fine, if they are on one level.
    let long = vec!["self == 1"; 7_000].join(" || ");
    assert_eq!(estimate(&long, &Value::Null, Occurrence::ROOT, false).unwrap().cost, 14_000);
    let signs = format!("{}self", "- ".repeat(40_001));
    assert_eq!(estimate(&signs, &Value::Null, Occurrence::ROOT, false).unwrap().cost, 2);
    let doubled = format!("self{}.hasValue()", ".optMap(x, x)".repeat(200));
    assert!(estimate(&doubled, &Value::Null, Occurrence::ROOT, false).unwrap().cost > 1 << 60);
}

#[test]
fn point_after_a_number_is_a_field_unless_digits_follow() {
    for text in ["9.?g", "9.g", "9.5 > 1.0 && .5 < 2.e", "1.0e-3 + 1e5"] {
        assert!(expression::parse(text).is_ok(), "{text}");
    }
}
