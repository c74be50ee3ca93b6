//! Parsing and formatting of instants in RFC 3339, with the API server's tolerance.
//!
//! It also accepts a one-digit hour, a comma before the fraction, and offsets up to 24:60.

use std::fmt;

use jiff::{SignedDuration, Timestamp, civil, tz::Offset};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};

/// Parses a [`Time`], such as `2026-07-01T12:00:00Z`.
///
/// Offsets and fractions of seconds are accepted.
///
/// ```
/// use klient_core::{format_time, parse_time};
///
/// let time = parse_time("2026-07-01T14:00:00.25+02:00")?;
/// assert_eq!(format_time(&time), "2026-07-01T12:00:00Z");
/// # Ok::<(), klient_core::ParseTimeError>(())
/// ```
///
/// # Errors
///
/// Returns an error if the API server would reject the text as a `Time`, or if it is after the year 9999 in UTC.
#[doc(alias = "metav1.Time")]
pub fn parse_time(text: &str) -> Result<Time, ParseTimeError> {
    parse(text, Fraction::Optional).map(Time)
}

/// Parses a [`MicroTime`], such as `2026-07-01T12:00:00.000000Z`.
///
/// The fraction must have six digits.
///
/// # Errors
///
/// Returns an error if the API server would reject the text as a `MicroTime`, or if it is after the year 9999 in UTC.
#[doc(alias = "metav1.MicroTime")]
pub fn parse_micro_time(text: &str) -> Result<MicroTime, ParseTimeError> {
    parse(text, Fraction::Micros).map(MicroTime)
}

/// Formats a [`Time`] in UTC, truncated to whole seconds.
pub fn format_time(time: &Time) -> String {
    let (mut text, _) = seconds(time.0);
    text.push('Z');
    text
}

/// Formats a [`MicroTime`] in UTC, truncated to whole microseconds.
pub fn format_micro_time(time: &MicroTime) -> String {
    let (text, nanos) = seconds(time.0);
    format!("{text}.{:06}Z", nanos / 1000)
}

/// Formats date and time of day, and returns the nanoseconds above it.
///
/// Servers format several times per object, so digits are written without the formatting machinery.
fn seconds(timestamp: Timestamp) -> (String, i32) {
    let at = Offset::UTC.to_datetime(timestamp);
    let mut text = String::with_capacity("2026-07-01T12:00:00.000000Z".len());
    let mut two = |number: i8, after: &str| {
        text.push(char::from(b'0' + (number / 10) as u8));
        text.push(char::from(b'0' + (number % 10) as u8));
        text.push_str(after);
    };
    // Timestamps are between the years -9999 and 9999. Negative ones are not valid in Kubernetes.
    let year = at.year().max(0);
    two((year / 100) as i8, "");
    two((year % 100) as i8, "-");
    two(at.month(), "-");
    two(at.day(), "T");
    two(at.hour(), ":");
    two(at.minute(), ":");
    two(at.second(), "");
    (text, at.subsec_nanosecond())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fraction {
    Optional,
    Micros,
}

fn parse(text: &str, fraction: Fraction) -> Result<Timestamp, ParseTimeError> {
    let mut reader = Reader { text, at: 0 };
    reader.timestamp(fraction).map_err(|(at, why)| ParseTimeError { text: text.to_owned(), at, why })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn timestamp(&mut self, fraction: Fraction) -> Result<Timestamp, Fault> {
        let year = self.number(4, 0..=9999, "expected a year of four digits")?;
        self.byte(b'-', "expected `-`")?;
        let month = self.number(2, 1..=12, "expected a month of two digits")?;
        self.byte(b'-', "expected `-`")?;
        let day_at = self.at;
        let day = self.number(2, 1..=31, "expected a day of two digits")?;
        self.byte(b'T', "expected `T`")?;
        let hour_digits = if self.digits() == 1 { 1 } else { 2 };
        let hour = self.number(hour_digits, 0..=23, "expected an hour from 0 to 23")?;
        self.byte(b':', "expected `:`")?;
        let minute = self.number(2, 0..=59, "expected a minute from 00 to 59")?;
        self.byte(b':', "expected `:`")?;
        let second = self.number(2, 0..=59, "expected a second from 00 to 59")?;
        let nanos = self.fraction(fraction)?;
        let offset = self.offset()?;
        if self.at < self.text.len() {
            return Err((self.at, "expected the end"));
        }

        // The narrowing is lossless, because the ranges above are within the types'.
        let date = civil::Date::new(year as i16, month as i8, day as i8).map_err(|_| (day_at, "no such day"))?;
        let time = civil::Time::new(hour as i8, minute as i8, second as i8, nanos).map_err(|_| (0, OUT_OF_RANGE))?;
        let utc = Offset::UTC.to_timestamp(date.to_datetime(time)).map_err(|_| (0, OUT_OF_RANGE))?;
        utc.checked_sub(SignedDuration::from_secs(offset)).map_err(|_| (0, OUT_OF_RANGE))
    }

    /// Parses nanoseconds. Digits beyond the ninth are dropped.
    fn fraction(&mut self, fraction: Fraction) -> Result<i32, Fault> {
        let start = self.at;
        let pointed = matches!(self.peek(), Some(b'.' | b','));
        self.at += usize::from(pointed);
        let digits = self.digits();
        match fraction {
            Fraction::Micros if !pointed || digits != 6 => {
                return Err((start, "expected a fraction of six digits, such as .000000"));
            }
            Fraction::Optional if !pointed || digits == 0 => {
                self.at = start;
                return Ok(0);
            }
            Fraction::Micros | Fraction::Optional => {}
        }
        let written = self.text[self.at..].bytes().take(digits);
        let nanos = written.chain(std::iter::repeat(b'0')).take(9);
        self.at += digits;
        Ok(nanos.fold(0, |nanos, digit| nanos * 10 + i32::from(digit - b'0')))
    }

    /// Parses an offset as seconds east of UTC.
    fn offset(&mut self) -> Result<i64, Fault> {
        const EXPECTED: &str = "expected Z or an offset such as +02:00";
        let sign = match self.peek() {
            Some(b'Z') => {
                self.at += 1;
                return Ok(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err((self.at, EXPECTED)),
        };
        self.at += 1;
        let hours = self.number(2, 0..=24, EXPECTED)?;
        self.byte(b':', EXPECTED)?;
        let minutes = self.number(2, 0..=60, EXPECTED)?;
        Ok(sign * i64::from(hours * 3600 + minutes * 60))
    }

    fn number(&mut self, digits: usize, range: std::ops::RangeInclusive<i32>, why: &'static str) -> Result<i32, Fault> {
        if self.digits() < digits {
            return Err((self.at, why));
        }
        let number = self.text[self.at..self.at + digits].parse().ok().filter(|number| range.contains(number));
        let number = number.ok_or((self.at, why))?;
        self.at += digits;
        Ok(number)
    }

    fn byte(&mut self, byte: u8, why: &'static str) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err((self.at, why));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns the number of digits at the current position.
    fn digits(&self) -> usize {
        self.text.bytes().skip(self.at).take_while(u8::is_ascii_digit).count()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// An error of parsing an instant, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTimeError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseTimeError {}

/// Byte offset and reason.
type Fault = (usize, &'static str);

const OUT_OF_RANGE: &str = "instant is out of range";
