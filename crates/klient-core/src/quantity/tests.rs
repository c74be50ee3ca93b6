//! Quantities against the API server's own answers, against tables, and against arithmetic's laws.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn agrees_with_apimachinery_on_the_golden_file() {
    // Made by a Go program over k8s.io/apimachinery v0.37.0; one line per text:
    // text|canonical form|String()|format|other|cmp with other|sum|difference|value|milli value, or text|error.
    // Left out are lines where apimachinery prints another number than it holds (suffixes above E and Ei).
    for line in include_str!("../../testdata/quantity_golden.txt").lines() {
        let columns: Vec<&str> = line.split('|').collect();
        let parsed = columns[0].parse::<Quantity>();
        let &[text, canonical, kept, format, other, order, sum, difference, value, milli] = &columns[..] else {
            assert!(parsed.is_err(), "{line}: {parsed:?}");
            continue;
        };
        let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
        let other = quantity(other);
        assert_eq!(parsed.to_string(), canonical, "{line}");
        assert_eq!(Quantity::respell(text).unwrap(), kept, "{line}");
        assert_eq!(format!("{:?}", parsed.format()).to_lowercase(), format.to_lowercase(), "{line}");
        assert_eq!((parsed.cmp(&other) as i8).to_string(), order, "{line}");
        assert_eq!((parsed + other).to_string(), sum, "{line}");
        assert_eq!((parsed - other).to_string(), difference, "{line}");
        // A dash stands for what an i64 cannot hold.
        assert!(value == "-" || parsed.value().to_string() == value, "{line}: {}", parsed.value());
        assert!(milli == "-" || parsed.milli_value().to_string() == milli, "{line}: {}", parsed.milli_value());
    }
}

#[test]
fn prints_the_canonical_form() {
    use QuantityFormat::{BinarySi, DecimalExponent, DecimalSi};
    const KI: i128 = 1024;
    for (mantissa, exponent, format, expected) in [
        (KI * KI * KI, 0, BinarySi, "1Gi"),
        (300 * KI * KI, 0, BinarySi, "300Mi"),
        (6 * KI, 0, BinarySi, "6Ki"),
        (1001 * KI * KI * KI, 0, BinarySi, "1001Gi"),
        (5, 0, BinarySi, "5"),
        (500, -3, BinarySi, "500m"),
        (1_234_567, -3, BinarySi, "1234567m"),
        (1025, 0, BinarySi, "1025"),
        (0, 0, BinarySi, "0"),
        (1, 9, DecimalSi, "1G"),
        (1_000_000, 3, DecimalSi, "1G"),
        (1, -3, DecimalSi, "1m"),
        (108, -2, DecimalSi, "1080m"),
        (10_800, -4, DecimalSi, "1080m"),
        (1_234_567, 6, DecimalSi, "1234567M"),
        (108, -8, DecimalSi, "1080n"),
        (1080, -6, DecimalSi, "1080u"),
        (0, 0, DecimalSi, "0"),
        (1, 9, DecimalExponent, "1e9"),
        (80, -3, DecimalExponent, "80e-3"),
        (300, 6, DecimalExponent, "300e6"),
        (1, 14, DecimalExponent, "100e12"),
        (7, 0, DecimalExponent, "7"),
        (0, 0, DecimalExponent, "0"),
    ] {
        let quantity = Quantity::normalised(mantissa, exponent, format);
        assert_eq!(quantity.to_string(), expected);
        if mantissa != 0 {
            assert_eq!((-quantity).to_string(), format!("-{expected}"));
        }
    }
}

#[test]
fn writes_the_exponent_out_beyond_the_largest_suffix() {
    assert_eq!(quantity("1000E").to_string(), "1e21");
    assert_eq!(quantity("1.5e400").with_format(QuantityFormat::BinarySi).to_string(), "15e399");
    assert_eq!((quantity("8Ei") + quantity("8Ei")).to_string(), "18446744073709551614");
}

#[test]
fn refuses_a_number_whose_printed_form_it_would_refuse() {
    for text in ["500E1000000000", "1e1000000001", "12345e999999999"] {
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
    for text in ["500e999999997", "5e999999999", "1e1000000000"] {
        let quantity: Quantity = text.parse().unwrap();
        assert_eq!(quantity.to_string().parse(), Ok(quantity), "{text}");
    }
}

#[test]
fn rounds_what_is_too_fine_away_from_zero() {
    for (text, expected) in [
        ("3.001n", "4n"),
        ("-3.001n", "-4n"),
        ("0.9n", "1n"),
        ("1e-2000000000", "1e-9"),
        (".000000000001Ki", "2n"),
        ("0.00000000000000000000000000000000000000000000000001", "1n"),
        ("1.00000000000000000000000000000000000000000000000001", "1000000001n"),
    ] {
        assert_eq!(quantity(text).to_string(), expected, "{text}");
    }
}

#[test]
fn rounds_the_last_of_more_than_38_digits() {
    let ones = "1".repeat(60);
    assert_eq!(quantity(&ones).to_string(), format!("{}20e21", "1".repeat(37)));
    assert_eq!(quantity("1e60") + quantity("1"), quantity(&format!("1{}1e23", "0".repeat(36))));
    assert_eq!(quantity("1e60") - quantity("1e60"), Quantity::ZERO);
}

#[test]
fn says_where_and_why_a_text_is_no_quantity() {
    for (text, expected) in [
        ("", "quantity \"\" at byte 0: expected a number"),
        ("1.1.M", "quantity \"1.1.M\" at byte 3: unexpected character"),
        ("12Zi", "quantity \"12Zi\" at byte 2: unexpected character"),
        ("Pi", "quantity \"Pi\" at byte 0: expected a number"),
        ("1e", "quantity \"1e\" at byte 1: expected an exponent such as e3"),
        ("1e3000000000", "quantity \"1e3000000000\" at byte 1: exponent is out of range"),
        ("10e1000000001", "quantity \"10e1000000001\" at byte 2: exponent is out of range"),
    ] {
        assert_eq!(text.parse::<Quantity>().map_err(|error| error.to_string()), Err(expected.to_owned()));
    }
}

#[test]
fn takes_the_format_of_the_left_operand_unless_that_is_zero() {
    assert_eq!((quantity("0") + quantity("1Gi")).to_string(), "1Gi");
    assert_eq!((quantity("1Gi") + quantity("0")).to_string(), "1Gi");
    assert_eq!((quantity("0") - quantity("1Gi")).to_string(), "-1Gi");
    assert_eq!((quantity("1k") + quantity("1Ki")).to_string(), "2024");
    assert_eq!((quantity("250m") * 4).to_string(), "1");
    assert_eq!([quantity("1Gi"), quantity("1Mi")].into_iter().sum::<Quantity>().to_string(), "1025Mi");
}

#[test]
fn caps_values_that_an_i64_cannot_hold() {
    assert_eq!(quantity("12E").value(), i64::MAX);
    assert_eq!(quantity("-1e900000000").milli_value(), i64::MIN);
    assert_eq!(quantity("12E").as_i64(), None);
    assert_eq!(quantity("1500m").as_i64(), None);
    assert_eq!(quantity("1Ki").as_i64(), Some(1024));
    assert_eq!(quantity("1n").scaled_value(i32::MAX), 1);
}

#[test]
fn reads_strings_and_numbers_and_writes_strings() {
    for (json, expected) in [
        ("\"1000m\"", "\"1\""),
        ("\" 1 \"", "\"1\""),
        ("10", "\"10\""),
        ("-1", "\"-1\""),
        ("0.1", "\"100m\""),
        ("null", "\"0\""),
    ] {
        let quantity: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&quantity).unwrap(), expected);
    }
    let error = serde_json::from_str::<Quantity>("\"x\"").unwrap_err();
    assert!(error.to_string().contains("quantity \"x\" at byte 0"), "{error}");
}

#[test]
fn converts_from_and_to_the_api_type() {
    let quantity = Quantity::try_from(&ApiQuantity("1024Mi".into())).unwrap();
    assert_eq!(ApiQuantity::from(quantity), ApiQuantity("1Gi".into()));
}

#[test]
#[expect(clippy::float_cmp, reason = "the nearest float is one float")]
fn approximates_with_the_nearest_float() {
    assert_eq!(quantity("0.1").as_f64_approximate(), 0.1);
    assert_eq!(quantity("1Ki").as_f64_approximate(), 1024.0);
    assert_eq!(quantity("-1e400").as_f64_approximate(), f64::NEG_INFINITY);
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "e-7",
    ]);
    (any::<i32>(), 0..1000_u32, suffix)
        .prop_map(|(whole, fraction, suffix)| quantity(&format!("{whole}.{fraction}{suffix}")))
}

fn hash(quantity: Quantity) -> u64 {
    let mut hasher = DefaultHasher::new();
    quantity.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn parses_what_it_prints(quantity in any_quantity()) {
        let again: Quantity = quantity.to_string().parse().unwrap();
        prop_assert_eq!(again, quantity);
        prop_assert_eq!(again.to_string(), quantity.to_string());
        prop_assert_eq!(hash(again), hash(quantity));
    }

    #[test]
    fn orders_as_the_difference_says(left in any_quantity(), right in any_quantity()) {
        let difference = left - right;
        prop_assert_eq!(left.cmp(&right), difference.cmp(&Quantity::ZERO));
        prop_assert_eq!(difference + right, left);
        prop_assert_eq!(left + right, right + left);
        prop_assert_eq!(left * 3, left + left + left);
    }

    #[test]
    fn never_panics_on_any_text(text in "\\PC*", near in "[-+.0-9eEinumkKMGTP]{0,12}[0-9]{0,40}[kKMGie]{0,3}[-0-9]{0,12}") {
        for text in [text, near] {
            if let Ok(quantity) = text.parse::<Quantity>() {
                let _ = (quantity.value(), quantity.as_f64_approximate(), quantity * i64::MIN, Quantity::respell(&text));
                prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
            }
        }
    }
}
