//! Bodies into objects: from JSON, YAML or protobuf to a JSON value of the right kind, with what was wrong on the way.
//!
//! What comes out has the fields of its kind and no others, is what Go would have written, and says its `apiVersion` and
//! `kind`.

mod built_in;
mod strict;

use bytes::Bytes;
use klient_core::{GroupKind, Status, StatusCause};
use klient_proto::{Envelope, ManagedFields, RawObject};
use serde_json::Value;

pub(crate) use self::built_in::normalise;
use crate::{
    Result,
    negotiate::Form,
    registry::{Resource, Schema},
};

/// What to do about fields that a kind does not have, or that are given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// An object and what was wrong with its body, but not so wrong that it was refused.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    /// Fields that were dropped, or given twice: in the words of a warning.
    pub(crate) problems: Vec<String>,
}

/// An object of a resource from the body of a create or update.
pub(crate) fn object(resource: &Resource, form: Form, body: &Bytes) -> Result<Decoded> {
    let kind = resource.kind.as_str();
    let (mut object, mut problems) = match form {
        Form::Json => parse_json(kind, body)?,
        Form::Yaml => (parse_yaml(kind, body)?, Vec::new()),
        Form::Protobuf => (parse_protobuf(resource, body)?, Vec::new()),
    };
    check_kind(resource, &mut object, form, body)?;
    problems.splice(0..0, shape(resource, &mut object)?);
    if form == Form::Json && problems.len() > 1 {
        strict::sort(body, &mut problems);
    }
    Ok(Decoded { object, problems })
}

/// Brings an object into the form of its kind: drops what the kind does not have, and tells it.
pub(crate) fn shape(resource: &Resource, object: &mut Value) -> Result<Vec<String>> {
    match &resource.schema {
        Schema::BuiltIn(types) => {
            let Some(codec) = resource.codec else { return Ok(Vec::new()) };
            let cannot = |why: String| {
                let (kind, version) = (&resource.kind, &resource.version);
                let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
                Box::new(Status::bad_request(message))
            };
            normalise(object, (codec.descriptor)(), types).map_err(cannot)
        }
        Schema::Custom(schema) => schema.shape(object),
    }
}

/// Refuses or warns of fields that a kind does not have.
pub(crate) fn enforce(resource: &Resource, validation: FieldValidation, problems: &[String]) -> Result<Vec<String>> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(problems.to_vec()),
        FieldValidation::Strict if problems.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => {
            let (kind, version) = (&resource.kind, &resource.version);
            let why = format!("strict decoding error: {}", problems.join(", "));
            let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
            Err(Box::new(Status::bad_request(message)))
        }
    }
}

/// Any JSON, with the paths of what is in it twice.
pub(crate) fn parse_json(kind: &str, body: &Bytes) -> Result<(Value, Vec<String>)> {
    let (value, twice) = strict::parse(body).map_err(|error| unrecognised(kind, &go_json_error(body, &error), body))?;
    if value.is_null() {
        return Ok((Value::Object(serde_json::Map::new()), Vec::new()));
    }
    if !value.is_object() {
        let what = format!("json: cannot unmarshal {} into Go value of type struct", type_word(&value));
        let fields =
            "{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        return Err(unrecognised(kind, &format!("{what} {fields}"), body));
    }
    Ok((value, twice.into_iter().map(|path| format!("duplicate field \"{path}\"")).collect()))
}

/// Any YAML.
pub(crate) fn parse_yaml(kind: &str, body: &Bytes) -> Result<Value> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Box::new(Status::bad_request("error converting YAML to JSON: yaml: invalid UTF-8")))?;
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|error| Box::new(Status::bad_request(format!("error converting YAML to JSON: yaml: {error}"))))?;
    if value.is_object() { Ok(value) } else { Err(unrecognised(kind, "it is not an object", body)) }
}

fn parse_protobuf(resource: &Resource, body: &Bytes) -> Result<Value> {
    let kind = resource.kind.as_str();
    let wrong = |why: &dyn std::fmt::Display| {
        Box::new(Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}")))
    };
    let Some(codec) = resource.codec else {
        return Err(Box::new(Status::unsupported_media_type(&crate::negotiate::ALL[..2])));
    };
    let envelope = Envelope::open(body).map_err(|error| wrong(&error))?;
    if (envelope.api_version, envelope.kind) != (resource.api_version().as_str(), kind) {
        let given = format!("{} {}", envelope.api_version, envelope.kind);
        return Err(wrong(&format!("it is a {given}")));
    }
    let raw = RawObject::from_protobuf(envelope.raw, ManagedFields::Keep).map_err(|error| wrong(&error))?;
    raw.to_value_of(Some(codec), &resource.api_version(), kind).map_err(|error| wrong(&error))
}

/// Checks what an object says it is, and fills it in if it says nothing.
fn check_kind(resource: &Resource, object: &mut Value, form: Form, body: &Bytes) -> Result<()> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (given_version, given_kind) = (text("apiVersion"), text("kind"));
    let (version, kind) = (resource.api_version(), resource.kind.as_str());
    let bad = |message: String| Err(Box::new(Status::bad_request(message)));
    if !given_kind.is_empty() && given_kind != kind {
        return if resource.is_custom() {
            let cause = StatusCause::invalid("kind", given_kind.as_str(), &format!("must be {kind}"));
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let given = GroupKind::new(resource.group.clone(), given_kind.clone());
            Err(Box::new(Status::invalid(&given, name, vec![cause])))
        } else {
            if crate::registry::types().of_kind(&resource.group, &resource.version, &given_kind).is_none() {
                return bad(format!(
                    "{given_kind} in version \"{}\" cannot be handled as a {kind}: no kind \"{given_kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\"",
                    resource.version
                ));
            }
            let (short, group) = (&resource.version, if resource.group.is_empty() { "core" } else { &resource.group });
            bad(format!(
                "{given_kind} in version \"{short}\" cannot be handled as a {kind}: converting ({short}.{given_kind}) to ({group}.{kind}): unknown conversion"
            ))
        };
    }
    if !given_version.is_empty() && given_version != version {
        let short = given_version.rsplit('/').next().unwrap_or_default();
        return if resource.is_custom() {
            bad(format!(
                "the API version in the data ({given_version}) does not match the expected API version ({version})"
            ))
        } else {
            bad(format!(
                "{kind} in version \"{short}\" cannot be handled as a {kind}: no kind \"{kind}\" is registered for version \"{given_version}\" in scheme \"pkg/runtime/scheme.go:111\""
            ))
        };
    }
    if resource.is_custom() && given_kind.is_empty() {
        let is_null = body.trim_ascii() == b"null";
        let (text, raw) = match form {
            _ if form == Form::Yaml || is_null => {
                let raw = body.iter().map(|byte| format!("{byte:02x}")).collect();
                (String::from_utf8_lossy(body).into_owned(), raw)
            }
            _ => (object.to_string(), object.to_string()),
        };
        return bad(format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{text}' ({raw})"
        ));
    }
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), Value::String(version));
        object.insert("kind".to_owned(), Value::String(kind.to_owned()));
    }
    Ok(())
}

fn unrecognised(kind: &str, why: &str, body: &Bytes) -> Box<Status> {
    let shown = if body.is_empty() {
        "<empty>".to_owned()
    } else if body.iter().all(|byte| (0x20..0x7f).contains(byte)) && !why.contains("Go value of type") {
        let text = String::from_utf8_lossy(body);
        if text.len() > SHOWN && why.contains("after top-level value") {
            format!("{} ...", &text[..SHOWN])
        } else {
            text.into_owned()
        }
    } else {
        body.iter().take(1024).map(|byte| format!("{byte:02x}")).collect()
    };
    let message = format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why} ({shown})"
    );
    Box::new(Status::bad_request(message))
}

/// What Go's parser says where ours has failed, in the most common cases.
pub(crate) fn go_json_error(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let at = body
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum::<usize>()
        + error.column().saturating_sub(1);
    let found = body.get(at).map_or("EOF".to_owned(), |byte| format!("'{}'", go_quoted(*byte)));
    if let Some(expected) = in_literal(body, at) {
        return format!("invalid character {found} {expected}");
    }
    let before = body[..at.min(body.len())].iter().rev().find(|byte| !byte.is_ascii_whitespace());
    let expected = match before {
        Some(b'{') => "looking for beginning of object key string",
        Some(b',' | b':' | b'[') | None => "looking for beginning of value",
        _ => "after top-level value",
    };
    format!("invalid character {found} {expected}")
}

/// What Go expects where a word begins as `null`, `true` or `false` do, and goes on in another way.
fn in_literal(body: &[u8], at: usize) -> Option<String> {
    let start = body[..at.min(body.len())].iter().rposition(|byte| !byte.is_ascii_lowercase()).map_or(0, |at| at + 1);
    let literal = ["null", "true", "false"].into_iter().find(|word| {
        let begun = &body[start..at.min(body.len())];
        !begun.is_empty() && word.as_bytes().starts_with(begun)
    })?;
    let expected = char::from(*literal.as_bytes().get(at - start)?);
    Some(format!("in literal {literal} (expecting '{expected}')"))
}

/// A byte as Go shows it between quotes.
fn go_quoted(byte: u8) -> String {
    match byte {
        b'\'' => "\\'".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\\' => "\\\\".to_owned(),
        ..0x20 | 0x7f => format!("\\x{byte:02x}"),
        0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
        _ => char::from(byte).to_string(),
    }
}

/// What Go calls a JSON value in its errors.
pub(crate) fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How much of a body the real server repeats where more comes after it.
const SHOWN: usize = 30;
