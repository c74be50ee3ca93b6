//! One event of the audit log, with its fields in the real server's order.

use std::collections::BTreeMap;

use http::{HeaderMap, Response, StatusCode, header::USER_AGENT};
use klient_proto::{Codec, Envelope, ManagedFields, RawObject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::policy::{Chosen, Level};
use crate::{
    access::{Impersonated, RequestInfo, User},
    body::ResponseBody,
    builtin,
    call::Call,
    decode,
    negotiate::Encoding,
    order,
    server::Core,
};

/// A stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    pub(super) audit_id: String,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: UserInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<UserInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<Value>,
    #[serde(rename = "sourceIPs")]
    source_ips: [&'static str; 1],
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<Box<RawValue>>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Serialize)]
struct UserInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

/// The status of a response.
#[derive(Clone, Serialize)]
struct Outcome {
    metadata: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    status: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    message: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    reason: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    details: Value,
    code: u16,
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> Self {
        let User { name, uid, groups, extra } = user.clone();
        Self { username: name, uid, groups, extra }
    }
}

impl Event {
    pub(super) fn new(level: Level, core: &Core, call: &Call, request: &RequestInfo) -> Self {
        let now = micros(core.clock.now());
        let reference = request.is_resource.then(|| ObjectReference {
            resource: request.resource.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            api_group: request.group.clone(),
            api_version: request.version.clone(),
            subresource: request.subresource.clone(),
            ..ObjectReference::default()
        });
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: given_id(&call.headers).unwrap_or_else(|| core.new_uid()),
            stage: Stage::RequestReceived,
            request_uri: call.target(),
            verb: request.verb.clone(),
            user: UserInfo::from(&*call.user),
            impersonated_user: None,
            authentication_metadata: None,
            // Sockets are on the loopback address only.
            source_ips: ["127.0.0.1"],
            user_agent: user_agent(&call.headers),
            object_ref: reference,
            response_status: None,
            request_object: None,
            response_object: None,
            stage_timestamp: now.clone(),
            request_received_timestamp: now,
            annotations: BTreeMap::new(),
        }
    }

    pub(super) fn impersonate(&mut self, impersonated: &Impersonated) {
        self.impersonated_user = Some(UserInfo::from(&impersonated.user));
        if !impersonated.constraint.is_empty() {
            self.authentication_metadata = Some(json!({"impersonationConstraint": impersonated.constraint}));
        }
    }

    /// Adds an annotation, unless there is one with its key.
    pub(super) fn annotate(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.annotations.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Adds the object of a request, as it was decoded, if the policy wants it. The reference takes over the object's name anyway.
    pub(super) fn add_request(&mut self, core: &Core, call: &Call, request: &RequestInfo, chosen: &Chosen) {
        if call.body.is_empty() || !request.is_resource {
            return;
        }
        let is_logged = chosen.level >= Level::Request;
        if request.verb == "patch" {
            self.request_object = raw(call.body.to_vec()).filter(|_| is_logged);
            return;
        }
        let resource = core.registry.find(&request.group, &request.version, &request.resource);
        let resource = resource.filter(|_| matches!(request.subresource.as_str(), "" | "status"));
        let encoding = Encoding::of_body(&call.headers).ok();
        let is_write = matches!(request.verb.as_str(), "create" | "update");
        let object = match (resource, encoding) {
            (Some(resource), Some(encoding)) if is_write => {
                let Ok(mut decoded) = decode::object(&resource, encoding, &call.body) else { return };
                builtin::complete(&resource, &mut decoded.object);
                decoded.object
            }
            (_, Some(Encoding::Json)) => {
                let mut object: Value = serde_json::from_slice(&call.body).unwrap_or_default();
                if object["kind"] == "DeleteOptions" {
                    // The real server shows the version that it uses inside.
                    object["apiVersion"] = json!("meta.k8s.io/__internal");
                }
                object
            }
            _ => return,
        };
        self.complete_reference(&object);
        if is_logged {
            self.request_object = raw(order::to_vec(&without_managed_fields(object, chosen.omits_managed_fields)));
        }
    }

    /// Takes over from the object of a create what its path does not have.
    fn complete_reference(&mut self, object: &Value) {
        let Some(reference) = &mut self.object_ref else { return };
        let ObjectReference { namespace, name, uid, resource_version, .. } = reference;
        let fields = [("namespace", namespace), ("name", name), ("uid", uid), ("resourceVersion", resource_version)];
        for (field, own) in fields {
            if own.is_empty() {
                crate::metadata::text(object, field).clone_into(own);
            }
        }
    }

    /// Adds the status of a response, and its object.
    pub(super) fn add_response(&mut self, response: &Response<ResponseBody>, level: Level, omits_managed_fields: bool) {
        let code = response.status();
        let wants_object = level >= Level::RequestResponse && self.object_ref.is_some();
        let is_read = code.is_client_error() || code.is_server_error() || wants_object;
        let object = response.body().bytes().filter(|_| is_read).and_then(parsed).unwrap_or_default();
        let is_status = object["kind"] == "Status";
        let part = |name: &str| if is_status { object[name].clone() } else { Value::Null };
        self.response_status = Some(Outcome {
            metadata: json!({}),
            status: part("status"),
            message: part("message"),
            reason: part("reason"),
            details: part("details"),
            code: code.as_u16(),
        });
        if wants_object && !object.is_null() && code != StatusCode::SWITCHING_PROTOCOLS {
            self.response_object = raw(order::to_vec(&without_managed_fields(object, omits_managed_fields)));
        }
    }

    /// Returns the line of a stage.
    pub(super) fn line(&mut self, stage: Stage, now: Option<jiff::Timestamp>) -> Option<String> {
        self.stage = stage;
        if let Some(now) = now {
            self.stage_timestamp = micros(now);
        }
        serde_json::to_string(self).ok()
    }
}

/// Parses the body of a response in JSON or protobuf.
fn parsed(bytes: &bytes::Bytes) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        return value.is_object().then_some(value);
    }
    let envelope = Envelope::open(bytes).ok()?;
    let (api_version, kind) = (envelope.api_version, envelope.kind);
    if kind == "Status" {
        let status: k8s_openapi::apimachinery::pkg::apis::meta::v1::Status = klient_proto::meta::decode(bytes).ok()?;
        return serde_json::to_value(status).ok();
    }
    let object = RawObject::from_protobuf_body(bytes, ManagedFields::Keep).ok()?;
    object.to_value_of(Codec::find(api_version, kind), api_version, kind).ok()
}

fn without_managed_fields(mut object: Value, omits: bool) -> Value {
    if omits {
        let remove = |object: &mut Value| {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.remove("managedFields");
            }
        };
        remove(&mut object);
        object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().for_each(remove);
    }
    object
}

fn raw(bytes: Vec<u8>) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8(bytes).ok()?).ok()
}

/// Returns the identifier that the client chose for its request.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("audit-id")?.to_str().ok()?;
    (!id.is_empty() && id.len() <= MAX_ID).then(|| id.to_owned())
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned());
    let agent = agent.unwrap_or_default();
    match agent.char_indices().nth(MAX_AGENT) {
        Some((at, _)) => format!("{}...TRUNCATED", &agent[..at]),
        None => agent,
    }
}

fn micros(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

const MAX_ID: usize = 64;
const MAX_AGENT: usize = 1024;
