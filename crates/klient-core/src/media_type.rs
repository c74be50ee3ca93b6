//! Names of the forms in which objects travel: values of `Accept` and `Content-Type`.
//!
//! A form that is asked for with `as=` may not be known to a server, so that such a value of `Accept` that is sent to
//! any server should list a plain form after it: see [`preferring`].

/// Objects as JSON.
pub const JSON: &str = "application/json";
/// Objects as YAML.
pub const YAML: &str = "application/yaml";
/// Objects as protobuf: built-in kinds only.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// A watch as protobuf frames, each with its length before it.
pub const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// A watch as JSON, one event after another.
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
/// Objects as rows for people to read, as JSON.
pub const TABLE_JSON: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// All groups, versions and resources of a server in one answer, in the current form.
pub const AGGREGATED_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// What to ask for at `/api` and `/apis`: the current form, else the one before it, else the old one.
pub const ACCEPT_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
/// What to ask for where protobuf is known: protobuf, else JSON.
pub const ACCEPT_PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";
/// The same for a watch.
pub const ACCEPT_PROTOBUF_OR_JSON_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch,application/json";

/// The value of `Accept` that asks for the first form that the server has.
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

/// Whether a value of `Content-Type` says protobuf, whatever its parameters.
pub fn is_protobuf(content_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case(PROTOBUF)
}

/// Whether a value of `Content-Type` says JSON, whatever its parameters.
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
    fn tells_forms_apart_whatever_their_parameters() {
        for content_type in [PROTOBUF, PROTOBUF_WATCH, PARTIAL_PROTOBUF, "Application/VND.kubernetes.Protobuf ;x=y"] {
            assert!(is_protobuf(content_type) && !is_json(content_type));
        }
        for content_type in [JSON, JSON_WATCH, TABLE_JSON, PARTIAL_LIST_JSON, "application/json; charset=utf-8"] {
            assert!(is_json(content_type) && !is_protobuf(content_type));
        }
        assert!(!is_json(JSON_PATCH) && !is_json("") && !is_protobuf(";"));
    }
}
