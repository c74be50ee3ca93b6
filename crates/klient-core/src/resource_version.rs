//! Versions of stored objects: the value that a server gives, and what a request may ask for.
//!
//! A version is opaque except for its order: servers promise that versions of one resource are decimal numbers and may
//! be compared (KEP-5504); a server that breaks this gives versions that compare with nothing. Versions of different
//! resources must not be compared. In client-go: `util/resourceversion`.

use std::{cmp::Ordering, fmt};

use serde::{Deserialize, Serialize};

use crate::InvalidOptionError;

/// The version of an object or of a whole list, as a server gave it.
///
/// ```
/// use std::cmp::Ordering;
/// use klient_core::ResourceVersion;
///
/// let (old, new) = (ResourceVersion::from("999"), ResourceVersion::from("1000"));
/// assert_eq!(old.compare(&new), Some(Ordering::Less));
/// assert_eq!(old.compare(&ResourceVersion::from("abc")), None);
/// ```
// There is no `PartialOrd`: two equal versions that are not numbers would be equal and yet incomparable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceVersion(String);

impl ResourceVersion {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is no version: objects that were never stored have none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Which of two versions of one resource is the later; nothing, if either is not a number.
    ///
    /// Numbers have any length, no leading zero and are not zero, which no stored object has as its version.
    #[doc(alias = "CompareResourceVersion")]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        Self::compare_texts(&self.0, &other.0)
    }

    /// [`compare`](Self::compare) for versions that are still part of something else.
    pub fn compare_texts(a: &str, b: &str) -> Option<Ordering> {
        let (a, b) = (digits(a)?, digits(b)?);
        // Without leading zeros the longer number is the greater, and texts of one length compare as numbers do.
        Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
    }

    /// Whether this version is certainly later than the other.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }
}

fn digits(text: &str) -> Option<&str> {
    let number = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    number.then_some(text)
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl From<ResourceVersion> for String {
    fn from(version: ResourceVersion) -> Self {
        version.0
    }
}

impl AsRef<str> for ResourceVersion {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// How fresh the data of a read must be.
///
/// | | get | list | watch |
/// |---|---|---|---|
/// | `MostRecent` | yes | yes | current state first |
/// | `Any` | yes | yes | some state first |
/// | `NotOlderThan` | yes | yes | only with initial events |
/// | `Exact` | no | yes | changes after it, without initial events |
#[doc(alias = "ResourceVersionMatch")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// What is stored now: the server reads its store, or waits for its cache to catch up.
    #[default]
    MostRecent,
    /// Whatever the server has at hand, however old. The cheapest.
    Any,
    /// At least this version; the server waits a moment for it, then answers with a timeout.
    NotOlderThan(ResourceVersion),
    /// Exactly this version, if the server still has it.
    Exact(ResourceVersion),
}

/// The two query parameters, either of which may be absent.
pub(crate) type VersionQuery<'a> = (Option<&'a str>, Option<&'static str>);

const NOT_OLDER_THAN: Option<&str> = Some("NotOlderThan");
const EXACT: Option<&str> = Some("Exact");

impl VersionMatch {
    /// `resourceVersion` of a get, which has no `resourceVersionMatch`.
    pub(crate) fn for_get(&self) -> Result<VersionQuery<'_>, InvalidOptionError> {
        match self {
            Self::Exact(_) => Err(invalid("a get cannot ask for an exact version")),
            Self::MostRecent => Ok((None, None)),
            Self::Any => Ok((Some("0"), None)),
            Self::NotOlderThan(version) => Ok((Some(nonzero(version)?), None)),
        }
    }

    /// Parameters of a list; those of a page that continues another are fixed by its token.
    pub(crate) fn for_list(&self, continues: bool) -> Result<VersionQuery<'_>, InvalidOptionError> {
        match self {
            Self::NotOlderThan(_) | Self::Exact(_) if continues => {
                Err(invalid("a page that continues a list has the version of that list"))
            }
            Self::Any if continues => Ok((None, None)),
            Self::MostRecent => Ok((None, None)),
            // Without a match, as servers have always understood it so.
            Self::Any => Ok((Some("0"), None)),
            Self::NotOlderThan(version) => Ok((Some(nonzero(version)?), NOT_OLDER_THAN)),
            Self::Exact(version) => Ok((Some(nonzero(version)?), EXACT)),
        }
    }

    /// Parameters of a watch. One with a word on initial events must say `NotOlderThan`, one without must not.
    pub(crate) fn for_watch(&self, send_initial_events: Option<bool>) -> Result<VersionQuery<'_>, InvalidOptionError> {
        let matching = send_initial_events.and(NOT_OLDER_THAN);
        match (self, send_initial_events) {
            (Self::MostRecent, _) => Ok((None, matching)),
            (Self::Any, _) => Ok((Some("0"), matching)),
            (Self::NotOlderThan(version), Some(_)) => Ok((Some(nonzero(version)?), matching)),
            (Self::Exact(version), None) => Ok((Some(nonzero(version)?), None)),
            (Self::NotOlderThan(_), None) => {
                Err(invalid("a watch without initial events starts at an exact version, or at none"))
            }
            (Self::Exact(_), Some(_)) => {
                Err(invalid("initial events have a version not older than one, not exactly one"))
            }
        }
    }
}

fn nonzero(version: &ResourceVersion) -> Result<&str, InvalidOptionError> {
    match version.as_str() {
        "" => Err(invalid("the version is empty: say `MostRecent` for no version")),
        "0" => Err(invalid("\"0\" is no version: say `Any`")),
        text => Ok(text),
    }
}

fn invalid(why: &'static str) -> InvalidOptionError {
    InvalidOptionError::new("resourceVersion", why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn compares_numbers_of_any_length() {
        for (a, b, expected) in [
            ("1", "2", Some(Ordering::Less)),
            ("9", "10", Some(Ordering::Less)),
            ("18446744073709551616", "18446744073709551615", Some(Ordering::Greater)),
            ("7", "7", Some(Ordering::Equal)),
            ("", "7", None),
            ("0", "7", None),
            ("07", "7", None),
            ("7", "-7", None),
            ("7", "٧", None),
            ("x", "x", None),
        ] {
            assert_eq!(ResourceVersion::from(a).compare(&b.into()), expected, "{a} {b}");
        }
    }

    #[test]
    fn each_verb_takes_what_a_server_takes() {
        use VersionMatch::{Any, Exact, MostRecent, NotOlderThan};
        let show = |query: Result<VersionQuery<'_>, InvalidOptionError>| match query {
            Ok((version, matching)) => format!("{}/{}", version.unwrap_or("-"), matching.unwrap_or("-")),
            Err(_) => "refused".to_owned(),
        };
        for (version, get, list, page, watch, watch_list) in [
            (MostRecent, "-/-", "-/-", "-/-", "-/-", "-/NotOlderThan"),
            (Any, "0/-", "0/-", "-/-", "0/-", "0/NotOlderThan"),
            (NotOlderThan("5".into()), "5/-", "5/NotOlderThan", "refused", "refused", "5/NotOlderThan"),
            (Exact("5".into()), "refused", "5/Exact", "refused", "5/-", "refused"),
            (NotOlderThan("0".into()), "refused", "refused", "refused", "refused", "refused"),
            (Exact("".into()), "refused", "refused", "refused", "refused", "refused"),
        ] {
            assert_eq!(show(version.for_get()), get, "{version:?}");
            assert_eq!(show(version.for_list(false)), list, "{version:?}");
            assert_eq!(show(version.for_list(true)), page, "{version:?}");
            assert_eq!(show(version.for_watch(None)), watch, "{version:?}");
            assert_eq!(show(version.for_watch(Some(true))), watch_list, "{version:?}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_integers(a in 1u64.., b in 1u64..) {
            prop_assert_eq!(ResourceVersion::from(a).compare(&b.into()), Some(a.cmp(&b)));
        }

        #[test]
        fn comparing_never_panics(a in ".{0,8}", b in ".{0,8}") {
            let (a, b) = (ResourceVersion::from(a), ResourceVersion::from(b));
            prop_assert_eq!(a.compare(&b), b.compare(&a).map(Ordering::reverse));
        }
    }
}
