//! CEL rules, evaluated on the client. `custom_types_e2e` has the real server judge the same objects.

#![allow(clippy::unwrap_used)]

use klient::custom::{Reason, ViolationKind};
use klient_custom_types::judged::{Judged, JudgedSpec, Port, cases, definitions, rules_of};
use serde_json::json;

#[test]
fn rules_have_the_expected_verdicts() {
    let rules: Vec<_> =
        definitions().iter().map(|definition| (definition.spec.names.kind.clone(), rules_of(definition))).collect();
    let mut wrong = Vec::new();
    for case in cases() {
        let (_, rules) = rules.iter().find(|(kind, _)| kind == case.kind).unwrap();
        let error = rules.validate(&case.new, case.old.as_ref()).err();
        let violations = error.iter().flat_map(klient::custom::InvalidObject::violations);
        let paths: Vec<&str> = violations.map(|violation| &*violation.path).collect();
        if paths != case.violations {
            wrong.push(format!("{case:?}: {error:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn error_names_kind_path_rule_message_and_reason() {
    let judged = |fixed: &str, name: &str| {
        let spec =
            JudgedSpec { max: 10, fixed: Some(fixed.to_owned()), snake_name: name.to_owned(), ..JudgedSpec::default() };
        Judged::new("a", spec)
    };
    let (old, new) = (judged("x", "abcd"), judged("y", "abcde"));
    old.validate_cel().unwrap();
    old.validate_cel_update(&old).unwrap();
    assert_eq!(new.validate_cel().unwrap_err().violations().len(), 1);
    let error = new.validate_cel_update(&old).unwrap_err();
    assert_eq!(error.kind(), "Judged");
    let [fixed, name] = error.violations() else { panic!("{error}") };
    assert_eq!((&*fixed.path, &*fixed.rule, &*fixed.message), ("spec.fixed", "self == oldSelf", "cannot be changed"));
    assert_eq!((fixed.reason, fixed.kind), (Reason::FieldValueForbidden, ViolationKind::Violated));
    assert_eq!((&*name.path, &*name.message), ("spec.snake_name", "too long: abcde"));
    let expected = "Judged violates 2 of its rules; spec.fixed: cannot be changed (rule `self == oldSelf`, FieldValueForbidden); \
        spec.snake_name: too long: abcde (rule `self.size() < 5`, FieldValueInvalid)";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn rules_of_a_part_are_evaluated_alone() {
    let (small, large) = (json!({"name": "p", "number": 1}), json!({"name": "p", "number": 1000}));
    Port::validate_cel(&small, None).unwrap();
    let error = Port::validate_cel(&large, None).unwrap_err();
    assert_eq!((error.kind(), &*error.violations()[0].rule), ("Port", "self.number < 1000"));
    let error = Port::validate_cel(&small, Some(&large)).unwrap_err();
    assert_eq!(error.violations()[0].message, "must not shrink");
}

#[test]
fn rules_that_cannot_be_evaluated_are_reported_as_such() {
    let kind = |rule: &str| {
        let properties = json!({"a": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]});
        let rules = klient::custom::Rules::new("Shop", &serde_json::from_value(schema).unwrap());
        rules.validate(&json!({"a": 1}), None).unwrap_err().violations()[0].kind
    };
    assert_eq!(kind("self.a == 2"), ViolationKind::Violated);
    assert_eq!(kind("self.b == 1"), ViolationKind::Failed);
    assert_eq!(kind("cel.bind(x, self.a, x == 1)"), ViolationKind::Unsupported);
    assert_eq!(kind("self.a +"), ViolationKind::Unsupported);
    assert_eq!(kind("self.a"), ViolationKind::Unsupported);
}
