//! Patches of an object, in the four formats that servers accept.
//!
//! The format determines the content type, and thereby the meaning of the body. Both are in one type, so that they
//! cannot disagree.

mod operation;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

pub use self::operation::JsonPatchOperation;
use crate::media_type;

/// A change of a part of an object.
///
/// Any serializable value is accepted: a `json!` value, a struct with the fields to change, a whole object. A value
/// that cannot be serialized is an error of the request that sends the patch.
///
/// ```
/// use klient_core::{JsonPatchOperation, JsonPointer, Patch};
/// use serde_json::json;
///
/// let scale = Patch::merge(json!({"spec": {"replicas": 3}}));
/// assert_eq!(scale.content_type(), "application/merge-patch+json");
/// assert_eq!(scale.body()?, br#"{"spec":{"replicas":3}}"#);
///
/// let label = JsonPointer::root().field("metadata").field("labels").field("example.com/team");
/// let patch = Patch::json([JsonPatchOperation::add(label, "web")]);
/// assert_eq!(patch.body()?, br#"[{"op":"add","path":"/metadata/labels/example.com~1team","value":"web"}]"#);
/// # Ok::<(), klient_core::EncodePatchError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    kind: PatchKind,
    body: Result<Vec<u8>, EncodePatchError>,
}

/// The format of a [`Patch`], which determines its content type.
#[doc(alias = "PatchType")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PatchKind {
    /// A list of operations.
    Json,
    /// An object to merge.
    Merge,
    /// An object to merge by list keys.
    Strategic,
    /// The fields that a manager applies.
    Apply,
}

impl Patch {
    /// Creates a JSON patch (RFC 6902): operations that are executed in order, all or none.
    pub fn json(operations: impl IntoIterator<Item = JsonPatchOperation>) -> Self {
        let operations: Vec<_> = operations.into_iter().map(|operation| operation.to_value()).collect();
        Self { kind: PatchKind::Json, body: Ok(Value::Array(operations).to_string().into_bytes()) }
    }

    /// Creates a merge patch (RFC 7386): `null` removes a field, lists are replaced.
    #[doc(alias = "MergePatchType")]
    pub fn merge(fields: impl Serialize) -> Self {
        Self::encode(PatchKind::Merge, fields)
    }

    /// Creates a strategic merge patch: lists are merged by their keys. Only built-in kinds support it.
    #[doc(alias = "StrategicMergePatchType")]
    pub fn strategic(fields: impl Serialize) -> Self {
        Self::encode(PatchKind::Strategic, fields)
    }

    pub(crate) fn encode(kind: PatchKind, fields: impl Serialize) -> Self {
        let body = serde_json::to_vec(&fields).map_err(|error| EncodePatchError { why: error.to_string() });
        Self { kind, body }
    }

    /// Returns the format of the patch.
    pub fn kind(&self) -> PatchKind {
        self.kind
    }

    /// Returns the `Content-Type` of the patch.
    pub fn content_type(&self) -> &'static str {
        self.kind.content_type()
    }

    /// Returns the body to send, as JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the value could not be serialized.
    pub fn body(&self) -> Result<&[u8], EncodePatchError> {
        self.body.as_deref().map_err(Clone::clone)
    }
}

/// A value that could not be serialized as the body of a [`Patch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodePatchError {
    why: String,
}

impl fmt::Display for EncodePatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot serialize patch as JSON: {}", self.why)
    }
}

impl std::error::Error for EncodePatchError {}

impl PatchKind {
    /// Returns the `Content-Type` of this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => media_type::JSON_PATCH,
            Self::Merge => media_type::MERGE_PATCH,
            Self::Strategic => media_type::STRATEGIC_MERGE_PATCH,
            Self::Apply => media_type::APPLY_PATCH,
        }
    }

    /// Returns the format of a `Content-Type`, if it is a patch's. Parameters such as a charset are ignored.
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
    fn each_format_has_its_content_type() {
        for (patch, content_type) in [
            (Patch::json([]), "application/json-patch+json"),
            (Patch::merge(json!({})), "application/merge-patch+json"),
            (Patch::strategic(json!({})), "application/strategic-merge-patch+json"),
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
    fn unserializable_patch_fails_when_it_is_sent() {
        let keys_are_no_strings = std::collections::BTreeMap::from([(vec![1], 2)]);
        let error = Patch::merge(keys_are_no_strings).body().unwrap_err();
        assert_eq!(error.to_string(), "cannot serialize patch as JSON: key must be a string");
    }

    #[test]
    fn json_patch_round_trips() {
        let at = |name: &str| JsonPointer::root().field(name);
        let operations = vec![
            JsonPatchOperation::test(at("a"), json!(null)),
            JsonPatchOperation::add(at("a").end(), json!({"b": 1})),
            JsonPatchOperation::replace(at("a"), "x"),
            JsonPatchOperation::remove(at("a").index(0)),
            JsonPatchOperation::move_value(at("a"), at("b")),
            JsonPatchOperation::copy(at("b"), at("c")),
        ];
        let patch = Patch::json(operations.clone());
        let body = patch.body().unwrap();
        assert_eq!(
            std::str::from_utf8(body).unwrap(),
            r#"[{"op":"test","path":"/a","value":null},{"op":"add","path":"/a/-","value":{"b":1}},{"op":"replace","path":"/a","value":"x"},{"op":"remove","path":"/a/0"},{"from":"/a","op":"move","path":"/b"},{"from":"/b","op":"copy","path":"/c"}]"#
        );
        assert_eq!(serde_json::from_slice::<Vec<JsonPatchOperation>>(body).unwrap(), operations);
    }

    #[test]
    fn operation_error_names_the_problem() {
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
