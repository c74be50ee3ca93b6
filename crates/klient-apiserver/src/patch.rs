//! Patches: JSON patch, merge patch and strategic merge patch.

mod json_patch;
mod merge;
mod strategic;

use bytes::Bytes;
use klient_core::{Status, StatusReason, media_type};
use serde_json::Value;

use crate::{
    Result,
    call::Call,
    decode, go,
    managed::text,
    registry::{Resource, Schema},
};

/// A patch of an object.
#[derive(Debug)]
pub(crate) struct Patch {
    form: Form,
    /// Warnings about duplicate fields of the patch, and about unknown members of JSON patch operations.
    problems: Vec<String>,
}

#[derive(Debug)]
enum Form {
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
        let json = || -> Result<(Value, Vec<String>)> {
            decode::parse_strictly(body).map_err(|error| {
                let why = decode::go_json_error(body, &error);
                Box::new(Status::bad_request(format!("error decoding patch: {why}")))
            })
        };
        let duplicates =
            |twice: Vec<String>| twice.into_iter().map(|path| format!("duplicate field \"{path}\"")).collect();
        match essence(content_type) {
            media_type::JSON_PATCH => {
                let (patch, twice) = json()?;
                let problems = json_patch::problems(body, &patch, duplicates(twice));
                Ok(Self { form: Form::Json(json_patch::Operations::parse(&patch)?), problems })
            }
            media_type::MERGE_PATCH => {
                let (patch, twice) = json()?;
                Ok(Self { form: Form::Merge(object(patch)?), problems: duplicates(twice) })
            }
            media_type::STRATEGIC_MERGE_PATCH if !resource.is_custom() => {
                let (patch, twice) = json()?;
                Ok(Self { form: Form::Strategic(object(patch)?), problems: duplicates(twice) })
            }
            _ => Err(Self::unsupported_for(resource)),
        }
    }

    /// Parses the JSON patch in a webhook's response.
    pub(crate) fn of_review(text: &[u8]) -> std::result::Result<Self, String> {
        let (patch, _) = decode::parse_strictly(text).map_err(|error| decode::go_json_error(text, &error))?;
        let what = decode::type_word(&patch);
        let items = match &patch {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return Err(format!("json: cannot unmarshal {what} into Go value of type jsonpatch.Patch")),
        };
        if let Some(wrong) = items.iter().find(|item| !item.is_object()) {
            let what = decode::type_word(wrong);
            return Err(format!("json: cannot unmarshal {what} into Go value of type jsonpatch.Operation"));
        }
        let patch = Value::Array(items.to_vec());
        let operations = json_patch::Operations::parse(&patch).map_err(|status| status.message.clone())?;
        Ok(Self { form: Form::Json(operations), problems: Vec::new() })
    }

    /// Returns whether the patch has no operations.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.form, Form::Json(operations) if operations.is_empty())
    }

    /// Returns the object after the JSON patch of a webhook, or the reason why the patch fails.
    pub(crate) fn apply_reviewed(&self, object: &Value) -> std::result::Result<Value, String> {
        match &self.form {
            Form::Json(operations) => operations.try_apply(text::unfolded(object)),
            _ => Err("webhooks return JSON patches only".to_owned()),
        }
    }

    /// Returns whether a request has a strategic merge patch.
    pub(crate) fn is_strategic(call: &Call) -> bool {
        essence(call.content_type()) == media_type::STRATEGIC_MERGE_PATCH
    }

    /// Returns the error for a patch in a form that a kind does not support.
    pub(crate) fn unsupported_for(resource: &Resource) -> Box<Status> {
        if !resource.is_custom() {
            return unsupported();
        }
        let others = [media_type::JSON_PATCH, media_type::MERGE_PATCH, media_type::APPLY_PATCH];
        Box::new(Status::unsupported_media_type(&others))
    }

    /// Returns the patched object.
    pub(crate) fn apply(&self, resource: &Resource, object: &Value) -> Result<Value> {
        match &self.form {
            // Operations may be about parts of field sets.
            Form::Json(operations) => operations.apply(&text::unfolded(object)),
            Form::Merge(patch) => {
                let mut object = object.clone();
                merge::merge(&mut object, patch);
                Ok(object)
            }
            Form::Strategic(patch) => match &resource.schema {
                Schema::BuiltIn(types) => strategic::merge(object, patch, types),
                Schema::Custom(_) => Err(unsupported()),
            },
        }
    }
}

impl Patch {
    /// Returns warnings about the patch, followed by those about the patched object.
    pub(crate) fn problems(&self, of_patched: Vec<String>) -> Vec<String> {
        self.problems.iter().cloned().chain(of_patched).collect()
    }

    /// Returns what errors about the patched object show: the object, or Go's form of a strategic patch.
    pub(crate) fn shown(&self, patched: &Value) -> String {
        match &self.form {
            Form::Strategic(patch) => go::text(patch),
            _ => text::unfolded(patched).to_string(),
        }
    }

    /// Normalises the patched object. Returns a warning for each unknown field, which is removed.
    ///
    /// # Errors
    ///
    /// Returns Go's error message if a value has the wrong type. JSON is decoded, and the result of a strategic patch is converted.
    pub(crate) fn shape(&self, resource: &Resource, patched: &mut Value) -> std::result::Result<Vec<String>, String> {
        match &self.form {
            Form::Strategic(_) => decode::convert(resource, patched),
            _ if !resource.is_custom() => {
                let unknown = decode::retype(resource, patched)?;
                let found = decode::shape(resource, patched).map_err(|status| decode::reason(&status).to_owned())?;
                Ok([unknown, found].concat())
            }
            _ => decode::shape(resource, patched).map_err(|status| decode::reason(&status).to_owned()),
        }
    }
}

/// Returns a content type without its parameters.
fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn object(patch: Value) -> Result<Value> {
    if patch.is_object() {
        return Ok(patch);
    }
    let what = decode::type_word(&patch);
    let message =
        format!("error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
    Err(Box::new(Status::bad_request(message)))
}

/// Returns the error for a patch that does not fit the object. The real server does not include the reason in the response.
fn inapplicable() -> Box<Status> {
    let message = "the server rejected our request due to an error in our request";
    let mut status = Status::failure(StatusReason::Invalid, 422, message);
    status.details = Some(Box::default());
    Box::new(status)
}

fn unsupported() -> Box<Status> {
    let mut status = Status::unsupported_media_type(&[]);
    status.message = "415: Unsupported Media Type".to_owned();
    status.details = Some(Box::default());
    Box::new(status)
}
