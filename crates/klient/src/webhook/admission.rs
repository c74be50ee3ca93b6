//! `AdmissionReview`: the body of the requests that the server sends.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::authentication::v1::UserInfo;
use klient_core::{GroupVersionKind, GroupVersionResource, Resource};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operation, Request, handler::Handler};
use crate::BoxError;

/// A review, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview {
    api_version: String,
    kind: String,
    request: Option<AdmissionRequest>,
}

/// The request of a review.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionRequest {
    uid: String,
    kind: GroupVersionKindName,
    resource: GroupVersionResourceName,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    request_kind: Option<GroupVersionKindName>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    operation: String,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(default)]
    pub(super) object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    options: Value,
}

#[derive(Clone, Deserialize)]
struct GroupVersionKindName {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

#[derive(Clone, Deserialize)]
struct GroupVersionResourceName {
    #[serde(default)]
    group: String,
    version: String,
    resource: String,
}

/// The reason why a review has no decision.
pub(super) enum Problem {
    /// The review cannot be decoded.
    Undecodable(String),
    /// The handler failed.
    Failed(BoxError),
}

impl Problem {
    pub(super) fn undecodable(error: &serde_json::Error) -> Self {
        Self::Undecodable(error.to_string())
    }
}

impl AdmissionRequest {
    /// Returns the request with typed objects.
    pub(super) fn typed<K: Resource>(&self) -> Result<Request<K>, Problem> {
        let decode = |object: &Option<Value>, what: &str| {
            let decoded = object.as_ref().filter(|object| !object.is_null()).map(decode).transpose();
            // The review is valid, so that the failure policy decides. The server shows the message.
            decoded.map_err(|error| {
                let GroupVersionKindName { group, version, kind } = &self.kind;
                Problem::Failed(format!("cannot decode the {what} as {group}/{version} {kind}: {error}").into())
            })
        };
        let operation = Operation::parse(&self.operation)
            .ok_or_else(|| Problem::Undecodable(format!("unknown operation {:?}", self.operation)))?;
        Ok(Request {
            uid: self.uid.clone(),
            operation,
            object: decode(&self.object, "object")?,
            old_object: decode(&self.old_object, "old object")?,
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            subresource: self.sub_resource.clone(),
            kind: self.kind.gvk(),
            resource: self.resource.gvr(),
            requested_kind: self.request_kind.as_ref().map(GroupVersionKindName::gvk),
            user: self.user_info.clone(),
            dry_run: self.dry_run.unwrap_or_default(),
            options: self.options.clone(),
        })
    }
}

impl GroupVersionKindName {
    fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.group.clone(), self.version.clone(), self.kind.clone())
    }
}

impl GroupVersionResourceName {
    fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(self.group.clone(), self.version.clone(), self.resource.clone())
    }
}

/// Decodes an object. Types with metadata alone accept whole objects here, of which the rest is not read.
fn decode<K: Resource>(object: &Value) -> Result<K, serde_json::Error> {
    K::deserialize(object).or_else(|error| {
        let partial = json!({"apiVersion": "meta.k8s.io/v1", "kind": PARTIAL, "metadata": object["metadata"]});
        let decoded = K::deserialize(&partial).map_err(|_| error)?;
        match serde_json::to_value(&decoded) {
            Ok(again) if again["kind"] == PARTIAL => Ok(decoded),
            // Another type, all of whose fields are optional.
            _ => K::deserialize(object),
        }
    })
}

/// The kind of objects with metadata alone.
const PARTIAL: &str = "PartialObjectMetadata";

/// Decodes a review, calls a handler, and returns the body of the response.
pub(super) async fn respond(handler: &Handler, body: &[u8]) -> Result<Value, Problem> {
    let AdmissionReview { api_version, kind, request } =
        serde_json::from_slice(body).map_err(|error| Problem::undecodable(&error))?;
    let is_known =
        kind == "AdmissionReview" && matches!(api_version.as_str(), "admission.k8s.io/v1" | "admission.k8s.io/v1beta1");
    if !is_known {
        let expected = "expected an AdmissionReview of admission.k8s.io/v1 or v1beta1";
        return Err(Problem::Undecodable(format!("{expected}, found {kind:?} of {api_version:?}")));
    }
    let Some(request) = request else { return Err(Problem::Undecodable("the review has no request".to_owned())) };
    if request.uid.is_empty() {
        return Err(Problem::Undecodable("the request has no uid".to_owned()));
    }
    let uid = request.uid.clone();
    let decision = handler(request).await?;
    let patch =
        (!decision.operations.is_empty()).then(|| STANDARD.encode(Value::Array(decision.operations).to_string()));
    Ok(json!({"kind": kind, "apiVersion": api_version, "response": decision.verdict.to_response(&uid, patch)}))
}
