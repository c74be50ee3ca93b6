//! The webhook that scripts register. Its path says what it does, for the real server and for the embedded one.

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::script::Peer;

/// The URL under which the embedded server calls [`respond`] without a socket.
pub const URL: &str = "https://127.0.0.1:9443";
/// A certificate for registrations that are called without TLS.
pub static AUTHORITY: LazyLock<String> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    STANDARD.encode(made.cert.pem())
});

/// Serves the webhook by TLS on the loopback, until the process ends.
pub async fn serve() -> std::io::Result<Peer> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).map_err(std::io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(std::io::Error::other)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(|request: Request<Incoming>| async {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                    Ok::<_, Infallible>(respond(&Request::from_parts(parts, body)).await.map(Full::new))
                });
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    Ok(Peer { url, authority: STANDARD.encode(made.cert.pem()) })
}

/// Responds as the path says.
pub async fn respond(request: &Request<Bytes>) -> Response<Bytes> {
    let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let cue = request.uri().path().trim_start_matches('/');
    if cue == "slow" {
        std::future::pending::<()>().await;
    }
    if review["kind"] == "ConversionReview" {
        return converted(cue, &review["request"]);
    }
    let request = &review["request"];
    match cue.split_once('/').unwrap_or((cue, "")) {
        ("status", code) => plain(code.parse().unwrap_or(500), "boom"),
        // A text in base64, because paths of URLs have no braces.
        ("text64", text) => {
            let text = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
            typed(200, "application/json", &String::from_utf8_lossy(&text))
        }
        ("empty", _) => plain(200, ""),
        ("whole", cue) => json(&whole(cue, request)),
        (cue, rest) => {
            let mut response = response(cue, rest, request);
            if response.get("uid").is_none() {
                response["uid"] = request["uid"].clone();
            }
            json(&json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}))
        }
    }
}

/// Returns the response of a review.
fn response(cue: &str, rest: &str, request: &Value) -> Value {
    let denied = |status: Value| json!({"allowed": false, "status": status});
    let patch = |operations: Value| patched("JSONPatch", &operations.to_string());
    match cue {
        "deny" => denied(json!({"message": "no"})),
        "deny-code" => denied(json!({"code": rest.parse::<u16>().unwrap_or(0), "message": "no"})),
        "deny-reason" => denied(json!({"reason": rest, "code": 409})),
        "deny-details" => denied(json!({"code": 422, "reason": "Invalid", "message": "no", "details": {"name": "n",
            "kind": "k", "causes": [{"reason": "FieldValueInvalid", "message": "bad", "field": "data.a"}]}})),
        "deny-success" => denied(json!({"status": "Success", "code": 200, "message": "no"})),
        "deny-silently" => json!({"allowed": false}),
        "show" => denied(json!({"message": shown(request).to_string()})),
        "warn" => json!({"allowed": true, "warnings": ["first", "second", "first", "", "a \"quoted\" one"]}),
        "deny-warn" => json!({"allowed": false, "warnings": ["beware"]}),
        "uid" => json!({"allowed": true, "uid": "bad"}),
        "no-uid" => json!({"allowed": true, "uid": ""}),
        "wrong-type" => json!({"allowed": "yes"}),
        "add" => patch(json!([{"op": "add", "path": format!("/data/{rest}"), "value": "added"}])),
        "add-once" if request["object"]["data"].get(rest).is_some() => json!({"allowed": true}),
        "add-once" => patch(json!([{"op": "add", "path": format!("/data/{rest}"), "value": "added"}])),
        "count" => {
            let count = request["object"]["data"][rest].as_str().unwrap_or("").len();
            patch(json!([{"op": "add", "path": format!("/data/{rest}"), "value": "x".repeat(count + 1)}]))
        }
        "label" => patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}])),
        "rename" => patch(json!([{"op": "replace", "path": "/metadata/name", "value": "renamed"}])),
        // A patch in base64, because paths of URLs have no quotes.
        "patch64" => {
            let patch = URL_SAFE_NO_PAD.decode(rest).unwrap_or_default();
            patched("JSONPatch", &String::from_utf8_lossy(&patch))
        }
        "patch-type" => patched(rest, "[]"),
        "merge" => patched("MergePatch", "[{\"op\":\"add\",\"path\":\"/data/a\",\"value\":\"b\"}]"),
        "patch-alone" => json!({"allowed": true, "patch": STANDARD.encode("[]")}),
        "type-alone" => json!({"allowed": true, "patchType": "JSONPatch"}),
        "empty-patch" => patched("JSONPatch", "[]"),
        "annotate" => json!({"allowed": true, "auditAnnotations": {"a": "b"}}),
        _ => json!({"allowed": true}),
    }
}

fn patched(kind: &str, patch: &str) -> Value {
    json!({"allowed": true, "patchType": kind, "patch": STANDARD.encode(patch)})
}

/// Returns a body that is not a good review.
fn whole(cue: &str, request: &Value) -> Value {
    let good = json!({"uid": request["uid"], "allowed": true});
    match cue {
        "no-response" => json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
        "no-kind" => json!({"response": good}),
        "other-version" => {
            json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": good})
        }
        "other-kind" => json!({"apiVersion": "v1", "kind": "Pod", "response": good}),
        "list" => json!([1]),
        "text" => json!("text"),
        _ => Value::Null,
    }
}

/// Returns what is the same on both servers in a request.
fn shown(request: &Value) -> Value {
    let keys = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    let mut shown = json!({});
    for name in
        ["kind", "resource", "subResource", "requestKind", "requestSubResource", "operation", "dryRun", "options"]
    {
        shown[name] = request[name].clone();
    }
    shown["name"] = json!(request["name"].as_str().is_some_and(|name| !name.is_empty()));
    shown["namespace"] = json!(request["namespace"].as_str().is_some_and(|name| !name.is_empty()));
    for name in ["object", "oldObject"] {
        let object = &request[name];
        shown[name] = json!([object["kind"], keys(object), keys(&object["metadata"])]);
    }
    shown
}

/// Responds to a review of conversions.
fn converted(cue: &str, request: &Value) -> Response<Bytes> {
    let to = &request["desiredAPIVersion"];
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let convert = |mut object: Value| {
        object["apiVersion"] = to.clone();
        let (from, field) = if to.as_str().is_some_and(|to| to.ends_with("v2")) { ("a", "b") } else { ("b", "a") };
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][field] = value;
        }
        object
    };
    let mut objects: Vec<Value> = objects.into_iter().map(convert).collect();
    let mut result = json!({"status": "Success"});
    match cue {
        "convert-fail" => result = json!({"status": "Failure", "message": "cannot"}),
        "convert-fail-silently" => result = json!({"status": "Failure"}),
        "convert-none" => objects.clear(),
        "convert-version" => objects.iter_mut().for_each(|object| object["apiVersion"] = json!("other/v1")),
        "convert-kind" => objects.iter_mut().for_each(|object| object["kind"] = json!("Other")),
        "convert-name" => objects.iter_mut().for_each(|object| object["metadata"]["name"] = json!("other")),
        "convert-metadata" => objects.iter_mut().for_each(|object| {
            object["metadata"]["labels"] = json!({"by": "webhook"});
            object["metadata"]["finalizers"] = json!(["example.com/f"]);
        }),
        "convert-text" => return typed(200, "application/json", "nonsense"),
        "convert-status" => return plain(500, "boom"),
        _ => {}
    }
    let mut response = json!({"uid": request["uid"], "result": result, "convertedObjects": objects});
    if cue == "convert-uid" {
        response["uid"] = json!("bad");
    }
    let mut review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
    if cue == "convert-no-response" {
        review["response"] = Value::Null;
    }
    if cue == "convert-no-kind" {
        review = json!({"response": review["response"]});
    }
    json(&review)
}

fn json(body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

fn plain(code: u16, text: &str) -> Response<Bytes> {
    typed(code, "text/plain", text)
}

fn typed(code: u16, content_type: &'static str, text: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::copy_from_slice(text.as_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", http::HeaderValue::from_static(content_type));
    response
}
