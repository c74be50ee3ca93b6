//! Validation of config maps and secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use klient_core::StatusCause;
use serde_json::Value;

use super::{
    field::{Causes, Field},
    same::is_same,
};
use crate::{
    builtin::NameRule,
    metadata::{self, formats},
};

/// Validates a config map.
pub(in crate::builtin) fn config_map(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    if let Some(old) = old {
        immutable(object, old, &["data", "binaryData"], causes);
        metadata::check_prefix(NameRule::Subdomain, object, causes);
    }
    let (data, binary) = (Field::of(object, "data"), Field::of(object, "binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(key, &value, causes);
        if binary.value.get(key).is_some() {
            value.invalid_as(key, "duplicate of key present in binaryData", causes);
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        keys(key, &value, causes);
        size += decoded_length(value.text());
    }
    if size > MAX_SIZE {
        causes.add(|| StatusCause::too_long("", MAX_SIZE));
    }
}

/// Validates a secret.
pub(in crate::builtin) fn secret(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    if let Some(old) = old {
        Field::of(object, "type").immutable(&old["type"], causes);
        immutable(object, old, &["data"], causes);
        metadata::check_prefix(NameRule::Subdomain, object, causes);
    }
    let data = Field::of(object, "data");
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(key, &value, causes);
        size += decoded_length(value.text());
    }
    if size > MAX_SIZE {
        data.too_long(MAX_SIZE, causes);
    }
    let require = |key: &str, causes: &mut Causes| {
        if !data.key(key).is_set() {
            data.key(key).required("", causes);
        }
    };
    match Field::of(object, "type").text() {
        "kubernetes.io/service-account-token" => {
            let metadata = Field::of(object, "metadata");
            let annotations = metadata.field("annotations");
            annotations.key("kubernetes.io/service-account.name").not_empty(causes);
        }
        "kubernetes.io/dockercfg" => json_object(&data.key(".dockercfg"), causes),
        "kubernetes.io/dockerconfigjson" => json_object(&data.key(".dockerconfigjson"), causes),
        "kubernetes.io/basic-auth" if !data.key("username").is_set() && !data.key("password").is_set() => {
            require("username", causes);
            require("password", causes);
        }
        "kubernetes.io/ssh-auth" => {
            data.key("ssh-privatekey").not_empty(causes);
        }
        "kubernetes.io/tls" => {
            require("tls.crt", causes);
            require("tls.key", causes);
        }
        _ => {}
    }
}

fn keys(key: &str, value: &Field<'_, '_>, causes: &mut Causes) {
    for problem in formats::key_problems(key) {
        value.invalid_as(key, &problem, causes);
    }
}

/// Validates a value that must be a JSON object.
fn json_object(value: &Field<'_, '_>, causes: &mut Causes) {
    if !value.is_set() {
        return value.required("", causes);
    }
    let bytes = STANDARD.decode(value.text()).unwrap_or_default();
    let problem = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(Value::Array(_)) => "json: cannot unmarshal array into Go value of type map[string]interface {}".to_owned(),
        Ok(Value::String(_)) => {
            "json: cannot unmarshal string into Go value of type map[string]interface {}".to_owned()
        }
        Ok(Value::Bool(_)) => "json: cannot unmarshal bool into Go value of type map[string]interface {}".to_owned(),
        Ok(Value::Number(_)) => {
            "json: cannot unmarshal number into Go value of type map[string]interface {}".to_owned()
        }
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            // The character at which the text ends to be JSON.
            let at = error.column().saturating_sub(1);
            let found = bytes.get(at).map_or(' ', |byte| char::from(*byte));
            format!("invalid character '{found}' looking for beginning of value")
        }
    };
    value.invalid_as("<secret contents redacted>", &problem, causes);
}

fn immutable(object: &Value, old: &Value, fields: &[&str], causes: &mut Causes) {
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        causes.add(|| StatusCause::forbidden("immutable", detail));
    }
    for field in fields.iter().filter(|field| !is_same(&object[**field], &old[**field])) {
        causes.add(|| StatusCause::forbidden(*field, detail));
    }
}

fn decoded_length(text: &str) -> usize {
    text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count().min(text.len() / 4 * 3)
}

const MAX_SIZE: usize = 1 << 20;
