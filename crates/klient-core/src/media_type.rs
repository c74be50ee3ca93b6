//! Media types of objects: values of `Accept` and `Content-Type`.
//!
//! A server may not support a format with `as=`, so a value of `Accept` for arbitrary servers should list a plain
//! format after it: see [`preferring`].

/// Objects as JSON.
pub const JSON: &str = "application/json";
/// Objects as YAML.
pub const YAML: &str = "application/yaml";
/// Objects as protobuf: built-in kinds only.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// A watch as protobuf frames, each prefixed with its length.
pub const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// A watch as JSON events.
pub const JSON_WATCH: &str = "application/json;stream=watch";

/// A [`Patch::json`](crate::Patch::json).
pub const JSON_PATCH: &str = "application/json-patch+json";
/// A [`Patch::merge`](crate::Patch::merge).
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// A [`Patch::strategic`](crate::Patch::strategic).
pub const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// A server-side apply.
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The metadata of an object, or of each object of a watch, as JSON.
pub const PARTIAL_JSON: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The metadata of the objects of a list, as JSON.
pub const PARTIAL_LIST_JSON: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The metadata of an object, or of each object of a watch, as protobuf.
pub const PARTIAL_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The metadata of the objects of a list, as protobuf.
pub const PARTIAL_LIST_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Objects as rows of a table, as JSON.
pub const TABLE_JSON: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// All groups, versions and resources of a server in one document, in the current version.
pub const AGGREGATED_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The `Accept` value for `/api` and `/apis`: the current aggregated format, its beta version, or the unaggregated one.
pub const ACCEPT_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
/// The `Accept` value for protobuf, or else JSON.
pub const ACCEPT_PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";
/// The `Accept` value for a watch as protobuf, or else JSON.
pub const ACCEPT_PROTOBUF_OR_JSON_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch,application/json";

/// Returns the value of `Accept` that selects the first of these formats that the server supports.
///
/// ```
/// use klient_core::media_type;
///
/// assert_eq!(
///     media_type::preferring(&[media_type::PROTOBUF, media_type::JSON]),
///     media_type::ACCEPT_PROTOBUF_OR_JSON,
/// );
/// ```
pub fn preferring(media_types: &[&str]) -> String {
    media_types.join(",")
}

/// Returns whether a value of `Content-Type` is protobuf, with any parameters.
pub fn is_protobuf(content_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case(PROTOBUF)
}

/// Returns whether a value of `Content-Type` is JSON, with any parameters.
pub fn is_json(content_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case(JSON)
}

fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_recognized_with_any_parameters() {
        for content_type in [PROTOBUF, PROTOBUF_WATCH, PARTIAL_PROTOBUF, "Application/VND.kubernetes.Protobuf ;x=y"] {
            assert!(is_protobuf(content_type) && !is_json(content_type));
        }
        for content_type in [JSON, JSON_WATCH, TABLE_JSON, PARTIAL_LIST_JSON, "application/json; charset=utf-8"] {
            assert!(is_json(content_type) && !is_protobuf(content_type));
        }
        assert!(!is_json(JSON_PATCH) && !is_json("") && !is_protobuf(";"));
    }
}
