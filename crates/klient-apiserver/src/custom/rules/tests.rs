//! Kubernetes' own tests of rules: every validation that they do, with its errors (`cargo xtask cel-tables`).

use std::io::Read as _;

use klient_cel::{Expression, Scope, Type, check};
use serde_json::Value;

use super::*;

/// A validation of Kubernetes' tests.
struct Case {
    call: Value,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut text = String::new();
        let compressed = &include_bytes!("../../../tests/cel.jsonl.gz")[..];
        flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
        text.lines().map(|line| Self { call: serde_json::from_str(line).unwrap() }).collect()
    }

    /// Returns the real server's errors, with paths as they are here.
    fn expected(&self) -> Vec<String> {
        let errors = self.call["errors"].as_array().unwrap().iter().map(|error| error.as_str().unwrap());
        let path = self.call["path"].as_str().unwrap();
        let mut errors: Vec<String> = errors
            .map(|error| match error.strip_prefix(path) {
                Some(rest) if rest.starts_with(':') => format!("<nil>{rest}"),
                Some(rest) => rest.trim_start_matches('.').to_owned(),
                None => error.to_owned(),
            })
            .collect();
        // The real server visits fields in any order.
        errors.sort();
        errors
    }

    fn rules(&self) -> Vec<String> {
        let mut found = Vec::new();
        rules_of(&self.call["schema"], &mut found);
        found
    }

    /// Returns our errors.
    fn found(&self) -> Vec<String> {
        let schema = &self.call["schema"];
        let mut compile = Vec::new();
        compile_errors(schema, self.call["root"] == true && schema["type"] == "object", &mut compile);
        if !compile.is_empty() {
            return compile;
        }
        let Some(rules) = Rules::of(schema) else { return Vec::new() };
        let old = Some(&self.call["old"]).filter(|old| !old.is_null());
        let budget = self.call["budget"].as_u64().unwrap_or_default();
        let found = rules.evaluate_within(budget, self.call["ratchets"] == true, &self.call["object"], old).0;
        let mut errors: Vec<String> =
            found.causes.iter().map(|cause| format!("{}: {}", shown_path(&cause.field), cause.message)).collect();
        errors.sort();
        errors
    }

    /// Returns whether our errors are the expected ones.
    fn is_right(&self) -> bool {
        let (expected, found) = (self.expected(), self.found());
        // Here a rule that cannot be compiled is refused with its definition, and without a path.
        let compile = |error: &String| Some(error.split_once("rule compile error: compilation failed: ")?.1.to_owned());
        match expected.iter().map(compile).collect::<Option<Vec<_>>>() {
            Some(expected) if !expected.is_empty() => {
                expected.iter().all(|error| found.contains(&without_types(error)))
            }
            _ => expected == found,
        }
    }
}

/// Names the types of objects as they are named here. The real server numbers them.
fn without_types(error: &str) -> String {
    let mut out = String::new();
    let mut rest = error;
    while let Some((before, after)) = rest.split_once("selfType") {
        out.push_str(before);
        out.push_str("object");
        rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '.' | '@' | '_'));
    }
    out + rest
}

fn rules_of(schema: &Value, found: &mut Vec<String>) {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    found.extend(rules.filter_map(|rule| rule["rule"].as_str().map(str::to_owned)));
    let parts = schema["properties"].as_object().into_iter().flatten().map(|(_, part)| part);
    parts
        .chain([&schema["items"], &schema["additionalProperties"]])
        .filter(|part| part.is_object())
        .for_each(|part| rules_of(part, found));
}

/// Adds the errors of expressions.
fn compile_errors(schema: &Value, is_root: bool, errors: &mut Vec<String>) {
    let own = if is_root { Type::of_root(schema) } else { Type::of_schema(schema) };
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let old = if rule["optionalOldSelf"] == true { Type::Optional(Box::new(own.clone())) } else { own.clone() };
        let scope = Scope::new().with("self", own.clone()).with("oldSelf", old);
        match Expression::parse(rule["rule"].as_str().unwrap_or_default()) {
            Err(error) => errors.push(error.to_string()),
            Ok(expression) => errors.extend(check(&expression, &scope).err().map(|error| error.to_string())),
        }
    }
    let parts = schema["properties"].as_object().into_iter().flatten().map(|(_, part)| part);
    let parts = parts.chain([&schema["items"], &schema["additionalProperties"]]).filter(|part| part.is_object());
    parts.for_each(|part| compile_errors(part, false, errors));
}

/// The validations that differ: a part of a rule or of an error, and the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("invalid data, ", "values that do not fit the schema are refused before rules are evaluated"),
    ("len must be 5", "a definition cannot have rules inside of allOf"),
    ("key must not be equal to key2", "a definition cannot have rules inside of allOf"),
    ("running out of cost budget", "the test has a limit of its own for one expression"),
    ("call cost exceeds limit", "the test has a limit of its own for one expression"),
    ("self.val1 == self.val1 == self.val1", "expressions have at most 100 levels here, 250 there"),
    ("withUnknownList", "undeclared fields of two objects are not compared"),
    ("emptyDurations.sum()", "the sum of no durations is the number 0, because values of lists have no static type"),
    ("matches('x++')", "Rust's regular expressions accept it"),
    ("find(')'", "patterns of `find` are checked when they are evaluated"),
    ("findAll(')'", "patterns of `findAll` are checked when they are evaluated"),
    ("timestamp(-62135596801)", "kube-cel: times from numbers of seconds"),
    ("0001-01-01T00:00:00", "kube-cel: the first year is no zero value"),
    ("url('", "kube-cel: hosts and paths of URLs that lack them"),
    ("format.dns1123", "cel: the backslash before a quote of the other sort is a part of the text"),
    ("getHours('UTC')", "kube-cel: time zones as arguments"),
    ("'%e'.format(", "kube-cel: the form of exponents"),
    ("340282346638528859811704183484516925440", "numbers of this size are read as integers"),
    ("string(self.val11)", "durations as text: fractions"),
    ("k! == '1'", "another message of the parser"),
    ("self.true == 1", "another message of the parser"),
    ("{'k1': 'a', 'k2': 1, 'k2': false}", "only the first mistake is reported"),
    ("oldSelf.key ==", "only the first mistake is reported"),
    ("string(type(", "types are texts here"),
    ("oldSelf.all(x, x == x)", "the place of the mistake is not known"),
];

#[test]
fn rules_decide_as_in_kubernetes_tests() {
    let mut wrong = Vec::new();
    let cases = Case::all();
    let mut excused = vec![0; EXCEPTIONS.len()];
    for case in &cases {
        if case.call["canceled"] == true || case.is_right() {
            continue;
        }
        let text = [case.rules(), case.expected()].concat().join("\n");
        match EXCEPTIONS.iter().position(|(part, _)| text.contains(part)) {
            Some(place) => excused[place] += 1,
            None => {
                wrong.push(format!("{:?}\n  real {:?}\n  ours {:?}", case.rules(), case.expected(), case.found()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(excused.iter().all(|count| *count > 0), "exceptions without a case: {excused:?}");
    assert!(excused.iter().sum::<usize>() <= 46, "exceptions: {excused:?}");
}
