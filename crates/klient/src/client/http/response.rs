//! The format of a response, and the error of an unsuccessful one.

use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, header::CONTENT_TYPE};
use klient_core::{Resource, Status, media_type};
use klient_proto::{Envelope, RawObject};

use crate::Error;
use crate::client::{http::body::Body, http::earlier_failures::EarlierFailures, http::retry};

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Encoding {
    Json,
    Protobuf,
    /// Anything else, such as HTML from a proxy.
    Other,
}

impl Encoding {
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

/// Reads an unsuccessful response as an error.
pub(in crate::client) async fn error(response: http::Response<Body>, limit: Duration) -> Error {
    let (code, encoding) = (response.status(), Encoding::of(&response));
    let delay = retry::delay(response.headers());
    let earlier = response.extensions().get::<EarlierFailures>().cloned().unwrap_or_default();
    // Without a readable body, the error has only the status code.
    let body = tokio::time::timeout(limit, response.into_body().collect(MAX_ERROR_BODY)).await;
    let error = Error::from(status(code, encoding, &body.unwrap_or(Ok(Bytes::new())).unwrap_or_default()));
    let error = match delay {
        Some(delay) if error.retry_after().is_none() => error.with_retry_after(delay),
        _ => error,
    };
    earlier.added_to(error)
}

/// Reads the body of an unsuccessful response.
pub(in crate::client) fn status(code: StatusCode, encoding: Encoding, body: &Bytes) -> Status {
    if encoding == Encoding::Protobuf
        && let Ok(status) = klient_proto::meta::decode::<k8s_openapi::apimachinery::pkg::apis::meta::v1::Status>(body)
    {
        return status.into();
    }
    Status::from_http(code.as_u16(), &String::from_utf8_lossy(body))
}

/// Decodes one object of a list or watch. An error names the object.
pub(in crate::client) fn decode<K: Resource>(object: &RawObject) -> Result<K, Error> {
    object.decode().map_err(|error| {
        let what = format!("cannot decode {} {}", K::KIND, object.key());
        Error::from(error).context(what.trim_start().to_owned())
    })
}

/// Returns whether the body of a successful response is a `Status` instead of the requested object.
pub(in crate::client) fn is_status(encoding: Encoding, body: &[u8]) -> bool {
    match encoding {
        Encoding::Protobuf => Envelope::open(body).is_ok_and(|envelope| envelope.kind == "Status"),
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

/// Servers send a few hundred bytes; `Status::from_http` truncates a proxy's page.
const MAX_ERROR_BODY: usize = 1 << 20;
