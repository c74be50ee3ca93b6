//! Responses: objects, lists and errors in the negotiated format.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use klient_core::{Status, media_type};
use klient_proto::{Codec, Envelope};
use serde_json::{Value, json};

use crate::{
    Result,
    body::ResponseBody,
    builtin::{tables, versions},
    managed,
    negotiate::{Encoding, Projection, ResponseFormat},
    order,
    registry::Resource,
    store::Stored,
};

/// Returns a response with an object.
pub(crate) fn object(
    code: StatusCode,
    resource: &Resource,
    object: &Value,
    wanted: ResponseFormat,
) -> Result<Response<ResponseBody>> {
    let bytes = match wanted.projection {
        Projection::Object => encode_object(resource, object, wanted)?,
        Projection::Metadata => {
            let object = versions::unconverted(resource, object);
            encode_metadata(&partial(&object), "PartialObjectMetadata", wanted)?
        }
        Projection::Table(include) => {
            let metadata = &object["metadata"];
            let table = tables::table(resource, std::slice::from_ref(object), metadata, include, true);
            encode_value(&table, wanted)
        }
    };
    Ok(whole(code, wanted.encoding, bytes))
}

/// Returns a response with a stored object. JSON and cached protobuf are sent without parsing the object.
pub(crate) fn stored(
    code: StatusCode,
    resource: &Resource,
    stored: &Stored,
    wanted: ResponseFormat,
) -> Result<Response<ResponseBody>> {
    let as_is = wanted == ResponseFormat::JSON && !versions::is_converted(resource);
    if as_is {
        return Ok(whole(code, Encoding::Json, Bytes::copy_from_slice(stored.json())));
    }
    if let Some(bytes) = stored_message(resource, stored, wanted)? {
        return Ok(whole(code, Encoding::Protobuf, bytes));
    }
    object(code, resource, &stored.shown_for(resource, wanted.projection), wanted)
}

/// Returns a stored object in protobuf, if that is the format and the object needs no conversion.
pub(crate) fn stored_message(resource: &Resource, stored: &Stored, wanted: ResponseFormat) -> Result<Option<Bytes>> {
    let Some(codec) = kept_in_protobuf(resource, wanted) else { return Ok(None) };
    let message = stored.protobuf(codec).map_err(internal)?;
    Ok(Some(Envelope::wrap(codec.api_version, codec.kind, &message).into()))
}

/// Returns the protobuf codec of a kind, if protobuf is the format and stored objects need no conversion.
fn kept_in_protobuf(resource: &Resource, wanted: ResponseFormat) -> Option<&'static Codec> {
    let fits = wanted.encoding == Encoding::Protobuf && wanted.projection == Projection::Object;
    resource.codec.filter(|_| fits && !versions::is_converted(resource))
}

/// The metadata of a list.
#[derive(Default)]
pub(crate) struct ListHead {
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListHead {
    fn metadata(&self, resource: &Resource, wanted: ResponseFormat) -> Value {
        let mut metadata = json!({});
        // Lists of objects that are not stored have no version.
        if self.revision > 0 {
            metadata["resourceVersion"] = json!(self.revision.to_string());
        }
        if resource.is_custom() && wanted.projection == Projection::Object {
            metadata["continue"] = json!("");
        }
        if let Some(token) = &self.continue_token {
            metadata["continue"] = json!(token);
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// Returns a response with a list.
pub(crate) fn list(
    resource: &Resource,
    head: &ListHead,
    objects: &[std::sync::Arc<Stored>],
    wanted: ResponseFormat,
) -> Result<Response<ResponseBody>> {
    if wanted == ResponseFormat::JSON && !versions::is_converted(resource) {
        return Ok(whole(StatusCode::OK, Encoding::Json, plain_list(resource, head, objects)));
    }
    if let Some(codec) = kept_in_protobuf(resource, wanted) {
        let items: std::result::Result<Vec<Bytes>, _> = objects.iter().map(|stored| stored.protobuf(codec)).collect();
        let message = list_message(&head.metadata(resource, wanted), &items.map_err(internal)?)?;
        let bytes = Envelope::wrap(codec.api_version, &resource.list_kind, &message);
        return Ok(whole(StatusCode::OK, Encoding::Protobuf, bytes.into()));
    }
    let items: Vec<Value> = objects.iter().map(|stored| stored.shown_for(resource, wanted.projection)).collect();
    let bytes = match wanted.projection {
        Projection::Table(include) => {
            encode_value(&tables::table(resource, &items, &head.metadata(resource, wanted), include, true), wanted)
        }
        Projection::Metadata => {
            let items: Vec<Value> = items.iter().map(|item| partial(&versions::unconverted(resource, item))).collect();
            // The real server writes no empty list here.
            let items =
                if items.is_empty() && wanted.encoding != Encoding::Protobuf { Value::Null } else { json!(items) };
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": head.metadata(resource, wanted), "items": items});
            encode_metadata_list(&list, wanted)?
        }
        Projection::Object => {
            let kind = json!({"kind": resource.list_kind, "apiVersion": resource.api_version()});
            let mut list = kind;
            list["metadata"] = head.metadata(resource, wanted);
            list["items"] = Value::Array(items.into_iter().map(|item| without_kind(resource, item)).collect());
            match wanted.encoding {
                Encoding::Protobuf => protobuf_list(resource, &list)?,
                _ => encode_value(&list, wanted),
            }
        }
    };
    Ok(whole(StatusCode::OK, wanted.encoding, bytes))
}

/// Returns a JSON list of the stored bytes, without parsing them.
fn plain_list(resource: &Resource, head: &ListHead, objects: &[std::sync::Arc<Stored>]) -> Bytes {
    let size: usize = objects.iter().map(|stored| stored.json().len() + 1).sum();
    let mut out = Vec::with_capacity(size + 256);
    let (kind, version) = (json!(resource.list_kind), json!(resource.api_version()));
    let metadata = head.metadata(resource, ResponseFormat::JSON);
    if resource.is_custom() {
        out.extend_from_slice(format!("{{\"apiVersion\":{version},\"items\":[").as_bytes());
    } else {
        out.extend(order::to_vec(&json!({"kind": kind, "apiVersion": version, "metadata": metadata})));
        out.pop();
        out.extend_from_slice(b",\"items\":[");
    }
    for (index, stored) in objects.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if resource.is_custom() {
            out.extend_from_slice(stored.json());
        } else {
            write_item(resource, stored, &mut out);
        }
    }
    if resource.is_custom() {
        out.extend_from_slice(format!("],\"kind\":{kind},\"metadata\":{metadata}}}\n").as_bytes());
    } else {
        out.extend_from_slice(b"]}\n");
    }
    out.into()
}

/// Writes an object's JSON without `kind` and `apiVersion`, which items of built-in lists do not have.
fn write_item(resource: &Resource, stored: &Stored, out: &mut Vec<u8>) {
    // Objects are stored in the order of Go's fields, which starts with these two.
    let start = format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", resource.kind, resource.api_version());
    if let Some(rest) = stored.json().strip_prefix(start.as_bytes()) {
        out.push(b'{');
        out.extend_from_slice(rest);
        return;
    }
    // An earlier release of the server wrote the object to its folder in another order.
    let json = order::to_vec(&stored.value());
    out.push(b'{');
    out.extend_from_slice(json.strip_prefix(start.as_bytes()).unwrap_or_default());
}

fn without_kind(resource: &Resource, mut item: Value) -> Value {
    if let (false, Value::Object(fields)) = (resource.is_custom(), &mut item) {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    item
}

/// Returns an error response.
pub(crate) fn failure(status: &Status, wanted: ResponseFormat) -> Response<ResponseBody> {
    let code = status.http_code().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = self::status(code, status, wanted);
    if let Some(delay) = status.retry_after()
        && matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
        && let Ok(value) = HeaderValue::try_from(delay.as_secs().to_string())
    {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// Returns a response with a `Status`.
pub(crate) fn status(code: StatusCode, status: &Status, wanted: ResponseFormat) -> Response<ResponseBody> {
    let value = status_value(status);
    let bytes = match wanted.encoding {
        Encoding::Protobuf => {
            let typed = meta::Status::from(status.clone());
            Bytes::from(klient_proto::meta::encode("v1", &typed))
        }
        _ => encode_value(&value, wanted),
    };
    whole(code, wanted.encoding, bytes)
}

/// Returns a `Status` as JSON, as the real server writes it.
pub(crate) fn status_value(status: &Status) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if value.get("metadata").is_none() {
        value["metadata"] = json!({});
    }
    value
}

/// Returns a response with any JSON value, such as a discovery document.
pub(crate) fn json_value(code: StatusCode, value: &Value, wanted: ResponseFormat) -> Response<ResponseBody> {
    whole(code, wanted.encoding, encode_value(value, wanted))
}

/// Returns a response with plain text.
pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Adds warnings to a response.
pub(crate) fn with_warnings(
    mut response: Response<ResponseBody>,
    warnings: impl Iterator<Item = String>,
) -> Response<ResponseBody> {
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

/// Encodes one object, for responses and for watch events.
pub(crate) fn encode_object(resource: &Resource, object: &Value, wanted: ResponseFormat) -> Result<Bytes> {
    match (wanted.encoding, resource.codec) {
        (Encoding::Protobuf, Some(codec)) => {
            let message = klient_proto::from_value(object, codec).map_err(internal)?;
            Ok(Envelope::wrap(codec.api_version, codec.kind, &message).into())
        }
        _ => Ok(encode_value(object, wanted)),
    }
}

/// Encodes the metadata of an object.
pub(crate) fn encode_metadata(object: &Value, kind: &str, wanted: ResponseFormat) -> Result<Bytes> {
    match wanted.encoding {
        Encoding::Protobuf => {
            let message = partial_message(object)?;
            Ok(Envelope::wrap("meta.k8s.io/v1", kind, &message).into())
        }
        _ => Ok(encode_value(object, wanted)),
    }
}

fn encode_metadata_list(list: &Value, wanted: ResponseFormat) -> Result<Bytes> {
    if wanted.encoding != Encoding::Protobuf {
        return Ok(encode_value(list, wanted));
    }
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let items = items.iter().map(partial_message).collect::<Result<Vec<_>>>()?;
    let message = list_message(&list["metadata"], &items)?;
    Ok(Envelope::wrap("meta.k8s.io/v1", "PartialObjectMetadataList", &message).into())
}

fn protobuf_list(resource: &Resource, list: &Value) -> Result<Bytes> {
    let Some(codec) = resource.codec else { return Ok(encode_value(list, ResponseFormat::JSON)) };
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let items: Vec<Vec<u8>> = items
        .iter()
        .map(|item| klient_proto::from_value(item, codec))
        .collect::<std::result::Result<_, _>>()
        .map_err(internal)?;
    let message = list_message(&list["metadata"], &items)?;
    Ok(Envelope::wrap(codec.api_version, &resource.list_kind, &message).into())
}

fn partial_message(object: &Value) -> Result<Vec<u8>> {
    let mut object = managed::text::unfolded(object);
    let metadata: meta::ObjectMeta = serde_json::from_value(object["metadata"].take()).map_err(internal)?;
    let message = klient_proto::meta::encode("meta.k8s.io/v1", &klient_proto::meta::PartialObjectMetadata { metadata });
    Envelope::open(&message).map(|envelope| envelope.raw.to_vec()).map_err(internal)
}

/// Returns a protobuf list message. Metadata is field 1 and items are field 2 in every kind.
fn list_message(metadata: &Value, items: &[impl AsRef<[u8]>]) -> Result<Vec<u8>> {
    klient_proto::list_message(metadata, items).map_err(internal)
}

/// Returns an object's metadata as a `PartialObjectMetadata`.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Returns a response in JSON or YAML.
pub(crate) fn encode_value(value: &Value, wanted: ResponseFormat) -> Bytes {
    match wanted.encoding {
        Encoding::Yaml => {
            // JSON has field sets as objects.
            let value: Value = serde_json::from_slice(&order::to_vec(value)).unwrap_or_default();
            serde_saphyr::to_string(&value).unwrap_or_default().into()
        }
        _ if wanted.pretty => order::to_vec_pretty(value).into(),
        _ => {
            let mut text = order::to_vec(value);
            text.push(b'\n');
            text.into()
        }
    }
}

fn whole(code: StatusCode, encoding: Encoding, bytes: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(bytes));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub(crate) fn internal(error: impl std::fmt::Display) -> Box<Status> {
    Box::new(Status::internal_error(error))
}

/// Returns the response of a watch, whose body is a stream.
pub(crate) fn watch(encoding: Encoding, body: ResponseBody) -> Response<ResponseBody> {
    let content_type = if encoding == Encoding::Protobuf { media_type::PROTOBUF_WATCH } else { media_type::JSON };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Compresses a response if it is large enough.
pub(crate) fn compressed(response: Response<ResponseBody>) -> Response<ResponseBody> {
    use std::io::Write as _;
    let Some(bytes) = response.body().bytes().filter(|bytes| bytes.len() > COMPRESS_ABOVE) else { return response };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    // Writing to memory cannot fail.
    if encoder.write_all(bytes).is_err() {
        return response;
    }
    let Ok(compressed) = encoder.finish() else { return response };
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(http::header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let is_told = parts.headers.get_all(http::header::VARY).iter().any(|value| value == "Accept-Encoding");
    if !is_told {
        parts.headers.append(http::header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Response::from_parts(parts, ResponseBody::whole(compressed))
}

/// The size above which the real server compresses responses.
const COMPRESS_ABOVE: usize = 128 << 10;
