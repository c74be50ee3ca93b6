//! Decoding of request bodies: from JSON, YAML or protobuf to a JSON value of the right kind, with the problems found.
//!
//! A decoded object has only the fields of its kind, equals what Go would have written, and has its `apiVersion` and
//! `kind`.

mod built_in;
mod strict;
mod unstructured;
mod value;
mod yaml;

use bytes::Bytes;
use klient_core::{GroupKind, Quoted, Status, StatusCause};
use klient_proto::{Envelope, ManagedFields, RawObject};
use serde_json::Value;

pub(crate) use self::{
    built_in::normalise,
    strict::{parse as parse_strictly, sort as sort_by_position},
    yaml::parse as parse_yaml_text,
};
use crate::{
    Result,
    negotiate::Encoding,
    registry::{Resource, Schema, TypeDef},
};

/// The handling of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The way in which Go reads an object into a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// By a JSON decoder.
    Json,
    /// By the converter of objects that were decoded without a struct: applied configurations and strategic merge patches.
    Unstructured,
}

/// A decoded object, and the problems of its body that do not make it invalid.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    /// Warnings about unknown and duplicate fields.
    pub(crate) problems: Vec<String>,
}

/// Decodes the body of a create or update.
pub(crate) fn object(resource: &Resource, encoding: Encoding, body: &Bytes) -> Result<Decoded> {
    let kind = resource.kind.as_str();
    let (mut object, mut problems) = match encoding {
        Encoding::Json => parse_json(kind, body)?,
        Encoding::Yaml => parse_yaml_strictly(kind, body)?,
        Encoding::Protobuf => (parse_protobuf(resource, body)?, Vec::new()),
    };
    check_kind(resource, &mut object, encoding, body)?;
    let unknown = shape(resource, &mut object)?;
    crate::managed::text::fold(&mut object);
    // Go finds both in one pass over the JSON of a built-in kind, and does not look into unknown fields.
    let is_one_pass = encoding == Encoding::Json && !resource.is_custom();
    if is_one_pass {
        problems.retain(|problem| !unknown.iter().any(|unknown| is_within(path_of(problem), path_of(unknown))));
    }
    problems.extend(unknown);
    if is_one_pass && problems.len() > 1 {
        sort_by_position(body, &mut problems);
    }
    Ok(Decoded { object, problems })
}

/// Brings a time into Go's format. Returns false if it is malformed.
pub(crate) fn time(value: &mut Value) -> bool {
    built_in::time(value, false).is_ok()
}

/// Normalises an object of a kind. Returns a warning for each unknown field, which is removed.
pub(crate) fn shape(resource: &Resource, object: &mut Value) -> Result<Vec<String>> {
    match &resource.schema {
        Schema::BuiltIn(types) => shape_built_in(resource, types, object, Reading::Json).map_err(|why| {
            let (kind, version) = (&resource.kind, &resource.version);
            let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
            Box::new(Status::bad_request(message))
        }),
        Schema::Custom(schema) => schema.shape(object),
    }
}

/// Normalises an object that was merged from an applied configuration or a strategic merge patch. Returns a warning for each unknown
/// field, which is removed.
///
/// # Errors
///
/// Returns Go's error message if a value has the wrong type.
pub(crate) fn convert(resource: &Resource, object: &mut Value) -> std::result::Result<Vec<String>, String> {
    match &resource.schema {
        Schema::BuiltIn(types) => shape_built_in(resource, types, object, Reading::Unstructured),
        Schema::Custom(schema) => schema.shape_merged(object).map_err(|status| reason(&status).to_owned()),
    }
}

/// Returns the part of an error's message that says why an object is not of its kind.
pub(crate) fn reason(status: &Status) -> &str {
    let why = status.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    why.map_or(status.message.as_str(), |(_, why)| why)
}

fn shape_built_in(
    resource: &Resource,
    types: &'static TypeDef,
    object: &mut Value,
    reading: Reading,
) -> std::result::Result<Vec<String>, String> {
    let Some(codec) = resource.codec else { return Ok(Vec::new()) };
    // An empty list of entries removes all, as one empty entry does, which normalisation keeps.
    if let Some(entries) = crate::metadata::at_mut(object, "/metadata/managedFields")
        && entries.as_array().is_some_and(Vec::is_empty)
    {
        *entries = serde_json::json!([{}]);
    }
    let is_empty = |pointer: &&&str| object.pointer(pointer).is_some_and(|list| *list == serde_json::json!([]));
    let empty: Vec<&str> = resource.hooks.null_fields.iter().filter(is_empty).copied().collect();
    let problems = normalise(object, (codec.descriptor)(), types, reading)?;
    // The writer of an empty list owns it, although it is stored as null.
    for pointer in empty {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(fields)) = crate::metadata::at_mut(object, parent) {
            fields.insert(name.to_owned(), serde_json::json!([]));
        }
    }
    Ok(problems)
}

/// Rejects problems or returns them as warnings, depending on the field validation.
pub(crate) fn enforce(resource: &Resource, validation: FieldValidation, problems: &[String]) -> Result<Vec<String>> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(problems.to_vec()),
        FieldValidation::Strict if problems.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => {
            let (kind, version) = (&resource.kind, &resource.version);
            let why = strict_error(problems);
            let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
            Err(Box::new(Status::bad_request(message)))
        }
    }
}

/// Returns the message of the real server about unknown and duplicate fields.
pub(crate) fn strict_error(problems: &[String]) -> String {
    // Duplicate keys in YAML are one error with a line for each.
    let of_yaml = problems.iter().take_while(|problem| problem.starts_with("line ")).count();
    let (of_yaml, others) = problems.split_at(of_yaml);
    let of_yaml = (!of_yaml.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", of_yaml.join("\n  ")));
    let all: Vec<&str> = of_yaml.iter().chain(others).map(String::as_str).collect();
    format!("strict decoding error: {}", all.join(", "))
}

/// Returns the path that a problem names.
fn path_of(problem: &str) -> &str {
    problem.split('"').nth(1).unwrap_or_default()
}

/// Returns whether a path is another one or below it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Parses JSON. Returns the paths of duplicate fields, too.
pub(crate) fn parse_json(kind: &str, body: &Bytes) -> Result<(Value, Vec<String>)> {
    let (value, twice) = strict::parse(body).map_err(|error| unrecognised(kind, &go_json_error(body, &error), body))?;
    let value = fields_of(value).map_err(|why| unrecognised(kind, &why, body))?;
    Ok((value, twice.into_iter().map(|path| format!("duplicate field \"{path}\"")).collect()))
}

/// Returns an object with the fields of a body, of which `null` has none. Other values are an error of Go's decoder.
fn fields_of(value: Value) -> std::result::Result<Value, String> {
    match value {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Object(_) => Ok(value),
        other => Err(format!("json: cannot unmarshal {} into Go value of type struct {HEAD}", type_word(&other))),
    }
}

/// Parses the body of a peer's response, which is JSON if it starts as an object does, and YAML otherwise.
pub(crate) fn parse_response(body: &[u8]) -> std::result::Result<Value, String> {
    let unreadable = |why: &str| format!("couldn't get version/kind; json parse error: {why}");
    let value = if body.trim_ascii_start().starts_with(b"{") {
        strict::parse(body).map_err(|error| unreadable(&go_json_error(body, &error)))?.0
    } else {
        let text = std::str::from_utf8(body).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
        yaml::parse(text)?.0
    };
    match value {
        Value::Null => Ok(value),
        value => fields_of(value).map_err(|why| unreadable(&why)),
    }
}

/// The struct into which Go reads version and kind.
const HEAD: &str =
    "{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Parses YAML.
pub(crate) fn parse_yaml(kind: &str, body: &Bytes) -> Result<Value> {
    parse_yaml_strictly(kind, body).map(|(value, _)| value)
}

/// Parses YAML. Returns a message for each duplicate key, too.
pub(crate) fn parse_yaml_strictly(kind: &str, body: &Bytes) -> Result<(Value, Vec<String>)> {
    let malformed = |why: String| {
        let end = if body.len() > SHOWN { " ..." } else { "" };
        let shown: String = body.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
        let message = format!("the object provided is unrecognized (must be of type {kind}): {why} ({shown}{end})");
        Box::new(Status::bad_request(message))
    };
    let text = std::str::from_utf8(body).map_err(|_| malformed("yaml: invalid leading UTF-8 octet".to_owned()))?;
    let (value, twice) = yaml::parse(text).map_err(malformed)?;
    Ok((fields_of(value).map_err(|why| unrecognised(kind, &why, body))?, twice))
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

/// Checks `apiVersion` and `kind` of an object, and sets them if they are absent.
fn check_kind(resource: &Resource, object: &mut Value, encoding: Encoding, body: &Bytes) -> Result<()> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (given_version, given_kind) = (without_empty_group(text("apiVersion")), text("kind"));
    let (version, kind) = (resource.api_version(), resource.kind.as_str());
    let bad = |message: String| Err(Box::new(Status::bad_request(message)));
    if !resource.is_custom() && given_version.matches('/').count() > 1 {
        let end = if body.len() > SHOWN { " ..." } else { "" };
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
        return bad(format!(
            "the object provided is unrecognized (must be of type {kind}): unexpected GroupVersion string: {given_version} ({shown}{end})"
        ));
    }
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
        let (text, raw) = match encoding {
            _ if encoding == Encoding::Yaml || is_null => {
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

/// Returns a version as Go prints it after it has parsed it: without a slash after an empty group.
pub(crate) fn without_empty_group(version: String) -> String {
    match version.strip_prefix('/') {
        Some(rest) if !rest.contains('/') => rest.to_owned(),
        _ => version,
    }
}

/// Checks `apiVersion` and `kind` of a patched object of a built-in kind, and sets them. Returns its unknown fields if it has no version: the
/// real server then decodes the form that it has in memory, which shares no field with it.
pub(crate) fn retype(resource: &Resource, patched: &mut Value) -> std::result::Result<Vec<String>, String> {
    let (version, kind) = (resource.api_version(), resource.kind.as_str());
    let Some(fields) = patched.as_object_mut() else { return Ok(Vec::new()) };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let given_version = &*without_empty_group(text("apiVersion").to_owned());
    let given_kind = if text("kind").is_empty() { kind } else { text("kind") };
    if given_version.is_empty() && given_kind == kind {
        let unknown = fields.keys().filter(|name| !matches!(name.as_str(), "apiVersion" | "kind"));
        let unknown = unknown.map(|name| format!("unknown field {}", Quoted(name))).collect();
        *patched = serde_json::json!({"apiVersion": version, "kind": kind, "metadata": {}});
        return Ok(unknown);
    }
    let (group, short) = given_version.split_once('/').unwrap_or(("", given_version));
    if short.contains('/') {
        return Err(format!("unexpected GroupVersion string: {given_version}"));
    }
    if crate::registry::types().of_kind(group, short, given_kind).is_none() {
        let shown = if given_version.is_empty() { "__internal" } else { given_version };
        return Err(format!(
            "no kind \"{given_kind}\" is registered for version \"{shown}\" in scheme \"pkg/runtime/scheme.go:111\""
        ));
    }
    if given_kind != kind {
        let group = if resource.group.is_empty() { "core" } else { &resource.group };
        return Err(format!("converting ({short}.{given_kind}) to ({group}.{kind}): unknown conversion"));
    }
    if given_version == version {
        fields.insert("kind".to_owned(), Value::String(kind.to_owned()));
    }
    Ok(Vec::new())
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

/// Returns the error message of Go's JSON parser, for the most common errors.
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

/// Returns what Go expects after the beginning of `null`, `true` or `false`.
fn in_literal(body: &[u8], at: usize) -> Option<String> {
    let start = body[..at.min(body.len())].iter().rposition(|byte| !byte.is_ascii_lowercase()).map_or(0, |at| at + 1);
    let literal = ["null", "true", "false"].into_iter().find(|word| {
        let begun = &body[start..at.min(body.len())];
        !begun.is_empty() && word.as_bytes().starts_with(begun)
    })?;
    let expected = char::from(*literal.as_bytes().get(at - start)?);
    Some(format!("in literal {literal} (expecting '{expected}')"))
}

/// Returns a byte as Go prints it between quotes.
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

/// Returns Go's name for the type of a JSON value.
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

/// The length of the part of a body that the real server repeats in errors.
const SHOWN: usize = 30;
