//! The review that a webhook receives.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Failure, hook::Hook, matching::Match};
use crate::{
    admission::{Attributes, KindName},
    managed,
    registry::Resource,
    server::Core,
};

/// A review, and its uid.
pub(super) struct Review {
    pub(super) uid: String,
    pub(super) body: Bytes,
    pub(super) version: &'static str,
}

/// The objects of a review, in the version that the hook matched.
pub(super) struct Objects<'a> {
    pub(super) resource: &'a Resource,
    pub(super) object: Option<&'a Value>,
    pub(super) old: Option<&'a Value>,
}

impl Review {
    /// Builds the review of a request.
    pub(super) fn new(
        core: &Core,
        hook: &Hook,
        request: &Attributes<'_>,
        objects: &Objects<'_>,
    ) -> Result<Self, Failure> {
        let Some(version) = hook.review_version else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::calling(hook, why));
        };
        let uid = core.new_uid();
        let kind = KindName::of_part(objects.resource, request.subresource);
        let asked = request.kind();
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        set("uid", json!(uid));
        set("kind", json!({"group": kind.group, "version": kind.version, "kind": kind.kind}));
        set("resource", resource_name(objects.resource));
        set("requestKind", json!({"group": asked.group, "version": asked.version, "kind": asked.kind}));
        set("requestResource", resource_name(request.resource));
        if !request.subresource.is_empty() {
            set("subResource", json!(request.subresource));
            set("requestSubResource", json!(request.subresource));
        }
        if !request.name.is_empty() {
            set("name", json!(request.name));
        }
        if !request.namespace.is_empty() {
            set("namespace", json!(request.namespace));
        }
        set("operation", json!(request.operation.name()));
        set("userInfo", request.user().info());
        set("object", shown(objects.object));
        set("oldObject", shown(objects.old));
        set("dryRun", json!(request.dry_run));
        set("options", request.options());
        let review = json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"),
            "request": fields});
        Ok(Self { uid, body: review.to_string().into(), version })
    }
}

/// Returns the resource that a hook matched.
pub(super) fn matched<'a>(found: &'a Match, request: &Attributes<'a>) -> &'a Resource {
    match found {
        Match::Requested => request.resource,
        Match::Equivalent(other) => other,
    }
}

fn resource_name(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "resource": resource.plural})
}

/// Returns an object as clients see it, or null.
fn shown(object: Option<&Value>) -> Value {
    object.map_or(Value::Null, managed::text::unfolded)
}
