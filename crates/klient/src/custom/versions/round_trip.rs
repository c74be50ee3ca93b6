//! The check that no conversion loses data: there and back gives the same object.

use std::fmt;

use klient_core::Resource;
use serde_json::{Value, json};

use super::{Version, Versions, convert::name_of, random::Random};
use crate::{BoxError, custom::CustomResourceExt};

impl<Hub: Resource + CustomResourceExt> Versions<Hub> {
    /// Converts an object to every other version and back, and compares. Property tests call this with objects of their own.
    ///
    /// # Errors
    ///
    /// Returns an error that names the versions and the first field that differs.
    pub fn check_round_trip(&self, object: &Value) -> Result<(), RoundTripError> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let fail = |through: &str, reason: BoxError| RoundTripError {
            kind: Hub::KIND,
            from: from.to_owned(),
            through: through.to_owned(),
            reason: reason.to_string(),
            object: object.clone(),
        };
        let version = self.find(from).map_err(|error| fail("", error))?;
        let original = (version.normalize)(object.clone()).map_err(|error| fail("", error))?;
        for other in self.all().filter(|other| other.api_version != from) {
            let there = self.convert_object(original.clone(), other.api_version);
            let there = there.map_err(|error| fail(other.api_version, error.into()))?;
            let back = self.convert_object(there, from).map_err(|error| fail(other.api_version, error.into()))?;
            if let Some(difference) = difference(&original, &back, "") {
                return Err(fail(other.api_version, difference.into()));
            }
        }
        Ok(())
    }

    /// Checks round trips of random objects of each version, which are drawn from the schemas. The same seed gives the same
    /// objects.
    ///
    /// # Errors
    ///
    /// Returns the first error of [`check_round_trip`](Self::check_round_trip), with the object; or an error if fewer than
    /// half of the objects of a version can be decoded: use objects of your own then.
    pub fn check_round_trips(&self, cases: u32, seed: u64) -> Result<(), RoundTripError> {
        for version in self.all() {
            let mut random = Random::new(seed);
            let mut decoded = 0;
            let mut last = (Value::Null, String::new());
            let schema = schema_of(version);
            for _ in 0..cases {
                let object = random_object::<Hub>(version, &schema, &mut random);
                match (version.normalize)(object.clone()) {
                    Ok(object) => {
                        self.check_round_trip(&object)?;
                        decoded += 1;
                    }
                    Err(error) => last = (object, error.to_string()),
                }
            }
            if decoded < cases / 2 {
                let reason = format!("only {decoded} of {cases} random objects can be decoded: {}", last.1);
                let from = version.api_version.to_owned();
                return Err(RoundTripError { kind: Hub::KIND, from, through: String::new(), reason, object: last.0 });
            }
        }
        Ok(())
    }
}

fn schema_of(version: &Version) -> Value {
    let definition = (version.definition)();
    let schema = definition.spec.versions.into_iter().next().and_then(|version| version.schema);
    serde_json::to_value(schema.and_then(|schema| schema.open_api_v3_schema)).unwrap_or_default()
}

fn random_object<Hub: Resource>(version: &Version, schema: &Value, random: &mut Random) -> Value {
    let mut object = random.value(schema);
    if !object.is_object() {
        object = json!({});
    }
    if let Some(whole) = object.as_object_mut() {
        whole.insert("apiVersion".to_owned(), version.api_version.into());
        whole.insert("kind".to_owned(), Hub::KIND.into());
        let mut metadata = json!({"name": "random", "namespace": "default", "uid": "u1", "resourceVersion": "1"});
        if random.below(2) == 0 {
            metadata["labels"] = json!({"app": "web"});
            metadata["annotations"] = json!({"example.com/note": "a"});
        }
        whole.insert("metadata".to_owned(), metadata);
    }
    object
}

/// Returns the first difference, with its path.
fn difference(a: &Value, b: &Value, path: &str) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let names = x.keys().chain(y.keys().filter(|name| !x.contains_key(*name)));
            let null = Value::Null;
            let field = |object: &serde_json::Map<String, Value>, name: &String| object.get(name).cloned();
            names.into_iter().find_map(|name| match (field(x, name), field(y, name)) {
                (Some(x), Some(y)) => difference(&x, &y, &format!("{path}.{name}")),
                (x, y) => {
                    let (x, y) = (x.unwrap_or_else(|| null.clone()), y.unwrap_or_else(|| null.clone()));
                    Some(format!("{path}.{name} was {x}, and is {y}"))
                }
            })
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let pairs = x.iter().zip(y).enumerate();
            pairs.into_iter().find_map(|(index, (x, y))| difference(x, y, &format!("{path}[{index}]")))
        }
        (x, y) if x == y => None,
        (x, y) => Some(format!("{path} was {x}, and is {y}")),
    }
}

/// An error of a round trip: a conversion that loses or changes data.
#[derive(Clone, Debug)]
pub struct RoundTripError {
    kind: &'static str,
    from: String,
    through: String,
    reason: String,
    object: Value,
}

impl RoundTripError {
    /// Returns the object that does not survive.
    pub fn object(&self) -> &Value {
        &self.object
    }
}

impl fmt::Display for RoundTripError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, from, through, reason, object } = self;
        let name = name_of(object);
        if through.is_empty() {
            return write!(f, "{kind} {name:?} of {from}: {reason}; the object: {object}");
        }
        write!(
            f,
            "{kind} {name:?} changed on the way from {from} to {through} and back: {reason}; the object: {object}"
        )
    }
}

impl std::error::Error for RoundTripError {}
