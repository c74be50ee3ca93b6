//! Field paths and JSON pointers: a parsed value prints as text that parses to the same value.

#![no_main]

use klient_core::{FieldPath, JsonPointer};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(path) = text.parse::<FieldPath>() {
        let printed = path.to_string();
        assert_eq!(printed.parse::<FieldPath>().as_ref(), Ok(&path), "{text:?} printed as {printed:?}");
    }
    if let Ok(pointer) = text.parse::<JsonPointer>() {
        assert_eq!(pointer.to_string(), text);
    }
});
