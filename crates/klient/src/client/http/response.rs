//! What an answer means: an object, or an error with the server's reasons.

use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, header::CONTENT_TYPE};
use klient_core::{Resource, Status, media_type};
use klient_proto::{Envelope, RawObject};

use crate::Error;
use crate::client::{http::body::Body, http::retry};

/// The form that an answer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Form {
    Json,
    Protobuf,
    /// HTML from a proxy, for example.
    Other,
}

impl Form {
    pub(in crate::client) fn of<T>(response: &http::Response<T>) -> Self {
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case(media_type::PROTOBUF) {
            Self::Protobuf
        } else if essence.eq_ignore_ascii_case(media_type::JSON) {
            Self::Json
        } else {
            Self::Other
        }
    }
}

/// Reads an answer that is not a success as an error.
pub(in crate::client) async fn error(response: http::Response<Body>, limit: Duration) -> Error {
    let (code, form) = (response.status(), Form::of(&response));
    let delay = retry::delay(response.headers());
    // A body that cannot be read, or does not come, leaves the code to speak for itself.
    let body = tokio::time::timeout(limit, response.into_body().collect(MAX_ERROR_BODY)).await;
    let error = Error::from(status(code, form, &body.unwrap_or(Ok(Bytes::new())).unwrap_or_default()));
    match delay {
        Some(delay) if error.retry_after().is_none() => error.with_retry_after(delay),
        _ => error,
    }
}

/// Reads the body of an answer that is not a success.
pub(in crate::client) fn status(code: StatusCode, form: Form, body: &Bytes) -> Status {
    if form == Form::Protobuf
        && let Ok(status) = klient_proto::meta::decode::<k8s_openapi::apimachinery::pkg::apis::meta::v1::Status>(body)
    {
        return status.into();
    }
    Status::from_http(code.as_u16(), &String::from_utf8_lossy(body))
}

/// The typed form of an object out of many; an error names it.
pub(in crate::client) fn decode<K: Resource>(object: &RawObject) -> Result<K, Error> {
    object.decode().map_err(|error| {
        let what = format!("{} {} cannot be decoded", K::KIND, object.key());
        Error::from(error).context(what.trim_start().to_owned())
    })
}

/// Whether the body of a success is a `Status` instead of the object that was asked for.
pub(in crate::client) fn is_status(form: Form, body: &[u8]) -> bool {
    match form {
        Form::Protobuf => Envelope::open(body).is_ok_and(|envelope| envelope.kind == "Status"),
        _ => {
            #[derive(serde::Deserialize)]
            struct Kind {
                #[serde(default)]
                kind: String,
            }
            serde_json::from_slice::<Kind>(body).is_ok_and(|found| found.kind == "Status")
        }
    }
}

/// Servers send a few hundred bytes; a proxy's page is cut by `Status::from_http`.
const MAX_ERROR_BODY: usize = 1 << 20;
