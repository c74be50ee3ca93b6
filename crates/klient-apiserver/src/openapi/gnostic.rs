//! The protobuf form of documents, which are the messages of gnostic's `OpenAPIv2.proto` and `OpenAPIv3.proto`.
//!
//! The tables have the members that documents of an API server can have. Other members are left out.

mod tables;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Version, yaml};

/// A message: its members, and the field of its extensions (`x-...`).
struct Message {
    members: &'static [Member],
    extensions: Option<u32>,
}

/// A member of a JSON object, its field number and its form.
type Member = (&'static str, u32, Form);

/// The form of a field.
enum Form {
    Text,
    Flag,
    Integer,
    Float,
    Texts,
    /// Any value, as YAML.
    Any,
    Anys,
    One(&'static Message),
    Many(&'static Message),
    /// An extension, as the YAML that a function returns.
    Extension(fn(&Value) -> String),
    /// A message that is one of several, in a message with one field for each.
    Choice(Choose),
    Choices(Choose),
    /// A message with one list, of pairs of a name and a value, in this field.
    Map(u32, &'static Form),
    /// A message with one list of messages that are one of several. The document has a single one.
    Items(&'static Form),
    /// A message with a list of texts. The document has a single one, or several.
    Types,
    /// A default, which is a number, a flag or a text. Others are empty messages.
    Scalar,
    /// Security requirements: lists of texts by name.
    Requirements,
}

/// Returns the field and the message of a value that is one of several.
type Choose = fn(&Value) -> (u32, Chosen);

/// The form of a chosen value.
enum Chosen {
    Message(&'static Message),
    Nested(Choose),
    Flag,
}

/// Encodes a JSON document.
pub(super) fn encode(document: &[u8], version: Version) -> Bytes {
    let message = match version {
        Version::Two => &tables::DOCUMENT_V2,
        Version::Three => &tables::DOCUMENT_V3,
    };
    let document: Value = serde_json::from_slice(document).unwrap_or_default();
    let mut out = Vec::new();
    message.write(&document, &mut out);
    out.into()
}

impl Message {
    fn write(&self, value: &Value, out: &mut Vec<u8>) {
        let Value::Object(fields) = value else { return };
        for (name, number, form) in self.members {
            // Paths and responses are the members of their object.
            if name.is_empty() {
                form.write_rest(*number, fields, self.members, out);
            } else if let Some(value) = fields.get(*name) {
                form.write(*number, value, out);
            }
        }
        let Some(number) = self.extensions else { return };
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
            let print = self.members.iter().find_map(|(known, _, form)| match form {
                Form::Extension(print) if known == name => Some(*print),
                _ => None,
            });
            let yaml = print.unwrap_or(yaml::print)(value);
            named(number, name, out, |out| nested(2, out, |out| text(2, &yaml, out)));
        }
    }
}

impl Form {
    fn write(&self, number: u32, value: &Value, out: &mut Vec<u8>) {
        match self {
            Self::Text => text(number, value.as_str().unwrap_or_default(), out),
            Self::Flag => flag(number, value == true, out),
            Self::Integer => integer(number, value.as_i64().unwrap_or_default(), out),
            Self::Float => float(number, value.as_f64().unwrap_or_default(), out),
            Self::Texts => texts(number, value, out),
            Self::Any => nested(number, out, |out| text(2, &yaml::print(value), out)),
            // Extensions are written after all others.
            Self::Extension(_) => {}
            Self::Anys => list(value).for_each(|item| Self::Any.write(number, item, out)),
            Self::One(message) => nested(number, out, |out| message.write(value, out)),
            Self::Many(message) => list(value).for_each(|item| nested(number, out, |out| message.write(item, out))),
            Self::Choice(choose) => nested(number, out, |out| chosen(*choose, value, out)),
            Self::Choices(choose) => list(value).for_each(|item| nested(number, out, |out| chosen(*choose, item, out))),
            Self::Map(inner, form) => nested(number, out, |out| {
                for (name, value) in value.as_object().into_iter().flatten() {
                    named(*inner, name, out, |out| form.write(2, value, out));
                }
            }),
            Self::Items(form) => nested(number, out, |out| form.write(1, value, out)),
            Self::Types => nested(number, out, |out| match value {
                Value::String(one) => required_text(1, one, out),
                several => texts(1, several, out),
            }),
            Self::Scalar => nested(number, out, |out| match value {
                Value::Number(value) => required_float(1, value.as_f64().unwrap_or_default(), out),
                Value::Bool(value) => required_flag(2, *value, out),
                Value::String(value) => required_text(3, value, out),
                _ => {}
            }),
            Self::Requirements => list(value).for_each(|requirement| {
                nested(number, out, |out| {
                    for (name, value) in requirement.as_object().into_iter().flatten() {
                        named(1, name, out, |out| nested(2, out, |out| texts(1, value, out)));
                    }
                });
            }),
        }
    }

    /// Writes the members of an object that are neither extensions nor other members, each as a pair of its name and value.
    fn write_rest(&self, number: u32, fields: &Map<String, Value>, members: &[Member], out: &mut Vec<u8>) {
        let is_other = |name: &str| name.starts_with("x-") || members.iter().any(|member| member.0 == name);
        for (name, value) in fields.iter().filter(|(name, _)| !is_other(name)) {
            named(number, name, out, |out| self.write(2, value, out));
        }
    }
}

fn chosen(choose: Choose, value: &Value, out: &mut Vec<u8>) {
    let (number, form) = choose(value);
    match form {
        Chosen::Message(message) => nested(number, out, |out| message.write(value, out)),
        Chosen::Nested(choose) => nested(number, out, |out| chosen(choose, value, out)),
        Chosen::Flag => required_flag(number, value == true, out),
    }
}

/// Writes a pair of a name and a value.
fn named(number: u32, name: &str, out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    nested(number, out, |out| {
        text(1, name, out);
        value(out);
    });
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(number: u32, value: &Value, out: &mut Vec<u8>) {
    list(value).for_each(|item| required_text(number, item.as_str().unwrap_or_default(), out));
}

fn nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    bytes(number, &inner, out);
}

fn text(number: u32, value: &str, out: &mut Vec<u8>) {
    if !value.is_empty() {
        required_text(number, value, out);
    }
}

/// Writes a text that is present even if it is empty: items of lists and chosen values are.
fn required_text(number: u32, value: &str, out: &mut Vec<u8>) {
    bytes(number, value.as_bytes(), out);
}

fn bytes(number: u32, value: &[u8], out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | 2), out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn flag(number: u32, value: bool, out: &mut Vec<u8>) {
    if value {
        required_flag(number, value, out);
    }
}

fn required_flag(number: u32, value: bool, out: &mut Vec<u8>) {
    varint(u64::from(number << 3), out);
    varint(u64::from(value), out);
}

fn integer(number: u32, value: i64, out: &mut Vec<u8>) {
    if value != 0 {
        varint(u64::from(number << 3), out);
        varint(value.cast_unsigned(), out);
    }
}

fn float(number: u32, value: f64, out: &mut Vec<u8>) {
    if value != 0.0 {
        required_float(number, value, out);
    }
}

fn required_float(number: u32, value: f64, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | 1), out);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
