//! Applied configurations on objects of a schema with all sorts of lists and maps.

#![no_main]

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use klient_core::fields::{ConvertError, Converter, Duplicates, Managers, Schema, Typed, Updater};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let list = |element: Value, keys: &[&str]| json!({"list": {"elementType": element, "elementRelationship": "associative", "keys": keys}});
    let field = |name: &str, ty: Value| json!({"name": name, "type": ty});
    Arc::new(Schema::from_value(&json!({"types": [
        {"name": "root", "map": {"fields": [
            field("n", json!({"scalar": "numeric"})),
            field("s", json!({"scalar": "string"})),
            field("set", list(json!({"scalar": "untyped"}), &[])),
            field("map", list(json!({"namedType": "root"}), &["s"])),
            field("atomic", json!({"map": {"elementType": {"scalar": "untyped"}, "elementRelationship": "atomic"}})),
            field("any", json!({"namedType": "any"})),
        ]}},
        {"name": "any", "scalar": "untyped",
            "list": {"elementType": {"namedType": "any"}, "elementRelationship": "atomic"},
            "map": {"elementType": {"namedType": "any"}}},
    ]})))
});

struct Same;

impl Converter for Same {
    fn convert(&self, object: &Typed, _version: &str) -> Result<Typed, ConvertError> {
        Ok(object.clone())
    }
}

fuzz_target!(|texts: (&str, &str, &str)| {
    let root = SCHEMA.find("root").expect("the schema has a root");
    let typed = |text: &str, duplicates| {
        let value: Value = serde_json::from_str(text).ok()?;
        Typed::new(&SCHEMA, root, value, duplicates).ok()
    };
    let Some(live) = typed(texts.0, Duplicates::Allowed) else { return };
    let ignored = BTreeMap::new();
    let updater = Updater { converter: &Same, ignored: &ignored };
    let empty = Typed::unchecked(&SCHEMA, root, json!({}));
    let mut managers =
        updater.update(&empty, &live, "v1", Managers::new(), "creator").expect("valid objects are compared");
    let mut object = live;
    for text in [texts.1, texts.2, texts.1] {
        let Some(config) = typed(text, Duplicates::Refused) else { continue };
        let (new, owners) =
            updater.apply(&object, &config, "v1", managers, "applier", true).expect("a forced apply has no conflicts");
        managers = owners;
        object = new.unwrap_or(object);
        // As in Go, an object without its last field is null. Real objects keep their names.
        if object.value().is_null() {
            object = empty.clone();
        }
        // What was applied is there, and applying it again changes nothing.
        let (again, same) = updater
            .apply(&object, &config, "v1", managers.clone(), "applier", false)
            .expect("own fields have no conflicts");
        assert!(again.is_none(), "{} changes {}", config.value(), object.value());
        assert_eq!(same, managers);
    }
});
