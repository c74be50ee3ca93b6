//! The text of field sets, and the algebra on what was parsed.

#![no_main]

use klient_core::fields::FieldSet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| {
    let (Ok(left), Ok(right)) = (texts.0.parse::<FieldSet>(), texts.1.parse::<FieldSet>()) else { return };
    let again: FieldSet = left.to_string().parse().expect("printed sets can be parsed");
    assert_eq!(again, left);
    assert_eq!(FieldSet::from_value(&left.to_value()).expect("values of sets can be parsed"), left);
    let both = left.union(&right);
    assert_eq!(both, right.union(&left));
    assert_eq!(left.intersection(&right).union(&left.difference(&right)), left);
    assert!(left.difference(&both).is_empty());
    assert!(left.recursive_difference(&left).is_empty());
    assert_eq!(both.len(), left.len() + right.difference(&left).len());
});
