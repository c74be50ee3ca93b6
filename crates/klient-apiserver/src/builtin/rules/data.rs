//! Validation of config maps and secrets.

use klient_core::StatusCause;
use serde_json::Value;

/// Validates a `ConfigMap` or a `Secret`.
pub(in crate::builtin) fn validate(
    is_secret: bool,
    object: &Value,
    old: Option<&Value>,
    causes: &mut Vec<StatusCause>,
) {
    if let Some(old) = old {
        update(is_secret, object, old, causes);
    }
    for field in ["data", "binaryData"] {
        for key in object[field].as_object().into_iter().flatten().map(|(key, _)| key) {
            let mut wrong = |why: &str| causes.push(StatusCause::invalid(format!("{field}[{key}]"), key.as_str(), why));
            if key.len() > 253 {
                wrong("must be no more than 253 bytes");
            }
            if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
                wrong(KEY);
            }
            match key.as_str() {
                "." => wrong("must not be '.'"),
                ".." => wrong("must not be '..'"),
                _ if key.starts_with("..") => wrong("must not start with '..'"),
                _ => {}
            }
            if field == "data" && object["binaryData"].get(key).is_some() {
                wrong("duplicate of key present in binaryData");
            }
        }
    }
    if is_secret {
        for key in required(object["type"].as_str().unwrap_or_default()) {
            if object["data"].get(*key).is_none() {
                causes.push(StatusCause::required(format!("data[{key}]"), ""));
            }
        }
    }
}

fn update(is_secret: bool, object: &Value, old: &Value, causes: &mut Vec<StatusCause>) {
    if is_secret && old["type"] != object["type"] {
        causes.push(StatusCause::invalid("type", object["type"].clone(), "field is immutable"));
    }
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        causes.push(StatusCause::forbidden("immutable", detail));
    }
    for field in ["data", "binaryData"] {
        if old.get(field) != object.get(field) {
            causes.push(StatusCause::forbidden(field, detail));
        }
    }
}

/// Returns the required keys of a secret type.
fn required(kind: &str) -> &'static [&'static str] {
    match kind {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        _ => &[],
    }
}

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
