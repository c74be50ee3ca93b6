//! Recorded bytes of one object, with placeholders of fixed width for name, uid and version; and for
//! the time at which a change is sent.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};

/// The digit of placeholders.
pub(crate) const NAME: &str = "web-999999";
pub(crate) const UID: &str = "00000000-0000-4000-8000-777777777777";
pub(crate) const VERSION: &str = "9999999999";
/// The placeholder of the time in an annotation, in nanoseconds of Unix time.
const TIME: &str = "8888888888888888888";

/// The first resource version of unchanged objects. All versions have the same width.
pub(crate) const FIRST_VERSION: u64 = 1_000_000_000;

pub(crate) struct Template {
    bytes: Vec<u8>,
    /// The end positions of the digits. A bookmark has a version only.
    name: Option<usize>,
    uid: Option<usize>,
    version: usize,
    /// `None` for objects that were never changed.
    time: Option<usize>,
}

impl Template {
    /// Creates a template from an object or an event.
    pub(crate) fn object(bytes: Vec<u8>) -> Result<Self> {
        let (name, uid) = (Some(end_of(&bytes, NAME)?), Some(end_of(&bytes, UID)?));
        Ok(Self { version: end_of(&bytes, VERSION)?, time: end_of(&bytes, TIME).ok(), name, uid, bytes })
    }

    pub(crate) fn bookmark(bytes: Vec<u8>) -> Result<Self> {
        Ok(Self { version: end_of(&bytes, VERSION)?, time: None, name: None, uid: None, bytes })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the object with a number, changed at a time.
    pub(crate) fn write_changed(&self, number: usize, version: u64, at: SystemTime, out: &mut Vec<u8>) {
        let start = out.len();
        self.write(number, version, out);
        if let Some(end) = self.time {
            let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            digits(&mut out[start..start + end], 19, u64::try_from(at.as_nanos()).unwrap_or_default());
        }
    }

    /// Appends the object with a number.
    pub(crate) fn write(&self, number: usize, version: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let object = &mut out[start..];
        let number = number as u64;
        if let Some(end) = self.name {
            digits(&mut object[..end], 6, number);
        }
        if let Some(end) = self.uid {
            digits(&mut object[..end], 12, number);
        }
        digits(&mut object[..self.version], 10, version);
    }
}

/// Writes a number into the last bytes.
fn digits(bytes: &mut [u8], width: usize, mut number: u64) {
    for byte in bytes.iter_mut().rev().take(width) {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Returns the end of a text that must occur exactly once.
fn end_of(bytes: &[u8], text: &str) -> Result<usize> {
    let mut found = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
    let (at, _) = found.next().with_context(|| format!("no place for {text}"))?;
    ensure!(found.next().is_none(), "two places for {text}");
    Ok(at + text.len())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn fills_the_places_and_nothing_else() {
        let template = Template::object(format!("<{NAME} {UID} {VERSION}>").into_bytes()).unwrap();
        let mut out = b"before ".to_vec();
        template.write(42, FIRST_VERSION + 7, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "before <web-000042 00000000-0000-4000-8000-000000000042 1000000007>");
    }

    #[test]
    fn a_change_is_stamped_with_the_time_it_was_due_at() {
        let template = Template::object(format!("{NAME} {UID} {VERSION} {TIME}").into_bytes()).unwrap();
        let mut out = b"before ".to_vec();
        template.write_changed(1, FIRST_VERSION, UNIX_EPOCH + Duration::from_millis(1500), &mut out);
        assert!(out.ends_with(b" 1000000000 0000000001500000000"), "{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn refuses_bytes_without_places() {
        assert!(Template::object(b"nothing".to_vec()).is_err());
        assert!(Template::bookmark(format!("{VERSION} {VERSION}").into_bytes()).is_err());
    }
}
