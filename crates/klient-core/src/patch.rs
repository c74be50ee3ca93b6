//! Changes to a part of an object, in the four forms that servers take.
//!
//! The form decides the content type, and thereby what the body means; they are kept together so that they cannot
//! disagree.

mod operation;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

pub use self::operation::JsonPatchOperation;
use crate::media_type;

/// A change to a part of an object.
///
/// ```
/// use klient_core::{JsonPatchOperation, JsonPointer, Patch};
/// use serde_json::json;
///
/// let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
/// assert_eq!(scale.content_type(), "application/merge-patch+json");
/// assert_eq!(scale.body(), br#"{"spec":{"replicas":3}}"#);
///
/// let label = JsonPointer::root().field("metadata").field("labels").field("example.com/team");
/// let patch = Patch::Json(vec![JsonPatchOperation::add(label, "web")]);
/// assert_eq!(patch.body(), br#"[{"op":"add","path":"/metadata/labels/example.com~1team","value":"web"}]"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Patch {
    /// Steps to carry out in order, all or none (RFC 6902).
    Json(Vec<JsonPatchOperation>),
    /// An object to merge: `null` removes a field, lists are replaced (RFC 7386).
    Merge(Value),
    /// As merge, but lists are merged by their keys. Built-in kinds only.
    Strategic(Value),
    /// The fields that a manager wants, with `apiVersion`, `kind` and name; see [`ApplyOptions`](crate::ApplyOptions).
    Apply(Value),
}

/// The form of a [`Patch`], which its content type says.
#[doc(alias = "PatchType")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PatchKind {
    /// Steps to carry out.
    Json,
    /// An object to merge.
    Merge,
    /// An object to merge by list keys.
    Strategic,
    /// The fields that a manager wants.
    Apply,
}

impl Patch {
    /// A merge patch with the fields of a value.
    ///
    /// # Errors
    ///
    /// If the value cannot be encoded as JSON.
    pub fn merge(value: impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_value(value).map(Self::Merge)
    }

    /// A strategic patch with the fields of a value.
    ///
    /// # Errors
    ///
    /// If the value cannot be encoded as JSON.
    pub fn strategic(value: impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_value(value).map(Self::Strategic)
    }

    /// An apply of the fields of a value.
    ///
    /// # Errors
    ///
    /// If the value cannot be encoded as JSON.
    pub fn apply(value: impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_value(value).map(Self::Apply)
    }

    /// The form.
    pub fn kind(&self) -> PatchKind {
        match self {
            Self::Json(_) => PatchKind::Json,
            Self::Merge(_) => PatchKind::Merge,
            Self::Strategic(_) => PatchKind::Strategic,
            Self::Apply(_) => PatchKind::Apply,
        }
    }

    /// The `Content-Type` to send it with.
    pub fn content_type(&self) -> &'static str {
        self.kind().content_type()
    }

    /// The body to send: JSON, which is YAML too.
    pub fn body(&self) -> Vec<u8> {
        match self {
            Self::Json(operations) => {
                Value::Array(operations.iter().map(JsonPatchOperation::to_value).collect()).to_string()
            }
            Self::Merge(value) | Self::Strategic(value) | Self::Apply(value) => value.to_string(),
        }
        .into_bytes()
    }
}

impl PatchKind {
    /// The `Content-Type` of patches of this form.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => media_type::JSON_PATCH,
            Self::Merge => media_type::MERGE_PATCH,
            Self::Strategic => media_type::STRATEGIC_MERGE_PATCH,
            Self::Apply => media_type::APPLY_PATCH,
        }
    }

    /// The form that a `Content-Type` says, if it is a patch's; parameters such as a charset are ignored.
    pub fn from_content_type(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next()?.trim();
        [Self::Json, Self::Merge, Self::Strategic, Self::Apply]
            .into_iter()
            .find(|kind| kind.content_type().eq_ignore_ascii_case(essence))
    }
}

impl fmt::Display for PatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.content_type())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::JsonPointer;

    #[test]
    fn each_form_has_its_content_type() {
        for (patch, content_type) in [
            (Patch::Json(vec![]), "application/json-patch+json"),
            (Patch::merge(json!({})).unwrap(), "application/merge-patch+json"),
            (Patch::strategic(json!({})).unwrap(), "application/strategic-merge-patch+json"),
            (Patch::apply(json!({})).unwrap(), "application/apply-patch+yaml"),
        ] {
            assert_eq!(patch.content_type(), content_type);
            assert_eq!(PatchKind::from_content_type(content_type), Some(patch.kind()));
            let with_charset = format!(" {}; charset=utf-8", content_type.to_uppercase());
            assert_eq!(PatchKind::from_content_type(&with_charset), Some(patch.kind()));
        }
        assert_eq!(PatchKind::from_content_type("application/json"), None);
        assert_eq!(PatchKind::from_content_type(""), None);
    }

    #[test]
    fn a_json_patch_reads_back_from_its_body() {
        let at = |name: &str| JsonPointer::root().field(name);
        let operations = vec![
            JsonPatchOperation::test(at("a"), json!(null)),
            JsonPatchOperation::add(at("a").end(), json!({"b": 1})),
            JsonPatchOperation::replace(at("a"), "x"),
            JsonPatchOperation::remove(at("a").index(0)),
            JsonPatchOperation::move_value(at("a"), at("b")),
            JsonPatchOperation::copy(at("b"), at("c")),
        ];
        let body = Patch::Json(operations.clone()).body();
        assert_eq!(
            String::from_utf8(body.clone()).unwrap(),
            r#"[{"op":"test","path":"/a","value":null},{"op":"add","path":"/a/-","value":{"b":1}},{"op":"replace","path":"/a","value":"x"},{"op":"remove","path":"/a/0"},{"from":"/a","op":"move","path":"/b"},{"from":"/b","op":"copy","path":"/c"}]"#
        );
        assert_eq!(serde_json::from_slice::<Vec<JsonPatchOperation>>(&body).unwrap(), operations);
    }

    #[test]
    fn says_what_is_wrong_with_an_operation() {
        for (text, message) in [
            (r#"{"op": "add", "path": "/a"}"#, "missing field `value`"),
            (r#"{"op": "rename", "path": "/a"}"#, "unknown variant `rename`"),
            (r#"{"op": "remove", "path": "a"}"#, "JSON pointer \"a\" at byte 0"),
            (r#"{"path": "/a"}"#, "missing field `op`"),
        ] {
            let error = serde_json::from_str::<JsonPatchOperation>(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
