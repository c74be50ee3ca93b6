//! Every call that Go's `structured-merge-diff` makes in its own tests, with the same result.
//!
//! `testdata/field-sets.jsonl.gz` holds the calls. `cargo xtask field-sets` records them.

#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, HashMap},
    io::Read as _,
    sync::{Arc, LazyLock},
};

use klient_core::fields::{
    ConvertError, Converter, Duplicates, FieldSet, ManagedSet, Managers, Path, PathElement, Schema, Typed, UpdateError,
    Updater,
};
use serde_json::Value;

/// The recorded schemas, each with its root type, and the calls by kind.
struct Corpus {
    schemas: HashMap<String, (Arc<Schema>, String)>,
    calls: HashMap<String, Vec<Value>>,
}

impl Corpus {
    /// Returns the corpus, which is read once.
    fn get() -> &'static Self {
        static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::load);
        &CORPUS
    }

    fn load() -> Self {
        let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/field-sets.jsonl.gz")).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        let mut corpus = Self { schemas: HashMap::new(), calls: HashMap::new() };
        for line in text.lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let call = line["call"].take();
            let kind = line["kind"].as_str().unwrap();
            if kind == "schema" {
                let definition = &call["definition"];
                let schema = Arc::new(Schema::from_value(&definition["schema"]));
                let root = definition["root"].as_str().unwrap().to_owned();
                corpus.schemas.insert(call["id"].as_str().unwrap().to_owned(), (schema, root));
            } else {
                corpus.calls.entry(kind.to_owned()).or_default().push(call);
            }
        }
        corpus
    }

    fn typed(&self, object: &Value) -> Typed {
        let (schema, root) = &self.schemas[object["schema"].as_str().unwrap()];
        let root = schema.find(root).unwrap_or_else(|| panic!("the schema has no type {root}"));
        Typed::unchecked(schema, root, object["value"].clone())
    }

    /// Runs all calls of a kind, and fails with those whose result is another.
    fn check(&self, kind: &str, run: impl Fn(&Self, &Value) -> Result<(), String>) {
        self.check_at_least(50, kind, run);
    }

    /// Runs all calls of a kind, of which there are so many at least.
    fn check_at_least(&self, minimum: usize, kind: &str, run: impl Fn(&Self, &Value) -> Result<(), String>) {
        let calls = &self.calls[kind];
        let failures: Vec<String> =
            calls.iter().filter_map(|call| run(self, call).err().map(|why| format!("{why}\n  in {call}"))).collect();
        let shown: Vec<&str> = failures.iter().take(3).map(String::as_str).collect();
        assert!(failures.is_empty(), "{} of {} calls differ:\n{}", failures.len(), calls.len(), shown.join("\n"));
        assert!(calls.len() >= minimum, "only {} calls", calls.len());
    }
}

fn set(value: &Value) -> FieldSet {
    FieldSet::from_value(value).unwrap()
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}:\n  found  {found:?}\n  wanted {wanted:?}")) }
}

/// Compares a result with the recorded one, in which whole floats were written as integers.
fn expect_value(what: &str, found: &Value, wanted: &Value) -> Result<(), String> {
    expect(what, &plain(found), &plain(wanted))
}

fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

/// The type of objects that Go reads from YAML. Requests are read as JSON, with names that are strings.
const YAML_MAP: &str = "map[interface {}]";

/// Compares an error with the recorded one. Go visits the fields of a map in random order, so that the order of lines differs.
fn expect_error<T: std::fmt::Debug, E: std::fmt::Display>(found: Result<T, E>, wanted: &Value) -> Result<(), String> {
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    match found {
        Ok(value) => Err(format!("no error, but {value:?}")),
        Err(error) => {
            let (found, wanted) = (error.to_string(), wanted.as_str().unwrap().replace(YAML_MAP, "map[string]"));
            // Go stops at the first field that is not declared, which is another one each time.
            let is_first =
                found.contains("field not declared in schema") && wanted.contains("field not declared in schema");
            if is_first { Ok(()) } else { expect("error", &lines(&found), &lines(&wanted)) }
        }
    }
}

#[test]
fn validation_finds_what_go_finds() {
    Corpus::get().check("validate", |corpus, call| {
        let duplicates = if call["duplicates"] == true { Duplicates::Allowed } else { Duplicates::Refused };
        let found = corpus.typed(&call["object"]).validate(duplicates);
        match call.get("error") {
            Some(error) => expect_error(found, error),
            None => found.map_err(|error| error.to_string()),
        }
    });
}

#[test]
fn text_is_parsed_and_printed_as_by_go() {
    Corpus::get().check("parse", |_, call| {
        let text = call["text"].as_str().unwrap();
        let value = serde_json::from_str(text).unwrap();
        for found in [text.parse::<FieldSet>(), FieldSet::from_value(&value)] {
            match (found, call.get("error")) {
                (Ok(found), Some(error)) => return Err(format!("no error, but {found}; Go: {error}")),
                (Err(_), Some(_)) => {}
                (found, None) => expect_set(&found.map_err(|error| error.to_string())?, &call["set"])?,
            }
        }
        Ok(())
    });
}

#[test]
fn field_sets_of_values_are_those_of_go() {
    Corpus::get().check("set", |corpus, call| {
        let found = corpus.typed(&call["object"]).to_field_set();
        match call.get("error") {
            Some(error) => expect_error(found, error),
            None => expect("set", &found.map_err(|error| error.to_string())?, &set(&call["set"])),
        }
    });
}

#[test]
fn merged_values_are_those_of_go() {
    Corpus::get().check("merge", |corpus, call| {
        let found = corpus.typed(&call["object"]).merge(&corpus.typed(&call["config"]));
        match call.get("error") {
            Some(error) => expect_error(found, error),
            None => expect_value("merged", found.map_err(|error| error.to_string())?.value(), &call["merged"]["value"]),
        }
    });
}

#[test]
fn comparisons_are_those_of_go() {
    Corpus::get().check("compare", |corpus, call| {
        let found = corpus.typed(&call["object"]).compare(&corpus.typed(&call["with"]));
        if let Some(error) = call.get("error") {
            return expect_error(found, error);
        }
        let found = found.map_err(|error| error.to_string())?;
        expect("removed", &found.removed, &set(&call["removed"]))?;
        expect("modified", &found.modified, &set(&call["modified"]))?;
        expect("added", &found.added, &set(&call["added"]))
    });
}

#[test]
fn values_without_fields_are_those_of_go() {
    Corpus::get().check("remove", |corpus, call| {
        let found = corpus.typed(&call["object"]).remove_items(&set(&call["set"]));
        expect_value("left", found.value(), &call["left"])
    });
}

#[test]
fn extracted_fields_are_those_of_go() {
    Corpus::get().check("extract", |corpus, call| {
        let object = corpus.typed(&call["object"]);
        let mut items = set(&call["set"]);
        if call["keys"] == true {
            items = object.with_key_fields(&items);
        }
        expect_value("left", object.extract_items(&items).value(), &call["left"])
    });
}

#[test]
fn reconciled_sets_are_those_of_go() {
    Corpus::get().check("reconcile", |corpus, call| {
        let found = corpus.typed(&call["object"]).reconcile(&set(&call["set"]));
        match (call.get("error"), &call["reconciled"]) {
            (Some(error), _) => expect_error(found, error),
            (None, Value::Null) => expect("reconciled", &found.map_err(|error| error.to_string())?, &None),
            (None, wanted) => expect("reconciled", &found.map_err(|error| error.to_string())?, &Some(set(wanted))),
        }
    });
}

/// A converter that knows the recorded conversions.
struct Recorded<'a> {
    corpus: &'a Corpus,
    conversions: &'a [Value],
}

impl Converter for Recorded<'_> {
    fn convert(&self, object: &Typed, version: &str) -> Result<Typed, ConvertError> {
        let value = plain(object.value());
        let found = self
            .conversions
            .iter()
            .find(|known| known["version"] == version && plain(&known["object"]["value"]) == value)
            .unwrap_or_else(|| panic!("Go does not convert {value} to {version:?}"));
        if found.get("missing").is_some() {
            Err(ConvertError::MissingVersion)
        } else if let Some(error) = found.get("error") {
            Err(ConvertError::Failed(error.as_str().unwrap().to_owned()))
        } else {
            Ok(self.corpus.typed(&found["converted"]))
        }
    }
}

fn managers(value: &Value) -> Managers {
    let one = |(name, managed): (&String, &Value)| {
        let managed = ManagedSet {
            set: set(&managed["set"]),
            version: managed["version"].as_str().unwrap().to_owned(),
            applied: managed["applied"] == true,
        };
        (name.clone(), managed)
    };
    value.as_object().unwrap().iter().map(one).collect()
}

fn ignored(call: &Value) -> BTreeMap<String, FieldSet> {
    call["ignored"].as_object().unwrap().iter().map(|(version, fields)| (version.clone(), set(fields))).collect()
}

fn expect_failure<T: std::fmt::Debug>(found: Result<T, UpdateError>, call: &Value) -> Result<(), String> {
    match found {
        Ok(value) => Err(format!("no error, but {value:?}")),
        Err(UpdateError::Invalid(found)) => {
            let wanted = call.get("error").and_then(Value::as_str).map(str::to_owned);
            expect("error", &Some(found), &wanted)
        }
        Err(UpdateError::Conflicts(conflicts)) => {
            let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let text = |path: &Path| path.iter().map(ToString::to_string).collect::<String>();
            for conflict in conflicts {
                found.entry(conflict.manager).or_default().push(text(&conflict.path));
            }
            expect("conflicts", &serde_json::to_value(found).unwrap(), &call["conflicts"])
        }
    }
}

#[test]
fn owners_after_an_update_are_those_of_go() {
    Corpus::get().check("update", |corpus, call| {
        let converter = Recorded { corpus, conversions: call["conversions"].as_array().map_or(&[], Vec::as_slice) };
        let ignored = ignored(call);
        let updater = Updater { converter: &converter, ignored: &ignored };
        let (live, new) = (corpus.typed(&call["live"]), corpus.typed(&call["object"]));
        let (version, manager) = (call["version"].as_str().unwrap(), call["manager"].as_str().unwrap());
        let found = updater.update(&live, &new, version, managers(&call["managers"]), manager);
        if call.get("owners").is_none() {
            return expect_failure(found, call);
        }
        expect("owners", &found.map_err(|error| format!("{error:?}"))?, &managers(&call["owners"]))
    });
}

#[test]
fn applied_objects_and_owners_are_those_of_go() {
    Corpus::get().check("apply", |corpus, call| {
        let converter = Recorded { corpus, conversions: call["conversions"].as_array().map_or(&[], Vec::as_slice) };
        let ignored = ignored(call);
        let updater = Updater { converter: &converter, ignored: &ignored };
        let (live, config) = (corpus.typed(&call["live"]), corpus.typed(&call["object"]));
        let (version, manager) = (call["version"].as_str().unwrap(), call["manager"].as_str().unwrap());
        let force = call["force"] == true;
        let found = updater.apply(&live, &config, version, managers(&call["managers"]), manager, force);
        if call.get("owners").is_none() {
            return expect_failure(found, call);
        }
        let (object, owners) = found.map_err(|error| format!("{error:?}"))?;
        expect("owners", &owners, &managers(&call["owners"]))?;
        let returns_input = call["returnsInput"] == true;
        if !returns_input {
            expect("is unchanged", &object.is_none(), &call["result"].is_null())?;
        }
        match &call["result"] {
            Value::Null => Ok(()),
            wanted => expect_value("result", object.as_ref().unwrap_or(&live).value(), &wanted["value"]),
        }
    });
}

/// Parses a set that was recorded as text.
fn parsed(text: &Value) -> FieldSet {
    text.as_str().unwrap().parse().unwrap()
}

/// Compares a set with the recorded text.
fn expect_set(found: &FieldSet, wanted: &Value) -> Result<(), String> {
    expect("text", &found.to_string().as_str(), &wanted.as_str().unwrap())?;
    expect("value", &found.to_value(), &serde_json::from_str(wanted.as_str().unwrap()).unwrap())?;
    // Two sets with the same text may differ in empty nodes.
    expect("set", found, &parsed(wanted))
}

fn pairs(value: &Value) -> Vec<(String, Value)> {
    let pair = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].clone());
    value.as_array().unwrap().iter().map(pair).collect()
}

fn element(value: &Value) -> PathElement {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "f" => PathElement::field(value.as_str().unwrap()),
        "k" => PathElement::Key(pairs(value)),
        "v" => PathElement::Value(value.clone()),
        "i" => PathElement::Index(value.as_i64().unwrap()),
        other => panic!("unknown kind of element {other}"),
    }
}

fn path(value: &Value) -> Path {
    value.as_array().unwrap().iter().map(element).collect()
}

fn paths(value: &Value) -> Vec<Path> {
    value.as_array().unwrap().iter().map(path).collect()
}

/// Runs the recorded calls of an operation on two sets.
fn check_operation(kind: &str, minimum: usize, run: impl Fn(&FieldSet, &FieldSet) -> FieldSet) {
    Corpus::get().check_at_least(minimum, kind, |_, call| {
        let (left, right) = (parsed(&call["left"]), parsed(&call["right"]));
        // Go has no functions for these two.
        expect("is disjoint", &left.is_disjoint(&right), &left.intersection(&right).is_empty())?;
        expect("is subset", &left.is_subset(&right), &left.difference(&right).is_empty())?;
        expect_set(&run(&left, &right), &call["set"])
    });
}

#[test]
fn sets_of_inserted_paths_are_those_of_go() {
    Corpus::get().check("insert", |_, call| expect_set(&paths(&call["paths"]).into_iter().collect(), &call["set"]));
}

#[test]
fn unions_are_those_of_go() {
    check_operation("union", 10, FieldSet::union);
}

#[test]
fn intersections_are_those_of_go() {
    check_operation("intersection", 5, FieldSet::intersection);
}

#[test]
fn differences_are_those_of_go() {
    check_operation("difference", 20, FieldSet::difference);
}

#[test]
fn recursive_differences_are_those_of_go() {
    check_operation("recursive difference", 10, FieldSet::recursive_difference);
}

#[test]
fn leaves_are_those_of_go() {
    Corpus::get().check_at_least(20, "leaves", |_, call| expect_set(&parsed(&call["of"]).leaves(), &call["set"]));
}

#[test]
fn sets_have_the_paths_that_they_have_in_go() {
    Corpus::get().check_at_least(10, "has", |_, call| {
        let found = parsed(&call["set"]).contains(&path(&call["path"]));
        expect("contains", &Value::from(found), &call["has"])
    });
}

#[test]
fn sets_are_equal_if_they_are_in_go() {
    Corpus::get().check("equal sets", |_, call| {
        expect("is equal", &Value::from(parsed(&call["left"]) == parsed(&call["right"])), &call["equal"])
    });
}

#[test]
fn sizes_of_sets_are_those_of_go() {
    Corpus::get().check_at_least(40, "size", |_, call| {
        let set = parsed(&call["of"]);
        expect("size", &Value::from(set.len()), &call["size"])?;
        expect("is empty", &set.is_empty(), &(call["size"] == 0))
    });
}

#[test]
fn order_of_paths_in_sets_is_that_of_go() {
    Corpus::get()
        .check_at_least(5, "iterate", |_, call| expect("paths", &parsed(&call["of"]).paths(), &paths(&call["paths"])));
}

#[test]
fn paths_are_shown_as_by_go() {
    Corpus::get().check_at_least(20, "path", |_, call| {
        let text: String = path(&call["path"]).iter().map(ToString::to_string).collect();
        expect("text", &text.as_str(), &call["text"].as_str().unwrap())
    });
}

#[test]
fn order_of_path_elements_is_that_of_go() {
    Corpus::get().check("order", |_, call| {
        let (left, right) = (element(&call["left"]), element(&call["right"]));
        expect("order", &Value::from(left.cmp(&right) as i8), &call["order"])?;
        expect("is equal", &Value::from(left == right), &call["equal"])
    });
}

#[test]
fn key_elements_are_sorted_as_by_go() {
    Corpus::get().check_at_least(30, "key", |_, call| {
        let PathElement::Key(found) = PathElement::key(pairs(&call["fields"])) else { panic!("not a key") };
        expect("key", &found, &pairs(&call["key"]))
    });
}

#[test]
fn path_elements_are_parsed_as_by_go() {
    Corpus::get().check("read element", |_, call| {
        let text = call["text"].as_str().unwrap();
        let value = serde_json::json!({ text: {} });
        for found in [FieldSet::from_value(&value), value.to_string().parse()] {
            let (wanted, shown) = match (call.get("error"), call.get("unknown")) {
                (Some(error), _) => match found {
                    Ok(found) => return Err(format!("no error, but {found}; Go: {error}")),
                    Err(_) => continue,
                },
                // Elements of an unknown kind are left out of sets.
                (None, Some(_)) => (vec![], None),
                (None, None) => (vec![vec![element(&call["element"])]], call.get("shown")),
            };
            let found = found.map_err(|error| error.to_string())?.paths();
            expect("paths", &found, &wanted)?;
            if let Some(shown) = shown {
                expect("shown", &found[0][0].to_string().as_str(), &shown.as_str().unwrap())?;
            }
        }
        Ok(())
    });
}

#[test]
fn path_elements_are_printed_as_by_go() {
    Corpus::get().check_at_least(20, "write element", |_, call| {
        let set = FieldSet::from_iter([vec![element(&call["element"])]]);
        let wanted = serde_json::json!({ call["text"].as_str().unwrap(): {} });
        expect("text", &serde_json::from_str(&set.to_string()).unwrap(), &wanted)?;
        expect("value", &set.to_value(), &wanted)
    });
}

#[test]
fn managers_are_equal_if_they_are_in_go() {
    Corpus::get().check_at_least(7, "equal managers", |_, call| {
        expect("is equal", &Value::from(managers(&call["left"]) == managers(&call["right"])), &call["equal"])
    });
}
