//! Kubernetes' own test tables: every call that its tests make, with the result (`cargo xtask rbac-tables`).

use std::io::Read as _;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    Kind, Rule,
    index::Index,
    rule::{compacted, not_covered},
};
use crate::access::{Attributes, User};

fn calls(kind: &str) -> Vec<Value> {
    let recorded: &[u8] = include_bytes!("../../../tests/rbac.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(recorded).read_to_string(&mut text).unwrap();
    let calls: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    calls.into_iter().filter(|call| call["call"] == kind).collect()
}

fn rules(value: &Value) -> Vec<Rule> {
    Rule::all_of(&json!({"rules": value}))
}

fn sorted(rules: &[Rule]) -> Vec<String> {
    let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn user(value: &Value) -> User {
    let groups = value["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    groups.fold(User::new(value["user"].as_str().unwrap_or_default()), User::group)
}

fn attributes(value: &Value) -> Attributes<'_> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    Attributes {
        verb: text("verb"),
        is_resource: value["isResource"].as_bool().unwrap(),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: text("path"),
    }
}

/// Returns the roles and bindings of a call. Bindings have no names in the tests.
fn index(state: &Value) -> Index {
    let mut index = Index::default();
    let kinds = [
        (Kind::Role, "roles"),
        (Kind::ClusterRole, "clusterRoles"),
        (Kind::RoleBinding, "roleBindings"),
        (Kind::ClusterRoleBinding, "clusterRoleBindings"),
    ];
    for (kind, name) in kinds {
        for (at, object) in state[name].as_array().into_iter().flatten().enumerate() {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let name = if text("name").is_empty() { format!("binding-{at}") } else { text("name") };
            let key = match text("namespace").as_str() {
                "" => name,
                namespace => format!("{namespace}/{name}"),
            };
            index.put(kind, &key, object);
        }
    }
    index
}

#[test]
fn rules_allow_what_go_rules_allow() {
    let calls = calls("allows");
    assert!(calls.len() > 100, "{}", calls.len());
    for call in calls {
        let rule = Rule::deserialize(&call["rule"]).unwrap();
        assert_eq!(rule.allows(&attributes(&call["attributes"])), call["allowed"], "{call}");
    }
}

#[test]
fn rules_cover_what_go_rules_cover() {
    let calls = calls("covers");
    assert!(calls.len() > 25, "{}", calls.len());
    for call in calls {
        let missing = not_covered(&rules(&call["owned"]), &rules(&call["wanted"]));
        assert_eq!(missing.is_empty(), call["covered"], "{call}");
        assert_eq!(sorted(&missing), sorted(&rules(&call["missing"])), "{call}");
    }
}

#[test]
fn rules_are_compacted_as_in_go() {
    let calls = calls("compact");
    assert!(calls.len() > 4, "{}", calls.len());
    for call in calls {
        let compacted = compacted(rules(&call["rules"]));
        assert_eq!(sorted(&compacted), sorted(&rules(&call["compacted"])), "{call}");
    }
}

#[test]
fn decisions_are_those_of_go() {
    let calls = calls("authorize");
    assert!(calls.len() > 30, "{}", calls.len());
    for call in calls {
        let (asked, index) = (&call["attributes"], index(&call["state"]));
        let decision = index.decide(&user(asked), &attributes(asked));
        assert_eq!(decision.is_allowed(), call["allowed"], "{call}");
    }
}

#[test]
fn users_have_the_rules_that_they_have_in_go() {
    let calls = calls("rules");
    assert!(calls.len() >= 4, "{}", calls.len());
    for call in calls {
        let held = index(&call["state"]).rules_of(&user(&call), call["namespace"].as_str().unwrap());
        assert_eq!(sorted(&held.rules), sorted(&rules(&call["rules"])), "{call}");
        assert_eq!(!held.missing.is_empty(), call["failed"], "{call}");
    }
}
