//! Kubernetes' own tests of its CEL libraries: every evaluation that they do, with its result and cost (`cargo xtask cel-tables`).

use std::{io::Read as _, sync::Arc};

use klient_cel::{
    AccessQuery, Authorizer, Budget, CelValue, Decision, EvaluationError, Expression, Scope, Type, Variables, check,
    optional_of,
};
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Value, json};

/// An evaluation of Kubernetes' tests.
struct Case(Value);

impl Case {
    fn all() -> Vec<Self> {
        let mut text = String::new();
        let compressed = &include_bytes!("../libraries.jsonl.gz")[..];
        flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
        text.lines().map(|line| Self(serde_json::from_str(line).unwrap())).collect()
    }

    fn expression(&self) -> &str {
        self.0["expression"].as_str().unwrap()
    }

    /// Returns the text that exceptions are looked up in.
    fn text(&self) -> String {
        format!("{}: {}", self.0["package"].as_str().unwrap(), self.expression())
    }

    /// Returns how our result differs.
    fn difference(&self) -> Option<String> {
        if let Some(messages) = self.0["refused"].as_array() {
            let found = self.refusal().unwrap_or_default();
            let is_known = messages.iter().any(|message| found.contains(message.as_str().unwrap()));
            return (!is_known).then(|| format!("refused {messages:?}\n  ours {found}"));
        }
        let (found, cost) = self.evaluate();
        let is_right = match (&found, self.0["error"].as_str()) {
            (Ok(found), None) => is(found, &self.0["result"]),
            (Err(found), Some(expected)) => *found == expected,
            _ => false,
        };
        if !is_right {
            let expected = self.0["error"].as_str().map_or_else(|| self.0["result"].to_string(), str::to_owned);
            return Some(format!("result {expected}\n  ours {found:?}"));
        }
        let expected = self.0["cost"].as_u64().filter(|expected| *expected != cost)?;
        Some(format!("cost {expected}\n  ours {cost}"))
    }

    fn refusal(&self) -> Option<String> {
        let declared = self.0["declared"].as_object().into_iter().flatten();
        let scope = declared.fold(Scope::new(), |scope, (name, schema)| scope.with(name, declared_type(schema)));
        match Expression::parse(self.expression()) {
            Err(error) => Some(error.to_string()),
            Ok(expression) => check(&expression, &scope).err().map(|error| error.to_string()),
        }
    }

    fn evaluate(&self) -> (Result<CelValue, String>, u64) {
        let mut variables = Variables::new();
        for (name, value) in self.0["variables"].as_object().into_iter().flatten() {
            match name.split_once('.') {
                None => variables.set(name, self.value(value)),
                // A variable with a name of two parts, which is a field here.
                Some((authorizer, _)) => variables.set(authorizer, self.authorizer()),
            }
        }
        let mut budget = Budget::new(1_000_000);
        let expression = match Expression::parse(self.expression()) {
            Ok(expression) => expression,
            Err(error) => return (Err(error.to_string()), 0),
        };
        let found = expression.evaluate(&variables, &mut budget);
        (found.map_err(|error: EvaluationError| error.to_string()), budget.spent())
    }

    /// Returns a recorded value.
    fn value(&self, recorded: &Value) -> CelValue {
        match recorded {
            Value::Array(items) => CelValue::List(Arc::new(items.iter().map(|item| self.value(item)).collect())),
            Value::Object(value) => {
                let (kind, value) = value.iter().next().unwrap();
                match kind.as_str() {
                    "map" => {
                        let entries = value.as_array().unwrap().iter();
                        let entries = entries.map(|entry| (key(&entry[0]), self.value(&entry[1])));
                        CelValue::Map(Map { map: Arc::new(entries.collect()) })
                    }
                    "uint" => CelValue::UInt(value.as_u64().unwrap()),
                    "optional" => optional_of(value.get(0).map(|value| self.value(value))),
                    "kubernetes.authorization.Authorizer" => self.authorizer(),
                    _ => converted(kind, value),
                }
            }
            scalar => klient_cel::to_cel(scalar, &Value::Null),
        }
    }

    /// Returns an authorizer with the recorded decisions.
    fn authorizer(&self) -> CelValue {
        let decision = self.0["decisions"][0].clone();
        let text = |name: &str| decision[name].as_str().unwrap_or_default().to_owned();
        let decision = Decision { allowed: decision["allowed"] == true, reason: text("reason"), error: text("error") };
        Authorizer::new(AccessQuery::default(), move |_| decision.clone()).into()
    }
}

fn key(recorded: &Value) -> Key {
    match recorded {
        Value::String(text) => Key::String(Arc::new(text.clone())),
        Value::Number(number) => Key::Int(number.as_i64().unwrap()),
        Value::Bool(value) => Key::Bool(*value),
        other => Key::Uint(other["uint"].as_u64().unwrap()),
    }
}

/// Returns a value of a type that JSON does not have, from its text.
fn converted(kind: &str, text: &Value) -> CelValue {
    let function = match kind {
        "double" => "double(text)",
        "bytes" => "base64.decode(text)",
        "type" => "text",
        "google.protobuf.Duration" => "duration(text)",
        "google.protobuf.Timestamp" => "timestamp(text)",
        "kubernetes.Quantity" => "quantity(text)",
        "kubernetes.Semver" => "semver(text)",
        "kubernetes.URL" => "url(text)",
        "net.IP" => "ip(text)",
        "net.CIDR" => "cidr(text)",
        _ => panic!("no function for {kind}"),
    };
    let mut variables = Variables::new();
    variables.set("text", klient_cel::to_cel(text, &Value::Null));
    Expression::parse(function).unwrap().evaluate(&variables, &mut Budget::new(1_000)).unwrap()
}

/// Returns whether a value is the recorded one.
fn is(found: &CelValue, recorded: &Value) -> bool {
    if let CelValue::Opaque(opaque) = found
        && opaque.runtime_type_name().starts_with("kubernetes.authorization.")
    {
        return recorded.get(opaque.runtime_type_name()).is_some();
    }
    let mut variables = Variables::new();
    variables.set("found", found.clone());
    variables.set("expected", Case(json!({})).value(recorded));
    let equal = Expression::parse("found == expected && type(found) == type(expected)").unwrap();
    equal.evaluate(&variables, &mut Budget::new(10_000)) == Ok(true.into())
}

fn declared_type(schema: &Value) -> Type {
    match schema {
        Value::Null => Type::Dyn,
        Value::String(name) => Type::Named(name.clone()),
        schema => Type::of_schema(schema),
    }
}

/// The evaluations that differ: a part of their text, and the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("cel/environment: test", "a function that the test declares"),
    ("cel/environment: 1.5 > 1", "an environment of 1.27, without comparisons of different numbers"),
    ("cel: isQuantity(", "an environment of 1.27, without quantities"),
    (".fieldSelector('foo=bar')", "an environment without selectors"),
    ("[1,2,3,4,5,6,7,8,9,10].map(", "the test cancels the evaluation"),
    ("object.subsets.size() < params.spec.testSize", "the test has a limit of its own for the cost"),
    ("validating: object.", "the fields of the object are not recorded"),
    ("validating: variables.name ==", "the fields of the object are not recorded"),
    ("cel: variables.list[", "the types of variables are not recorded"),
    ("validating: authorizer.allowed()", "the check does not know what can be called on values of libraries"),
    ("isIP(cidr(", "the check does not know what can be called on values of libraries"),
    ("fail to compile test", "another message of the parser"),
    ("url('https:://", "kube-cel: a URL without a host is invalid"),
    ("ip(\"192.168.0.1.0\")", "kube-cel: another message for an address that is invalid, as in the next ones"),
    ("ip(\"2001:db8:::68\")", "kube-cel: another message"),
    ("ip.isCanonical(\"127.0.0.1.0\")", "kube-cel: another message"),
    ("ip.isCanonical(\"2001:db8:::68\")", "kube-cel: another message"),
    ("cidr(\"192.168.0.0/\")", "kube-cel: another message"),
    ("cidr(\"2001:db8::/\")", "kube-cel: another message"),
    ("semver(\"v1.0\")", "kube-cel: another message"),
];

#[test]
fn libraries_evaluate_as_in_kubernetes_tests() {
    let cases = Case::all();
    let mut wrong = Vec::new();
    let mut excused = vec![0; EXCEPTIONS.len()];
    for case in &cases {
        let Some(difference) = case.difference() else { continue };
        match EXCEPTIONS.iter().position(|(part, _)| case.text().contains(part)) {
            Some(place) => excused[place] += 1,
            None => wrong.push(format!("{}\n  {difference}", case.text())),
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(excused.iter().all(|count| *count > 0), "exceptions without a case: {excused:?}");
    assert!(cases.len() > 700 && excused.iter().sum::<usize>() <= 36, "{} cases, exceptions {excused:?}", cases.len());
}
