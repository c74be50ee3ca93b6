//! Label selectors: a parsed value prints as text that parses to the same value.

#![no_main]

use klient_core::LabelSelector;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(selector) = text.parse::<LabelSelector>() else { return };
    let printed = selector.to_string();
    assert_eq!(printed.parse::<LabelSelector>().as_ref(), Ok(&selector), "{text:?} printed as {printed:?}");
    let _ = selector.matches(|key| (key.len() % 2 == 0).then_some(text));
});
