//! Go's durations: `1h2m3.5s`, signed, in nanoseconds.
//!
//! It parses what `time.ParseDuration` parses, to the nanosecond, and prints what Go prints.

use std::{fmt, str::FromStr, time::Duration};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A signed duration in nanoseconds, in Go's notation.
///
/// ```
/// use std::time::Duration;
/// use klient_core::GoDuration;
///
/// let timeout: GoDuration = "1h2m3.5s".parse()?;
/// assert_eq!(Duration::try_from(timeout), Ok(Duration::from_millis(3_723_500)));
/// assert_eq!(GoDuration::from_nanos(1_500_000).to_string(), "1.5ms");
/// # Ok::<(), klient_core::ParseGoDurationError>(())
/// ```
#[doc(alias = "time.Duration")]
#[doc(alias = "metav1.Duration")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

impl GoDuration {
    /// Creates a duration of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// Returns the duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// Returns whether the duration is negative.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }
}

impl FromStr for GoDuration {
    type Err = ParseGoDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |at: usize, why: &'static str| ParseGoDurationError { text: text.to_owned(), at, why };
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let mut at = text.len() - unsigned.len();
        if unsigned == "0" {
            return Ok(Self::default());
        }
        if unsigned.is_empty() {
            return Err(fail(at, "expected a number"));
        }
        let mut total = 0_u64;
        while at < text.len() {
            let (len, nanos) = parse_term(&text[at..]).map_err(|(offset, why)| fail(at + offset, why))?;
            total = total.checked_add(nanos).filter(|total| *total <= LIMIT).ok_or_else(|| fail(at, TOO_LONG))?;
            at += len;
        }
        let nanos = if text.starts_with('-') { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        nanos.map(Self::from_nanos).ok_or_else(|| fail(0, TOO_LONG))
    }
}

/// Parses a number and its unit. Returns the bytes used and the nanoseconds, at most [`LIMIT`].
fn parse_term(text: &str) -> Result<(usize, u64), (usize, &'static str)> {
    let digits_in = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = &text[..digits_in(text)];
    let fraction = text[whole.len()..].strip_prefix('.').map(|rest| &rest[..digits_in(rest)]);
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return Err((0, "expected a number"));
    }
    let unit_at = whole.len() + fraction.map_or(0, |fraction| 1 + fraction.len());
    let rest = &text[unit_at..];
    let unit = &rest[..rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len())];
    let factor = match unit {
        "" => return Err((unit_at, "expected a unit")),
        "ns" => 1,
        // The micro sign and the Greek letter look the same.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err((unit_at, "unknown unit, expected one of ns us µs ms s m h")),
    };
    let whole = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
    let whole = whole.ok().and_then(|whole| whole.checked_mul(factor)).filter(|nanos| *nanos <= LIMIT);
    let part = fraction_of(fraction.unwrap_or_default(), factor);
    let nanos = whole.and_then(|whole| whole.checked_add(part)).filter(|nanos| *nanos <= LIMIT).ok_or((0, TOO_LONG))?;
    Ok((unit_at + unit.len(), nanos))
}

/// Returns the nanoseconds of the digits after the point.
fn fraction_of(digits: &str, factor: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1_f64);
    for digit in digits.bytes() {
        let longer = number * 10 + u64::from(digit - b'0');
        if longer > LIMIT {
            break;
        }
        (number, scale) = (longer, scale * 10.0);
        // One more digit could overflow, and is far below a nanosecond.
        if number > i64::MAX.unsigned_abs() / 10 {
            break;
        }
    }
    // Floats in this order, as in Go, because the last nanosecond depends on it.
    (number as f64 * (factor as f64 / scale)) as u64
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        let sign = if self.is_negative() { "-" } else { "" };
        let text = match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{sign}{nanos}ns"),
            1_000..1_000_000 => format!("{sign}{}µs", decimal(nanos, 3)),
            1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(nanos, 6)),
            _ => {
                let (minutes, nanos) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
                let seconds = decimal(nanos, 9);
                match (minutes / 60, minutes % 60) {
                    (0, 0) => format!("{sign}{seconds}s"),
                    (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                    (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
                }
            }
        };
        f.pad(&text)
    }
}

/// Returns `number / 10^places` without trailing zeros.
fn decimal(number: u64, places: u32) -> String {
    let one = 10_u64.pow(places);
    let text = format!("{}.{:0width$}", number / one, number % one, width = places as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl TryFrom<Duration> for GoDuration {
    type Error = DurationRangeError;

    fn try_from(duration: Duration) -> Result<Self, Self::Error> {
        duration.as_nanos().try_into().map(Self::from_nanos).map_err(|_| DurationRangeError { why: TOO_LONG })
    }
}

impl TryFrom<GoDuration> for Duration {
    type Error = DurationRangeError;

    fn try_from(duration: GoDuration) -> Result<Self, Self::Error> {
        u64::try_from(duration.nanos).map(Self::from_nanos).map_err(|_| DurationRangeError { why: "negative" })
    }
}

impl TryFrom<SignedDuration> for GoDuration {
    type Error = DurationRangeError;

    fn try_from(duration: SignedDuration) -> Result<Self, Self::Error> {
        duration.as_nanos().try_into().map(Self::from_nanos).map_err(|_| DurationRangeError { why: TOO_LONG })
    }
}

impl From<GoDuration> for SignedDuration {
    fn from(duration: GoDuration) -> Self {
        Self::from_nanos(duration.nanos)
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// An error of parsing a Go duration, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseGoDurationError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseGoDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duration {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseGoDurationError {}

/// An error of converting a duration that is out of the other type's range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationRangeError {
    why: &'static str,
}

impl fmt::Display for DurationRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duration is {}", self.why)
    }
}

impl std::error::Error for DurationRangeError {}

/// The nanoseconds of the longest negative duration; the longest positive one has one less.
const LIMIT: u64 = 1 << 63;

const TOO_LONG: &str = "longer than 292 years";
