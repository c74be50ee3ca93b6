//! Parsing of quantities: accepts what the Kubernetes API server accepts, which is more than its documentation says.
//!
//! For example, the server reads a missing number, as in `m` or `.`, as zero. This parser does, too, because servers
//! return such texts, and one must not make an object unreadable.

use std::{fmt, str::FromStr};

use super::{NANO, Quantity, QuantityFormat, SIGNIFICANT_DIGITS, arith};

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |at: usize, why: &'static str| ParseQuantityError { text: text.to_owned(), at, why };
        if text.is_empty() {
            return Err(fail(0, "expected a number"));
        }
        let parts = Parts::split(text).map_err(|(at, why)| fail(at, why))?;
        let unit = Unit::interpret(parts.suffix).map_err(|why| fail(parts.suffix_at, why))?;
        if !parts.has_digits && !unit.reads_no_digits_as_zero() {
            return Err(fail(0, "expected a number"));
        }
        let (mantissa, exponent) = parts.number(unit).ok_or_else(|| fail(parts.suffix_at, EXPONENT_TOO_LARGE))?;

        let mut format = unit.format();
        let mut quantity = Self::normalised(mantissa, exponent, format);
        if format == QuantityFormat::BinarySi {
            let most = Self::from_i64(i64::MAX, format);
            if quantity > most {
                quantity = most;
            }
            if quantity < Self::from_i64(1, format) && !quantity.is_zero() {
                format = QuantityFormat::DecimalSi;
            }
        }
        let quantity = quantity.with_format(format);
        Ok(if parts.negative { -quantity } else { quantity })
    }
}

impl Quantity {
    /// Returns the text that the Kubernetes API server writes for this one.
    ///
    /// It is mostly the canonical form, but the server preserves some texts, such as `1.500` and `+1`, in which a quick
    /// check of digits and suffix finds nothing to shorten.
    ///
    /// ```
    /// use klient_core::Quantity;
    ///
    /// assert_eq!(Quantity::respell("1000m")?, "1");
    /// assert_eq!(Quantity::respell("1.500")?, "1.500");
    /// # Ok::<(), klient_core::ParseQuantityError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a quantity.
    pub fn respell(text: &str) -> Result<String, ParseQuantityError> {
        let quantity: Self = text.parse()?;
        let kept = Parts::split(text)
            .is_ok_and(|parts| Unit::interpret(parts.suffix).is_ok_and(|unit| is_preserved(parts, unit)));
        Ok(if kept { text.to_owned() } else { quantity.to_string() })
    }
}

/// Returns whether the API server's quick check treats the text as canonical.
fn is_preserved(parts: Parts<'_>, unit: Unit) -> bool {
    let (whole, fraction) = (parts.whole.trim_start_matches('0'), parts.fraction);
    // A missing whole part counts as one digit, zero.
    let whole = if whole.is_empty() { "0" } else { whole };
    let digits = whole.len() + fraction.len();
    match unit {
        Unit::PowerOfTen { exponent, .. } => {
            let scale = i64::from(exponent) - fraction.len() as i64;
            let thousands =
                whole.bytes().chain(fraction.bytes()).rev().take(3).filter(|digit| *digit == b'0').count() == 3;
            digits <= 18 && scale >= NANO.into() && scale % 3 == 0 && !thousands && !whole.starts_with('0')
        }
        Unit::PowerOfTwo { exponent } => {
            let short = digits + exponent as usize * 3 / 10 < 15;
            short && fraction.is_empty() && whole.parse::<u64>().is_ok_and(|number| number % 8 != 0)
        }
    }
}

/// The parts of a quantity's text.
#[derive(Clone, Copy)]
struct Parts<'a> {
    negative: bool,
    // The digits before and after the point.
    whole: &'a str,
    fraction: &'a str,
    has_digits: bool,
    suffix: &'a str,
    suffix_at: usize,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, (usize, &'static str)> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let suffix_at = text.len() - suffix.len();

        let after_letters = suffix.trim_start_matches(|letter| SUFFIX_LETTERS.contains(letter));
        let (_, garbage) = split_digits(after_letters.strip_prefix(['+', '-']).unwrap_or(after_letters));
        if !garbage.is_empty() {
            return Err((text.len() - garbage.len(), "unexpected character"));
        }
        Ok(Self {
            negative: text.starts_with('-'),
            whole,
            fraction,
            // The server reads a lone sign as zero.
            has_digits: !whole.is_empty() || !fraction.is_empty() || unsigned.is_empty(),
            suffix,
            suffix_at,
        })
    }

    /// Returns the number as mantissa and exponent, rounded up to a billionth, or `None` if its exponent is out of
    /// range.
    fn number(&self, unit: Unit) -> Option<(i128, i32)> {
        let digits =
            || self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0').skip_while(|d| *d == 0);
        let (power_of_ten, power_of_two) = match unit {
            Unit::PowerOfTen { exponent, .. } => (exponent, 0),
            Unit::PowerOfTwo { exponent } => (0, exponent),
        };
        let exponent = i64::from(power_of_ten) - i64::try_from(self.fraction.len()).ok()?;
        let count = digits().count();
        let (mantissa, exponent) = if count <= SHORT {
            let number = digits().fold(0_i128, |number, digit| number * 10 + i128::from(digit)) << power_of_two;
            round_to_nano(number, exponent)
        } else {
            long_number(digits().collect(), power_of_two, exponent)
        };
        match mantissa {
            // Any exponent of zero is valid.
            0 => Some((0, 0)),
            _ => {
                // The size of the number is checked, not its spelling: `500e7` is printed as `5e9`, which must be
                // readable again.
                let magnitude = exponent + i64::from(mantissa.unsigned_abs().ilog10());
                let exponent = i32::try_from(exponent).ok()?;
                (magnitude <= LARGEST_EXPONENT).then_some((mantissa, exponent))
            }
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn round_to_nano(number: i128, exponent: i64) -> (i128, i64) {
    let nano = i64::from(NANO);
    if exponent >= nano {
        return (number, exponent);
    }
    (arith::divide_away_from_zero(number, exponent.abs_diff(nano)), nano)
}

/// Parses texts of so many digits that a product with `2^60` may overflow, by computing with decimal digits.
fn long_number(mut digits: Vec<u8>, power_of_two: u32, exponent: i64) -> (i128, i64) {
    for _ in 0..power_of_two {
        double(&mut digits);
    }
    let too_fine = usize::try_from(i64::from(NANO) - exponent).unwrap_or_default();
    let dropped = too_fine.max(digits.len().saturating_sub(SIGNIFICANT_DIGITS as usize));
    let kept = digits.len().saturating_sub(dropped);
    let mut number = digits[..kept].iter().fold(0_i128, |number, digit| number * 10 + i128::from(*digit));
    if digits[kept..].iter().any(|digit| *digit != 0) {
        number += 1;
    }
    (number, exponent + i64::try_from(dropped).unwrap_or(i64::MAX))
}

fn double(digits: &mut Vec<u8>) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let doubled = *digit * 2 + carry;
        *digit = doubled % 10;
        carry = doubled / 10;
    }
    if carry > 0 {
        digits.insert(0, carry);
    }
}

/// The factor of a suffix.
#[derive(Clone, Copy)]
enum Unit {
    PowerOfTen { exponent: i32, written_out: bool },
    PowerOfTwo { exponent: u32 },
}

impl Unit {
    fn interpret(suffix: &str) -> Result<Self, &'static str> {
        let si = |exponent| Ok(Self::PowerOfTen { exponent, written_out: false });
        let binary = |exponent| Ok(Self::PowerOfTwo { exponent });
        match suffix {
            "n" => si(-9),
            "u" => si(-6),
            "m" => si(-3),
            "" => si(0),
            "k" => si(3),
            "M" => si(6),
            "G" => si(9),
            "T" => si(12),
            "P" => si(15),
            "E" => si(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => match suffix.strip_prefix(['e', 'E']) {
                Some(exponent) => match exponent.parse() {
                    Ok(exponent) => Ok(Self::PowerOfTen { exponent, written_out: true }),
                    Err(error) if is_overflow(&error) => Err(EXPONENT_TOO_LARGE),
                    Err(_) => Err("expected an exponent such as e3"),
                },
                None => Err("unknown suffix, expected one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent"),
            },
        }
    }

    fn format(self) -> QuantityFormat {
        match self {
            Self::PowerOfTen { written_out: true, .. } => QuantityFormat::DecimalExponent,
            Self::PowerOfTen { written_out: false, .. } => QuantityFormat::DecimalSi,
            Self::PowerOfTwo { .. } => QuantityFormat::BinarySi,
        }
    }

    /// Returns whether the server reads a missing number with this unit as zero. With other units, it requires digits.
    fn reads_no_digits_as_zero(self) -> bool {
        match self {
            Self::PowerOfTen { exponent, .. } => exponent >= NANO,
            Self::PowerOfTwo { exponent } => exponent <= 40,
        }
    }
}

fn is_overflow(error: &std::num::ParseIntError) -> bool {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    matches!(error.kind(), PosOverflow | NegOverflow)
}

/// An error of parsing a quantity, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quantity {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseQuantityError {}

const SUFFIX_LETTERS: &str = "eEinumkKMGTP";
const EXPONENT_TOO_LARGE: &str = "exponent is out of range";

/// The number of digits whose product with `2^60` fits in a mantissa.
const SHORT: usize = 18;

/// Far enough from `i32::MAX` that arithmetic on exponents never overflows.
const LARGEST_EXPONENT: i64 = 1_000_000_000;
