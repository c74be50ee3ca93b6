//! The error of every decoder in this crate: the problem, the byte offset, and the field.

use std::fmt;

use crate::descriptor::{Descriptor, Shape};

/// An error of decoding bytes.
///
/// It has the problem, the byte offset and, if a typed decoder knows it, the field and the kind.
/// It never contains the bytes themselves, because they may be a Secret's.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError {
    inner: Box<Inner>,
}

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    problem: Problem,
    offset: usize,
    /// The path from the innermost field outwards, while the error is passed up.
    path: Vec<Step>,
    /// The kind, and the path as text.
    place: Option<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(u32),
    Index(usize),
}

/// The problem of malformed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes end inside a value.
    Truncated,
    /// A number is longer than ten bytes, or a field number is zero or too large.
    BadVarint,
    /// A field has a wire type that its type does not allow.
    WrongWireType,
    /// A string is not UTF-8.
    NotUtf8,
    /// A time is outside the years that can be represented.
    BadTime,
    /// Messages or JSON values are nested deeper than the limit.
    TooDeep,
    /// A value is larger than the limit, or would be once decoded.
    TooLarge,
    /// The bytes do not begin with the `k8s` envelope.
    NoEnvelope,
    /// The envelope has another kind, or another encoding, than requested.
    WrongKind(String),
    /// JSON, or JSON inside protobuf, is malformed, with the reason.
    Json(String),
    /// A gzip body is malformed, with the reason.
    Gzip(String),
    /// The kind has no protobuf codec.
    NoCodec(String),
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(problem: Problem, offset: usize) -> Self {
        Self { inner: Box::new(Inner { problem, offset, path: Vec::new(), place: None }) }
    }

    /// Returns the problem.
    pub fn problem(&self) -> &Problem {
        &self.inner.problem
    }

    /// Returns the byte offset, counted from the start of the object or body.
    pub fn offset(&self) -> usize {
        self.inner.offset
    }

    /// Returns the field, such as `spec.containers[1].image`, if a typed decoder found the error.
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

    /// Converts the path of field numbers to text.
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

/// Returns serde's message about JSON, without the values that it quotes.
#[cold]
pub(crate) fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // Messages about syntax contain no data. Messages about data contain field names or the value that was found.
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

const SAFE_REASONS: [&str; 2] = ["missing field ", "expected PartialObjectMetadata, found "];

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
            Problem::NoCodec(kind) => write!(f, "{kind} has no protobuf codec: use JSON")?,
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
