//! Names of objects and of groups with versions: a parsed value prints as it was written.

#![no_main]

use klient_core::{GroupVersion, ObjectKey, compare_versions, validate_label_key, validate_label_value};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(key) = text.parse::<ObjectKey>() {
        assert_eq!(key.to_string(), text);
        assert_eq!(ObjectKey::namespaced(key.namespace().unwrap_or_default(), key.name()), key);
    }
    if let Ok(version) = text.parse::<GroupVersion>() {
        let printed = version.to_string();
        assert_eq!(printed.parse::<GroupVersion>().as_ref(), Ok(&version), "{text:?} printed as {printed:?}");
    }
    let _ = (validate_label_key(text), validate_label_value(text));
    let (left, right) = text.split_at(text.floor_char_boundary(text.len() / 2));
    assert_eq!(compare_versions(left, right), compare_versions(right, left).reverse());
});
