//! One discovery document, with its ETag.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use klient_core::{Verb, media_type};
use serde::de::DeserializeOwned;

use crate::{Error, ErrorKind, client::Client};

/// A document as received.
#[derive(Debug)]
pub(in crate::client) struct Document {
    path: String,
    content_type: String,
    pub(in crate::client) etag: Option<String>,
    pub(in crate::client) body: Bytes,
}

impl Document {
    /// Requests a document.
    pub(in crate::client) async fn fetch(client: &Client, path: &str, accept: &str) -> Result<Self, Error> {
        let fetched = Self::fetch_changed(client, path, accept, None).await?;
        fetched.ok_or_else(|| {
            Error::new(ErrorKind::Decode, format!("{path}: unexpected 304 Not Modified without an ETag in the request"))
        })
    }

    /// Requests a document unless it still has that ETag.
    pub(in crate::client) async fn fetch_changed(
        client: &Client,
        path: &str,
        accept: &str,
        etag: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let request = request(path, accept, etag)?;
        let fetched = async {
            let response = match client.send(request).await {
                Ok(response) => response,
                Err(error) if etag.is_some() && code_of(&error) == Some(304) => return Ok(None),
                Err(error) => return Err(error),
            };
            let content_type = text(response.headers(), &CONTENT_TYPE).unwrap_or_default();
            let etag = text(response.headers(), &ETAG);
            let body = response.into_body().collect(MAX_DOCUMENT).await?;
            Ok(Some(Self { path: path.to_owned(), content_type, etag, body }))
        };
        tokio::time::timeout(TIMEOUT, fetched).await.unwrap_or_else(|_| {
            let what = format!("no complete response to {path} within {} s", TIMEOUT.as_secs());
            Err(Error::new(ErrorKind::Timeout, what))
        })
    }

    /// Decodes the document as JSON. Another content type is an error, even if the body is JSON.
    pub(in crate::client) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if !media_type::is_json(&self.content_type) {
            let what =
                format!("cannot decode {}: expected JSON, found content type {:?}", self.path, self.content_type);
            return Err(Error::new(ErrorKind::Decode, what));
        }
        self.json_of_any_type()
    }

    /// Decodes the document as JSON, whatever its content type.
    pub(in crate::client) fn json_of_any_type<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.malformed().with_source(error))
    }

    /// Returns an error about malformed content.
    pub(in crate::client) fn malformed(&self) -> Error {
        Error::new(ErrorKind::Decode, format!("cannot decode {}: malformed JSON", self.path))
    }
}

/// Returns the status code of an error, if it is a response of the server.
pub(in crate::client) fn code_of(error: &Error) -> Option<i32> {
    error.status().map(|status| status.code)
}

fn request(path: &str, accept: &str, etag: Option<&str>) -> Result<http::Request<Vec<u8>>, Error> {
    let invalid = |error: http::Error| {
        Error::new(ErrorKind::Invalid, format!("invalid path of a document: {path:?}")).with_source(error)
    };
    let mut request = http::Request::get(path).header(ACCEPT, accept).extension(Verb::Get);
    // An ETag that is not a valid header is ignored.
    if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
        request = request.header(IF_NONE_MATCH, etag);
    }
    request.body(Vec::new()).map_err(invalid)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// The same as client-go's, because servers query their aggregated servers in turn.
const TIMEOUT: Duration = Duration::from_secs(32);
/// Far above the largest document of a server with thousands of custom resources.
const MAX_DOCUMENT: usize = 256 << 20;
