//! Paths to a value inside an object, such as `spec.nodeName` or `metadata.labels['app']`.
//!
//! A path selects one value: there are no wildcards and no filters.

use std::{fmt, str::FromStr};

/// A path to one value inside an object.
///
/// Segments are field names joined by dots, `['key']` for map keys that contain dots or slashes, and `[0]` for list
/// items.
///
/// ```
/// use klient_core::{FieldPath, PathSegment};
///
/// let path: FieldPath = "spec.containers[0].image".parse()?;
/// assert_eq!(path.segments()[1], PathSegment::Field("containers".into()));
/// assert_eq!(path.segments()[2], PathSegment::Index(0));
/// assert_eq!("metadata.labels['app.kubernetes.io/name']".parse::<FieldPath>()?.segments().len(), 3);
/// # Ok::<(), klient_core::ParseFieldPathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    segments: Vec<PathSegment>,
}

/// One segment of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathSegment {
    /// A field of a struct or a key of a map.
    Field(String),
    /// An item of a list, counted from zero.
    Index(usize),
}

impl FieldPath {
    /// Returns the segments, outermost first. There is at least one.
    pub fn segments(&self) -> &[PathSegment] {
        &self.segments
    }
}

impl FromStr for FieldPath {
    type Err = ParseFieldPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |at: usize, why: &'static str| ParseFieldPathError { text: text.to_owned(), at, why };
        let mut segments = Vec::new();
        // kubectl writes a leading dot (`.spec.nodeName`).
        let mut at = usize::from(text.starts_with('.'));
        loop {
            let rest = &text[at..];
            if let Some(inner) = rest.strip_prefix('[') {
                let (segment, consumed) = parse_bracket(inner).map_err(|(offset, why)| fail(at + 1 + offset, why))?;
                segments.push(segment);
                at += 1 + consumed;
            } else {
                let len = rest.find(['.', '[', ']', '\'', '"']).unwrap_or(rest.len());
                if len == 0 {
                    return Err(fail(
                        at,
                        if rest.is_empty() { "expected a field name" } else { "unexpected character" },
                    ));
                }
                segments.push(PathSegment::Field(rest[..len].to_owned()));
                at += len;
            }
            match text[at..].chars().next() {
                None => return Ok(Self { segments }),
                Some('.') => at += 1,
                Some('[') => {}
                Some(_) => return Err(fail(at, "expected `.`, `[` or the end")),
            }
        }
    }
}

/// Parses the text after `[`, up to and including `]`, and returns the number of bytes used.
fn parse_bracket(inner: &str) -> Result<(PathSegment, usize), (usize, &'static str)> {
    if let Some(quote @ ('\'' | '"')) = inner.chars().next() {
        let Some(len) = inner[1..].find(quote) else { return Err((0, "quote is not closed")) };
        if !inner[len + 2..].starts_with(']') {
            return Err((len + 2, "expected `]`"));
        }
        return Ok((PathSegment::Field(inner[1..=len].to_owned()), len + 3));
    }
    let Some(len) = inner.find(']') else { return Err((0, "`[` is not closed")) };
    match inner[..len].parse() {
        Ok(index) if !inner.starts_with('+') => Ok((PathSegment::Index(index), len + 1)),
        _ => Err((0, "expected an index such as [0] or a quoted key such as ['app']")),
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            match segment {
                PathSegment::Index(index) => write!(f, "[{index}]")?,
                PathSegment::Field(name) if name.is_empty() || name.contains(['.', '[', ']', '\'', '"']) => {
                    let quote = if name.contains('\'') { '"' } else { '\'' };
                    write!(f, "[{quote}{name}{quote}]")?;
                }
                PathSegment::Field(name) if position == 0 => f.write_str(name)?,
                PathSegment::Field(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

/// An error of parsing a field path, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFieldPathError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseFieldPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field path {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseFieldPathError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_path_prints_as_parsed() {
        for text in ["spec.nodeName", "spec.containers[0].image", "metadata.labels['a.b/c']", "['it.s'][3][\"a'b\"].x"]
        {
            assert_eq!(text.parse::<FieldPath>().unwrap().to_string(), text);
        }
        assert_eq!(".spec.x".parse::<FieldPath>().unwrap().to_string(), "spec.x");
    }

    #[test]
    fn parse_error_has_position_and_reason() {
        for (text, at, why) in [
            ("", 0, "expected a field name"),
            ("spec.", 5, "expected a field name"),
            ("spec..x", 5, "unexpected character"),
            ("a[", 2, "`[` is not closed"),
            ("a[x]", 2, "expected an index such as [0] or a quoted key such as ['app']"),
            ("a[+1]", 2, "expected an index such as [0] or a quoted key such as ['app']"),
            ("a['x]", 2, "quote is not closed"),
            ("a['x'y]", 5, "expected `]`"),
            ("a]", 1, "expected `.`, `[` or the end"),
            ("a[0]b", 4, "expected `.`, `[` or the end"),
        ] {
            let error = text.parse::<FieldPath>().unwrap_err();
            assert_eq!((error.at, error.why), (at, why), "{text}");
        }
    }
}
