//! Versions of stored objects, and the version that a request requires.
//!
//! A version is opaque except for its order: versions of one resource are decimal numbers and may be compared
//! (KEP-5504). Versions that are not numbers cannot be compared. Versions of different resources must not be compared.
//! In client-go: `util/resourceversion`.

use std::{cmp::Ordering, fmt};

use serde::{Deserialize, Serialize};

use crate::InvalidOptionError;

/// The version of an object or of a whole list, as sent by a server.
///
/// ```
/// use std::cmp::Ordering;
/// use klient_core::ResourceVersion;
///
/// let (old, new) = (ResourceVersion::from("999"), ResourceVersion::from("1000"));
/// assert_eq!(old.compare(&new), Some(Ordering::Less));
/// assert_eq!(old.compare(&ResourceVersion::from("abc")), None);
/// ```
// There is no `PartialOrd`: two equal versions that are not numbers would be equal, but not comparable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceVersion(String);

impl ResourceVersion {
    /// Returns the version as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether there is no version, as in an object that was never stored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares two versions of one resource. Returns `None` if either is not a number.
    ///
    /// A number has any length and no leading zero, and is not zero.
    #[doc(alias = "CompareResourceVersion")]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        Self::compare_texts(&self.0, &other.0)
    }

    /// Compares the texts of two versions; see [`compare`](Self::compare).
    pub fn compare_texts(a: &str, b: &str) -> Option<Ordering> {
        let (a, b) = (digits(a)?, digits(b)?);
        // Without leading zeros, the longer number is greater, and texts of equal length compare like numbers.
        Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
    }

    /// Returns whether this version is known to be later than the other.
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

/// The required version of a read.
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
    /// The most recent state: the server reads its store, or waits for its cache to catch up.
    #[default]
    MostRecent,
    /// Any state in the server's cache, however old. This is the cheapest.
    Any,
    /// At least this version. The server waits briefly for it, then responds with a timeout.
    NotOlderThan(ResourceVersion),
    /// Exactly this version, unless it has expired.
    Exact(ResourceVersion),
}

/// The two query parameters, either of which may be absent.
pub(crate) type VersionQuery<'a> = (Option<&'a str>, Option<&'static str>);

const NOT_OLDER_THAN: Option<&str> = Some("NotOlderThan");
const EXACT: Option<&str> = Some("Exact");

impl VersionMatch {
    /// Returns the `resourceVersion` of a get, which has no `resourceVersionMatch`.
    pub(crate) fn for_get(&self) -> Result<VersionQuery<'_>, InvalidOptionError> {
        match self {
            Self::Exact(_) => Err(invalid("a get does not support an exact version")),
            Self::MostRecent => Ok((None, None)),
            Self::Any => Ok((Some("0"), None)),
            Self::NotOlderThan(version) => Ok((Some(nonzero(version)?), None)),
        }
    }

    /// Returns the parameters of a list. The token of a page determines its version.
    pub(crate) fn for_list(&self, continues: bool) -> Result<VersionQuery<'_>, InvalidOptionError> {
        match self {
            Self::NotOlderThan(_) | Self::Exact(_) if continues => {
                Err(invalid("cannot be set together with a continue token, which has its own version"))
            }
            Self::Any if continues => Ok((None, None)),
            Self::MostRecent => Ok((None, None)),
            // Without a match, which all servers understand.
            Self::Any => Ok((Some("0"), None)),
            Self::NotOlderThan(version) => Ok((Some(nonzero(version)?), NOT_OLDER_THAN)),
            Self::Exact(version) => Ok((Some(nonzero(version)?), EXACT)),
        }
    }

    /// Returns the parameters of a watch. `NotOlderThan` requires `send_initial_events`, and the other way round.
    pub(crate) fn for_watch(&self, send_initial_events: Option<bool>) -> Result<VersionQuery<'_>, InvalidOptionError> {
        let matching = send_initial_events.and(NOT_OLDER_THAN);
        match (self, send_initial_events) {
            (Self::MostRecent, _) => Ok((None, matching)),
            (Self::Any, _) => Ok((Some("0"), matching)),
            (Self::NotOlderThan(version), Some(_)) => Ok((Some(nonzero(version)?), matching)),
            (Self::Exact(version), None) => Ok((Some(nonzero(version)?), None)),
            (Self::NotOlderThan(_), None) => {
                Err(invalid("a watch without initial events requires `Exact` or `MostRecent`"))
            }
            (Self::Exact(_), Some(_)) => Err(invalid("initial events require `NotOlderThan` instead of `Exact`")),
        }
    }
}

fn nonzero(version: &ResourceVersion) -> Result<&str, InvalidOptionError> {
    match version.as_str() {
        "" => Err(invalid("is empty: use `MostRecent` for no version")),
        "0" => Err(invalid("is \"0\": use `Any`")),
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
    fn versions_of_any_length_are_compared() {
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
    fn each_verb_accepts_the_versions_that_servers_accept() {
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
        fn comparison_agrees_with_integers(a in 1u64.., b in 1u64..) {
            prop_assert_eq!(ResourceVersion::from(a).compare(&b.into()), Some(a.cmp(&b)));
        }

        #[test]
        fn comparing_never_panics(a in ".{0,8}", b in ".{0,8}") {
            let (a, b) = (ResourceVersion::from(a), ResourceVersion::from(b));
            prop_assert_eq!(a.compare(&b), b.compare(&a).map(Ordering::reverse));
        }
    }
}
