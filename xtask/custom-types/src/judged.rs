//! Objects and updates with the verdict of CEL rules, for the client's evaluation and for the real server's.

use std::collections::BTreeMap;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString},
};
use klient::{CustomResource, CustomResourceExt as _, KubeSchema, custom::Rules};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::by_klient::rules;

/// An object, or an update of one.
#[derive(Debug)]
pub struct Case {
    pub kind: &'static str,
    pub old: Option<Value>,
    pub new: Value,
    /// The paths of the violations, in order; none for a valid object.
    pub violations: &'static [&'static str],
}

/// Rules on fields, structs, items and the root, with the functions of Kubernetes.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, Deserialize, Serialize)]
#[kube(group = "corpus.klient.invalid", version = "v1", kind = "Judged", cel)]
#[kube(validation = Rule::new("self.metadata.name.startsWith('a')").message("the name must begin with a"))]
#[x_kube(validation = ("self.min <= self.max", "min must not exceed max"))]
#[x_kube(validation = "!has(self.__namespace__) || self.__namespace__ != 'bad'")]
#[x_kube(validation = "!has(self.dash__dash__ed) || self.dash__dash__ed > 0")]
#[x_kube(validation = "self.labels.all(key, key.startsWith('a') && self.labels[key] != '')")]
#[serde(default)]
pub struct JudgedSpec {
    #[schemars(length(max = 50))]
    #[x_kube(validation = Rule::new("self.size() < 5").message(Message::Expression("self.size() > 8 ? 'far too long' : 'too long: ' + self".into())))]
    pub snake_name: String,
    #[schemars(length(max = 50))]
    #[serde(rename = "namespace", skip_serializing_if = "Option::is_none")]
    pub reserved: Option<String>,
    #[serde(rename = "dash-ed", skip_serializing_if = "Option::is_none")]
    pub dashed: Option<i32>,
    pub min: i32,
    #[serde(default = "ten")]
    pub max: i32,
    #[schemars(length(max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("cannot be changed").reason(Reason::FieldValueForbidden))]
    pub fixed: Option<String>,
    #[schemars(length(max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("!oldSelf.hasValue() ? self != 'never' : oldSelf.value() != 'final'").optional_old_self(true))]
    pub once: Option<String>,
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub ports: Vec<Port>,
    #[schemars(length(max = 10))]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "self > timestamp('2020-01-01T00:00:00Z')")]
    pub since: Option<Time>,
    #[schemars(length(max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "isQuantity(self) && quantity(self).isLessThan(quantity('1Gi'))")]
    pub amount: Option<String>,
    #[schemars(length(max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "isURL(self) && url(self).getScheme() == 'https'")]
    pub link: Option<String>,
    #[schemars(length(max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "isIP(self) && ip(self).family() == 4")]
    pub address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "self <= 1.0")]
    pub ratio: Option<f64>,
    #[schemars(length(max = 10), inner(length(max = 20)))]
    #[x_kube(validation = "self.exists_one(word, word.matches('^x+$')) || self.size() == 0")]
    pub words: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "type(self) == int ? self > 0 : self == '50%'")]
    pub share: Option<IntOrString>,
    /// Is written as null.
    #[schemars(length(max = 50))]
    #[x_kube(validation = "self != ''")]
    pub nullable: Option<String>,
}

fn ten() -> i32 {
    10
}

/// An item of a list with keys.
#[derive(KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[x_kube(cel)]
#[x_kube(validation = ("self.number >= oldSelf.number", "must not shrink"), validation = "self.number < 1000")]
pub struct Port {
    #[schemars(length(max = 20))]
    pub name: String,
    pub number: i32,
}

/// Returns the definitions of all kinds in [`cases`].
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        Judged::crd(),
        rules::FieldRules::crd(),
        rules::StructRules::crd(),
        rules::RootRules::crd(),
        rules::OptionalOldSelf::crd(),
        rules::NestedRules::crd(),
        rules::FlattenedRules::crd(),
    ]
}

/// Returns the rules of a definition.
pub fn rules_of(definition: &CustomResourceDefinition) -> Rules {
    let schema = definition.spec.versions[0].schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    Rules::new(definition.spec.names.kind.clone(), schema.unwrap_or_else(|| unreachable!("each version has a schema")))
}

/// Returns a definition without rules, so that servers store objects that violate them.
pub fn without_rules(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    fn strip(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                fields.remove("x-kubernetes-validations");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let Ok(mut spec) = serde_json::to_value(&definition.spec) else { return definition };
    strip(&mut spec);
    if let Ok(spec) = serde_json::from_value(spec) {
        definition.spec = spec;
    }
    definition
}

/// Returns the objects and updates.
pub fn cases() -> Vec<Case> {
    let mut cases = judged_created();
    cases.extend(judged_updated());
    cases.extend(corpus());
    for (index, case) in cases.iter_mut().enumerate() {
        // A name that a case sets begins with a letter that the rule forbids. All names are distinct, so that cases do not meet.
        for object in [Some(&mut case.new), case.old.as_mut()].into_iter().flatten() {
            let name = object["metadata"]["name"].as_str().unwrap_or("a").to_owned();
            if name != "singleton" {
                object["metadata"]["name"] = json!(format!("{name}-{index}"));
            }
        }
    }
    cases
}

fn judged_created() -> Vec<Case> {
    let port = |number: i32| json!([{"name": "p", "number": number}]);
    let specs: Vec<(Value, &[&str])> = vec![
        (json!({}), &[]),
        (json!({"snake_name": "abcd"}), &[]),
        (json!({"snake_name": "abcde"}), &["spec.snake_name"]),
        (json!({"namespace": "good"}), &[]),
        (json!({"namespace": "bad"}), &["spec"]),
        (json!({"dash-ed": 1}), &[]),
        (json!({"dash-ed": 0}), &["spec"]),
        (json!({"min": 10}), &[]),
        (json!({"min": 11}), &["spec"]),
        (json!({"min": 11, "max": 12}), &[]),
        (json!({"fixed": "x"}), &[]),
        (json!({"once": "x"}), &[]),
        (json!({"once": "never"}), &["spec.once"]),
        (json!({"ports": port(999)}), &[]),
        (json!({"ports": port(1000)}), &["spec.ports[0]"]),
        (json!({"labels": {"a": "b"}}), &[]),
        (json!({"labels": {"b": "b"}}), &["spec"]),
        (json!({"since": "2021-01-01T00:00:00Z"}), &[]),
        (json!({"since": "2019-12-31T23:59:59Z"}), &["spec.since"]),
        (json!({"amount": "500Mi"}), &[]),
        (json!({"amount": "2Gi"}), &["spec.amount"]),
        (json!({"amount": "many"}), &["spec.amount"]),
        (json!({"link": "https://example.com/a"}), &[]),
        (json!({"link": "ftp://example.com/a"}), &["spec.link"]),
        (json!({"address": "10.0.0.1"}), &[]),
        (json!({"address": "::1"}), &["spec.address"]),
        (json!({"ratio": 1}), &[]),
        (json!({"ratio": 1.5}), &["spec.ratio"]),
        (json!({"words": ["x", "a"]}), &[]),
        (json!({"words": ["x", "xx"]}), &["spec.words"]),
        (json!({"share": 1}), &[]),
        (json!({"share": 0}), &["spec.share"]),
        (json!({"share": "50%"}), &[]),
        (json!({"share": "60%"}), &["spec.share"]),
        (json!({"nullable": null}), &[]),
        (json!({"nullable": ""}), &["spec.nullable"]),
    ];
    let created = |(spec, violations)| Case { kind: "Judged", old: None, new: json!({"spec": spec}), violations };
    let mut cases: Vec<Case> = specs.into_iter().map(created).collect();
    let new = json!({"metadata": {"name": "b"}, "spec": {}});
    cases.push(Case { kind: "Judged", old: None, new, violations: &[""] });
    cases
}

fn judged_updated() -> Vec<Case> {
    let port = |name: &str, number: i32| json!({"name": name, "number": number});
    let updates: Vec<(Value, Value, &[&str])> = vec![
        (json!({"fixed": "x"}), json!({"fixed": "x", "min": 1}), &[]),
        (json!({"fixed": "x"}), json!({"fixed": "y"}), &["spec.fixed"]),
        (json!({}), json!({"fixed": "y"}), &[]),
        (json!({"once": "x"}), json!({"once": "never"}), &[]),
        (json!({"once": "final"}), json!({"once": "x"}), &["spec.once"]),
        (json!({}), json!({"once": "never"}), &["spec.once"]),
        // Items are compared with those that have the same key, not with those at the same position.
        (json!({"ports": [port("p", 5)]}), json!({"ports": [port("q", 1), port("p", 5)]}), &[]),
        (
            json!({"ports": [port("p", 5), port("q", 1)]}),
            json!({"ports": [port("q", 1), port("p", 4)]}),
            &["spec.ports[1]"],
        ),
        // Unchanged values are tolerated, unless the rule reads the old one.
        (json!({"snake_name": "abcdef"}), json!({"snake_name": "abcdef", "min": 1}), &[]),
        (json!({"snake_name": "abcdef"}), json!({"snake_name": "abcdeg"}), &["spec.snake_name"]),
        (json!({"ports": [port("p", 2000)]}), json!({"ports": [port("p", 2000)], "min": 1}), &[]),
        (json!({"ports": [port("p", 2000)]}), json!({"ports": [port("p", 2001)]}), &["spec.ports[0]"]),
        (json!({"min": 20}), json!({"min": 20, "snake_name": "a"}), &["spec"]),
    ];
    let updated = |(old, new, violations)| {
        let (old, new) = (Some(json!({"spec": old})), json!({"spec": new}));
        Case { kind: "Judged", old, new, violations }
    };
    updates.into_iter().map(updated).collect()
}

/// The kinds of the corpus that have rules.
fn corpus() -> Vec<Case> {
    let case = |kind, old: Option<Value>, new: Value, violations| {
        let object = |spec| json!({"metadata": {"name": "a"}, "spec": spec});
        Case { kind, old: old.map(object), new: object(new), violations }
    };
    let fields = |change: (&str, Value)| {
        let mut spec = json!({"a": "a", "b": 1, "c": 1, "d": "x", "e": [], "plain": true});
        spec[change.0] = change.1;
        spec
    };
    let singleton = |size: i32, name: &str| Case {
        kind: "RootRules",
        old: None,
        new: json!({"metadata": {"name": name}, "spec": {"size": size}}),
        violations: match (size < 0, name == "singleton") {
            (false, true) => &[],
            (true, true) => &["spec.size"],
            _ => &[""],
        },
    };
    vec![
        case("FieldRules", None, fields(("plain", json!(false))), &[]),
        case("FieldRules", None, fields(("a", json!("bad"))), &["spec.a"]),
        case("FieldRules", None, fields(("b", json!(0))), &["spec.b"]),
        case("FieldRules", None, fields(("c", json!(10))), &["spec.c"]),
        case("FieldRules", None, fields(("c", json!(5))), &["spec.c"]),
        case("FieldRules", None, fields(("e", json!(["", "", "", "", "", "", "", "", ""]))), &["spec.e"]),
        case("FieldRules", Some(fields(("b", json!(1)))), fields(("d", json!("y"))), &["spec.d"]),
        case("StructRules", None, json!({"min": 1, "max": 2}), &[]),
        case("StructRules", None, json!({"min": 3, "max": 2}), &["spec"]),
        case("StructRules", None, json!({"min": 3, "max": 1000}), &["spec"]),
        case("StructRules", None, json!({"min": 3, "max": 4, "withDefault": "x"}), &["spec.withDefault"]),
        singleton(1, "singleton"),
        singleton(-1, "singleton"),
        singleton(1, "a"),
        case("OptionalOldSelf", None, json!({"a": "x"}), &[]),
        case("OptionalOldSelf", None, json!({"a": ""}), &[""]),
        case("OptionalOldSelf", Some(json!({"a": "x"})), json!({"a": "y"}), &["spec.a"]),
        case("NestedRules", None, json!({"one": {"a": "x"}, "many": [{"b": 2}]}), &[]),
        case("NestedRules", None, json!({"one": {}, "many": []}), &["spec.one"]),
        case(
            "NestedRules",
            None,
            json!({"one": {"b": 2}, "many": [{"a": ""}, {"b": 1}, {}]}),
            &["spec.many[1].b", "spec.many[2]"],
        ),
        case("NestedRules", None, json!({"one": {"b": 2}, "maybe": {}, "many": []}), &["spec.maybe"]),
        case("FlattenedRules", None, json!({"name": "n", "port": "p"}), &[]),
        case("FlattenedRules", None, json!({"name": "n", "port": "x"}), &["spec.port"]),
    ]
}
