//! Fields with a number or a percentage, such as `maxUnavailable: 25%`.
//!
//! In client-go: `k8s.io/apimachinery/pkg/util/intstr`.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Methods of [`IntOrString`].
///
/// ```
/// use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
/// use klient_core::{IntOrStringExt, Rounding};
///
/// let max_unavailable = IntOrString::from_text("25%");
/// assert_eq!(max_unavailable.scaled_value(10, Rounding::Down), Ok(2));
/// assert_eq!(max_unavailable.scaled_value(10, Rounding::Up), Ok(3));
/// assert_eq!(IntOrString::Int(4).scaled_value(10, Rounding::Up), Ok(4));
/// ```
pub trait IntOrStringExt: Sized {
    /// Creates a number if the text is one that fits, or else a string.
    #[doc(alias = "intstr.Parse")]
    fn from_text(text: &str) -> Self;

    /// Returns the text, or the number as digits.
    fn as_text(&self) -> Cow<'_, str>;

    /// Returns the number, also if it is written as text, or else zero.
    #[doc(alias = "IntValue")]
    fn int_value(&self) -> i64;

    /// Returns the number, or the percentage of `total`.
    ///
    /// # Errors
    ///
    /// Returns an error if it is a text that is not a whole percentage.
    #[doc(alias = "GetScaledValueFromIntOrPercent")]
    fn scaled_value(&self, total: i64, rounding: Rounding) -> Result<i64, PercentError>;
}

/// The rounding of a percentage to a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the next larger one.
    Up,
    /// To the next smaller one.
    Down,
}

impl IntOrStringExt for IntOrString {
    fn from_text(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::String(text.to_owned()), Self::Int)
    }

    fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Int(number) => number.to_string().into(),
            Self::String(text) => text.into(),
        }
    }

    fn int_value(&self) -> i64 {
        match self {
            Self::Int(number) => (*number).into(),
            Self::String(text) => text.parse().unwrap_or_default(),
        }
    }

    fn scaled_value(&self, total: i64, rounding: Rounding) -> Result<i64, PercentError> {
        let text = match self {
            Self::Int(number) => return Ok((*number).into()),
            Self::String(text) => text,
        };
        let fail = |at: usize, why: &'static str| PercentError { text: text.clone(), at, why };
        let number = text.strip_suffix('%').ok_or_else(|| fail(text.len(), "expected `%` at the end"))?;
        let percent: i64 = number.parse().map_err(|_| fail(0, "expected a whole number before `%`"))?;
        let product = i128::from(percent) * i128::from(total);
        let quotient = product.div_euclid(100);
        let scaled = match rounding {
            Rounding::Up if product.rem_euclid(100) != 0 => quotient + 1,
            Rounding::Up | Rounding::Down => quotient,
        };
        i64::try_from(scaled).map_err(|_| fail(0, "the percentage of this total is out of range"))
    }
}

/// An error of parsing a percentage, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PercentError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "percentage {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for PercentError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scaled_value_returns_numbers_and_scales_percentages() {
        for (text, total, up, down) in [
            ("123", 100, 123, 123),
            ("-5", 100, -5, -5),
            ("90%", 100, 90, 90),
            ("95%", 10, 10, 9),
            ("+1%", 1, 1, 0),
            ("0%", 7, 0, 0),
            ("-25%", 10, -2, -3),
            ("25%", -10, -2, -3),
            ("300%", 3, 9, 9),
        ] {
            let value = IntOrString::from_text(text);
            let scaled = (value.scaled_value(total, Rounding::Up), value.scaled_value(total, Rounding::Down));
            assert_eq!(scaled, (Ok(up), Ok(down)), "{text}");
        }
    }

    #[test]
    fn scaled_value_rejects_text_that_is_not_a_percentage() {
        for (text, expected) in [
            ("1", "percentage \"1\" at byte 1: expected `%` at the end"),
            ("%", "percentage \"%\" at byte 0: expected a whole number before `%`"),
            ("1.5%", "percentage \"1.5%\" at byte 0: expected a whole number before `%`"),
            ("5%%", "percentage \"5%%\" at byte 0: expected a whole number before `%`"),
        ] {
            let value = IntOrString::String(text.into());
            assert_eq!(value.scaled_value(10, Rounding::Up).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn from_text_parses_numbers_that_fit() {
        assert_eq!(IntOrString::from_text("8080"), IntOrString::Int(8080));
        assert_eq!(IntOrString::from_text("2147483648"), IntOrString::String("2147483648".into()));
        assert_eq!(IntOrString::from_text("http"), IntOrString::String("http".into()));
        assert_eq!((IntOrString::Int(-1).as_text(), IntOrString::Int(-1).int_value()), ("-1".into(), -1));
        assert_eq!(IntOrString::String("2147483648".into()).int_value(), 2_147_483_648);
        assert_eq!(IntOrString::String("http".into()).int_value(), 0);
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in "\\PC*", near in "[-+]?[0-9]{0,20}%?", total: i64) {
            for text in [text, near] {
                let value = IntOrString::from_text(&text);
                prop_assert_eq!(IntOrString::from_text(&value.as_text()), value.clone());
                let (up, down) = (value.scaled_value(total, Rounding::Up), value.scaled_value(total, Rounding::Down));
                if let (Ok(up), Ok(down)) = (up, down) {
                    prop_assert!(up == down || up == down + 1);
                }
            }
        }
    }
}
