//! Quantities: a parsed value prints as text that parses to the same number.

#![no_main]

use klient_core::Quantity;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(quantity) = text.parse::<Quantity>() else { return };
    let printed = quantity.to_string();
    let again: Quantity = printed.parse().unwrap_or_else(|error| panic!("{text:?} printed as {printed:?}: {error}"));
    assert_eq!(again, quantity, "{text:?} printed as {printed:?}");
    // A number without suffix does not tell which family it was written with: `1500.5Ki` prints as such a number.
    assert_eq!(again.with_format(quantity.format()).to_string(), printed);
    let _ = (quantity.value(), quantity.milli_value(), quantity.as_i64(), quantity.as_f64_approximate());
});
