//! Pointers into a JSON document (RFC 6901), as JSON patches use them.
//!
//! Only this module escapes keys: `/` and `~` in a label name must not become separators.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{FieldPath, PathSegment};

/// A location in a JSON document: `/metadata/labels/example.com~1team`.
///
/// ```
/// use klient_core::JsonPointer;
///
/// let label = JsonPointer::root().field("metadata").field("labels").field("example.com/team");
/// assert_eq!(label.to_string(), "/metadata/labels/example.com~1team");
/// assert_eq!(label.tokens().last().as_deref(), Some("example.com/team"));
/// assert_eq!(JsonPointer::root().field("finalizers").end().to_string(), "/finalizers/-");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct JsonPointer {
    // The escaped text: empty, or begins with `/`.
    text: String,
}

impl JsonPointer {
    /// Returns the pointer to the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Appends a key of an object.
    #[must_use]
    pub fn field(mut self, name: &str) -> Self {
        self.text.push('/');
        for c in name.chars() {
            match c {
                '~' => self.text.push_str("~0"),
                '/' => self.text.push_str("~1"),
                c => self.text.push(c),
            }
        }
        self
    }

    /// Appends the index of a list item, counted from zero.
    #[must_use]
    pub fn index(self, index: usize) -> Self {
        self.field(&index.to_string())
    }

    /// Appends the position after the last item of a list, to add an item.
    #[must_use]
    pub fn end(self) -> Self {
        self.field("-")
    }

    /// Returns the escaped text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Iterates over the unescaped segments from the root.
    pub fn tokens(&self) -> impl Iterator<Item = String> {
        // The part before the first `/` is empty.
        self.text.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"))
    }
}

impl From<&FieldPath> for JsonPointer {
    fn from(path: &FieldPath) -> Self {
        path.segments().iter().fold(Self::root(), |pointer, segment| match segment {
            PathSegment::Field(name) => pointer.field(name),
            PathSegment::Index(index) => pointer.index(*index),
        })
    }
}

impl FromStr for JsonPointer {
    type Err = ParseJsonPointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |at, why| Err(ParseJsonPointerError { text: text.to_owned(), at, why });
        if !text.is_empty() && !text.starts_with('/') {
            return fail(0, "expected `/` or nothing");
        }
        let bad_escape =
            text.match_indices('~').find(|(at, _)| !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
        match bad_escape {
            Some((at, _)) => fail(at, "expected `~0` or `~1`"),
            None => Ok(Self { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for JsonPointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for JsonPointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// An error of parsing a JSON pointer, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseJsonPointerError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseJsonPointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JSON pointer {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseJsonPointerError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pointer_is_created_from_a_field_path() {
        let path: FieldPath = "metadata.annotations['a/b~c'][0]".parse().unwrap();
        assert_eq!(JsonPointer::from(&path).to_string(), "/metadata/annotations/a~1b~0c/0");
    }

    #[test]
    fn parse_error_has_position_and_reason() {
        for (text, at, why) in [
            ("a", 0, "expected `/` or nothing"),
            ("/a~", 2, "expected `~0` or `~1`"),
            ("/~0/~2", 4, "expected `~0` or `~1`"),
        ] {
            let error = text.parse::<JsonPointer>().unwrap_err();
            assert_eq!(error.to_string(), format!("JSON pointer {text:?} at byte {at}: {why}"));
        }
    }

    proptest! {
        #[test]
        fn pointer_finds_any_keys(keys in prop::collection::vec("[/~0-1a\\-.é]{0,4}", 0..5)) {
            let pointer = keys.iter().fold(JsonPointer::root(), |pointer, key| pointer.field(key));
            prop_assert_eq!(pointer.tokens().collect::<Vec<_>>(), keys.clone());
            prop_assert_eq!(pointer.as_str().parse::<JsonPointer>().unwrap(), pointer.clone());
            let document = keys.iter().rev().fold(json!("here"), |value, key| json!({key: value}));
            prop_assert_eq!(document.pointer(pointer.as_str()).and_then(Value::as_str), Some("here"));
        }

        #[test]
        fn parsing_never_panics(text in "[/~01a]{0,8}|.{0,8}") {
            if let Ok(pointer) = text.parse::<JsonPointer>() {
                prop_assert_eq!(pointer.to_string(), text);
            }
        }
    }
}
