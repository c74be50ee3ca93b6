//! The error of every decoder in this crate: what was wrong, at which byte, in which field.

use std::fmt;

use crate::descriptor::{Descriptor, Shape};

/// Bytes that are not what they should be.
///
/// Says what was wrong, at which byte, and, once a typed decoder knows, in which field of which kind.
/// It never repeats the bytes themselves: they may be a Secret's.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError {
    inner: Box<Inner>,
}

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    problem: Problem,
    offset: usize,
    /// From the innermost field outwards, while the error travels up.
    path: Vec<Step>,
    /// The kind, and the path in words.
    place: Option<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(u32),
    Index(usize),
}

/// What can be wrong with bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes end inside a value.
    Truncated,
    /// A number is longer than ten bytes, or a field number is zero or too large.
    BadVarint,
    /// A field has a wire type that its type does not allow.
    WrongWireType,
    /// A text is not UTF-8.
    NotUtf8,
    /// A time is outside the years that can be represented.
    BadTime,
    /// Messages or JSON values are nested deeper than the limit.
    TooDeep,
    /// A value is larger than the limit, or the decoded form would be.
    TooLarge,
    /// The bytes do not start with the `k8s` envelope.
    NoEnvelope,
    /// The envelope names another kind, or another encoding, than was asked for.
    WrongKind(String),
    /// JSON, or JSON inside protobuf, does not parse: the reason.
    Json(String),
    /// A gzip body does not decompress: the reason.
    Gzip(String),
    /// The protobuf form of this kind is not known.
    NoCodec(String),
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(problem: Problem, offset: usize) -> Self {
        Self { inner: Box::new(Inner { problem, offset, path: Vec::new(), place: None }) }
    }

    /// What was wrong.
    pub fn problem(&self) -> &Problem {
        &self.inner.problem
    }

    /// Returns the byte at which it was noticed, counted from the start of the object or body.
    pub fn offset(&self) -> usize {
        self.inner.offset
    }

    /// Returns the field it is in, such as `spec.containers[1].image`, where a typed decoder found it.
    pub fn field(&self) -> Option<&str> {
        self.inner.place.as_ref().map(|(_, field)| field.as_str())
    }

    #[cold]
    pub(crate) fn within(mut self, number: u32) -> Self {
        self.inner.path.push(Step::Field(number));
        self
    }

    #[cold]
    pub(crate) fn at_index(mut self, index: usize) -> Self {
        self.inner.path.push(Step::Index(index));
        self
    }

    #[cold]
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.inner.offset += by;
        self
    }

    /// Puts the path of field numbers into words.
    #[cold]
    pub(crate) fn of_kind(mut self, kind: &'static str, root: &'static Descriptor) -> Self {
        let mut text = String::new();
        let mut fields = Some(root.fields);
        let mut steps = self.inner.path.iter().rev();
        while let Some(step) = steps.next() {
            match step {
                Step::Index(index) => text.push_str(&format!("[{index}]")),
                Step::Field(number) => {
                    let field = fields.and_then(|fields| fields.iter().find(|field| field.number == *number));
                    let name = field.map_or_else(|| format!("#{number}"), |field| field.name.to_owned());
                    if !name.is_empty() {
                        text.push_str(if text.is_empty() { "" } else { "." });
                        text.push_str(&name);
                    }
                    if field.is_some_and(|field| field.shape == Shape::Map) {
                        // The next step is the key or the value of an entry, which has no name.
                        steps.next();
                    }
                    fields = field.and_then(|field| field.ty.fields());
                }
            }
        }
        self.inner.place = Some((kind, text));
        self
    }
}

/// What serde says about JSON, without the values that it likes to quote.
#[cold]
pub(crate) fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // About syntax it speaks in its own words; about data, of fields that our types name, or of what it found.
    if !error.is_data() || SAFE_REASONS.iter().any(|reason| text.starts_with(reason)) {
        return text;
    }
    let place = format!(" at line {} column {}", error.line(), error.column());
    let (text, place) = text.strip_suffix(&place).map_or((text.as_str(), ""), |text| (text, place.as_str()));
    let expected = match text.rfind(", expected ") {
        Some(at) if text.starts_with("invalid ") => &text[at..],
        _ => "",
    };
    format!("unexpected value{expected}{place}")
}

const SAFE_REASONS: [&str; 2] = ["missing field ", "expected PartialObjectMetadata, got "];

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((kind, field)) = &self.inner.place {
            write!(f, "{kind}")?;
            if !field.is_empty() {
                write!(f, " field {field}")?;
            }
            f.write_str(": ")?;
        }
        match &self.inner.problem {
            Problem::Truncated => f.write_str("bytes end inside a value")?,
            Problem::BadVarint => f.write_str("malformed number or field key")?,
            Problem::WrongWireType => f.write_str("wrong protobuf wire type for this field")?,
            Problem::NotUtf8 => f.write_str("text is not UTF-8")?,
            Problem::BadTime => f.write_str("time is out of range")?,
            Problem::TooDeep => f.write_str("values are nested too deeply")?,
            Problem::TooLarge => f.write_str("value is larger than the limit")?,
            Problem::NoEnvelope => f.write_str("no `k8s` protobuf envelope")?,
            Problem::WrongKind(found) => write!(f, "unexpected content {found}")?,
            Problem::Json(reason) => write!(f, "malformed JSON: {reason}")?,
            Problem::Gzip(reason) => write!(f, "malformed gzip: {reason}")?,
            Problem::NoCodec(kind) => write!(f, "{kind} has no protobuf codec; ask for JSON")?,
        }
        write!(f, " at byte {}", self.inner.offset)
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DecodeError({self})")
    }
}

impl std::error::Error for DecodeError {}
