//! Field selectors: a parsed value prints as text that parses to the same value.

#![no_main]

use klient_core::FieldSelector;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(selector) = text.parse::<FieldSelector>() else { return };
    let printed = selector.to_string();
    assert_eq!(printed.parse::<FieldSelector>().as_ref(), Ok(&selector), "{text:?} printed as {printed:?}");
    let _ = selector.matches(|field| (field.len() % 2 == 0).then_some(text));
});
