//! Patches: JSON patch, merge patch and strategic merge patch.

mod json_patch;
mod merge;
mod strategic;

use bytes::Bytes;
use klient_core::{Status, StatusReason, media_type};
use serde_json::Value;

use crate::{
    Result,
    registry::{Resource, Schema},
};

/// A patch of an object.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(json_patch::Operations),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Returns whether a content type is that of server-side apply.
    pub(crate) fn is_apply(content_type: &str) -> bool {
        essence(content_type) == media_type::APPLY_PATCH
    }

    /// Parses the body of a patch request.
    pub(crate) fn parse(resource: &Resource, content_type: &str, body: &Bytes) -> Result<Self> {
        let json = || -> Result<Value> {
            serde_json::from_slice(body).map_err(|error| {
                let why = crate::decode::go_json_error(body, &error);
                Box::new(Status::bad_request(format!("error decoding patch: {why}")))
            })
        };
        match essence(content_type) {
            media_type::JSON_PATCH => Ok(Self::Json(json_patch::Operations::parse(&json()?)?)),
            media_type::MERGE_PATCH => Ok(Self::Merge(object(json()?)?)),
            media_type::STRATEGIC_MERGE_PATCH if !resource.is_custom() => Ok(Self::Strategic(object(json()?)?)),
            media_type::APPLY_PATCH => Err(Box::new(Status::failure(
                StatusReason::Unknown,
                501,
                "server-side apply is not supported by the embedded API server: send a merge, strategic merge or JSON patch",
            ))),
            _ if resource.is_custom() => {
                let others = [media_type::JSON_PATCH, media_type::MERGE_PATCH, media_type::APPLY_PATCH];
                Err(Box::new(Status::unsupported_media_type(&others)))
            }
            _ => Err(unsupported()),
        }
    }

    /// Returns the patched object.
    pub(crate) fn apply(&self, resource: &Resource, object: &Value) -> Result<Value> {
        match self {
            Self::Json(operations) => operations.apply(object),
            Self::Merge(patch) => {
                let mut object = object.clone();
                merge::merge(&mut object, patch);
                Ok(object)
            }
            Self::Strategic(patch) => match &resource.schema {
                Schema::BuiltIn(types) => strategic::merge(object, patch, types),
                Schema::Custom(_) => Err(unsupported()),
            },
        }
    }
}

impl Patch {
    /// Returns the real server's error for a strategic patch that sets a struct to a scalar, which fails before JSON is decoded.
    pub(crate) fn strategic_problem(&self, why: &str) -> Option<(String, String)> {
        let Self::Strategic(patch) = self else { return None };
        let (what, _) = why.strip_prefix("json: cannot unmarshal ")?.split_once(" into Go struct field")?;
        let kind = match what {
            "number" => "int64",
            "array" => "slice",
            other => other,
        };
        Some((go_text(patch), format!("cannot restore struct from: {kind}")))
    }
}

/// Returns a content type without its parameters.
fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Returns a value as Go prints it.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

fn object(patch: Value) -> Result<Value> {
    if patch.is_object() {
        return Ok(patch);
    }
    let what = crate::decode::type_word(&patch);
    let message =
        format!("error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
    Err(Box::new(Status::bad_request(message)))
}

fn unsupported() -> Box<Status> {
    let mut status = Status::unsupported_media_type(&[]);
    status.message = "415: Unsupported Media Type".to_owned();
    status.details = Some(Box::default());
    Box::new(status)
}
