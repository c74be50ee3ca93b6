//! Checks of types before an evaluation.

use klient_cel::{Expression, Scope, Type, check};
use serde_json::json;

fn scope() -> Scope {
    let schema = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "name": {"type": "string"}, "port": {"x-kubernetes-int-or-string": true},
        "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "when": {"type": "string", "format": "date-time"},
    }});
    Scope::new().with("self", Type::of_schema(&schema)).with("root", Type::of_root(&schema))
}

fn checked(text: &str) -> Result<Type, String> {
    check(&Expression::parse(text).unwrap(), &scope()).map_err(|error| error.to_string())
}

#[test]
fn expressions_that_fit_are_accepted() {
    for text in [
        "self.replicas > 1 && self.name != ''",
        "self.ports.all(p, p.port < 10) && self.ports.map(p, p.port)[0] == 1",
        "self.labels.all(key, self.labels[key] != '') && 'a' in self.labels",
        "self.when < timestamp('2026-01-01T00:00:00Z')",
        "self.port == 1 || self.port == 'http'",
        "root.metadata.name.startsWith('a') && root.kind == 'Shop'",
        "self.ports.sortBy(p, p.port)[0].port > 1",
        "has(self.name) ? self.name == 'a' : true",
        "self.ports.filter(p, p.port > 1).size() > 0",
    ] {
        assert_eq!(checked(text), Ok(Type::Bool), "{text}");
    }
    assert_eq!(checked("'a' + self.name"), Ok(Type::String));
}

#[test]
fn mistakes_are_reported_with_their_place() {
    for (text, error) in [
        ("self.y", "ERROR: <input>:1:5: undefined field 'y'\n | self.y\n | ....^"),
        ("objec.x", "ERROR: <input>:1:1: undeclared reference to 'objec' (in container '')\n | objec.x\n | ^"),
        (
            "self.name < 1",
            "ERROR: <input>:1:11: found no matching overload for '_<_' applied to '(string, int)'\n | self.name < 1\n | ..........^",
        ),
        (
            "self.ports.all(p, p.x > 1)",
            "ERROR: <input>:1:20: undefined field 'x'\n | self.ports.all(p, p.x > 1)\n | ...................^",
        ),
        (
            "root.metadata.labels",
            "ERROR: <input>:1:14: undefined field 'labels'\n | root.metadata.labels\n | .............^",
        ),
    ] {
        assert_eq!(checked(text), Err(error.to_owned()), "{text}");
    }
}
