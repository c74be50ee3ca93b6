//! One request and its response: credentials, limits, retries where they are safe, and metrics.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_ENCODING},
};
use klient_core::Verb;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::client::{
    Client, http::body::Body, http::earlier_failures::EarlierFailures, http::gunzip::Gunzip, http::retry,
};
use crate::{Error, ErrorKind};

/// The options of one request that differ from the client's settings, stored as an extension of the request.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::client) struct SendOptions {
    /// How long to wait for the head of the response.
    pub(in crate::client) head_timeout: HeadTimeout,
    /// The maximum number of attempts.
    pub(in crate::client) max_attempts: Option<u32>,
}

/// How long to wait for the head of a response.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::client) enum HeadTimeout {
    /// The client's time limit.
    #[default]
    Default,
    /// No limit, for responses that begin when an event happens, such as a log that is followed.
    Unbounded,
}

impl Client {
    /// Sends a request, with retries where they are safe, and returns the last response.
    pub(in crate::client) async fn exchange(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Body>, Error> {
        let span = tracing::debug_span!(
            "request",
            method = %request.method(),
            path = request.uri().path(),
            otel.kind = "client",
            http.response.status_code = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        let (method, verb) = (request.method().clone(), request.extensions().get::<Verb>().copied());
        let start = Instant::now();
        let outcome = self.attempts(request, verb).instrument(span.clone()).await;
        if !span.is_disabled() {
            match &outcome {
                Ok(response) => span.record("http.response.status_code", response.status().as_u16()),
                Err(_) => span.record("otel.status_code", "ERROR"),
            };
        }
        span.in_scope(|| self.inner.metrics.took(verb, &method, start.elapsed()));
        outcome
    }

    async fn attempts(
        &self,
        request: http::Request<Vec<u8>>,
        verb: Option<Verb>,
    ) -> Result<http::Response<Body>, Error> {
        let (mut parts, body) = request.into_parts();
        let body = Bytes::from(body);
        parts.uri = self.with_prefix(parts.uri)?;
        let options = parts.extensions.get::<SendOptions>().copied().unwrap_or_default();
        let max_attempts = options.max_attempts.unwrap_or(retry::MAX_ATTEMPTS);
        let mut renewed = false;
        let mut earlier = EarlierFailures::default();
        let mut attempt = 0;
        loop {
            attempt += 1;
            if attempt > 1 || verb != Some(Verb::Watch) {
                self.throttled(verb, &parts.method).await;
            }
            let authorization = self.inner.auth.authorization().await?;
            let result = self.response_in_time(self.request(&parts, &body, authorization.as_ref()), options).await;
            let code = result.as_ref().ok().map(http::Response::status);
            self.inner.metrics.responded(&parts.method, code);
            let (wait, failure) = match result {
                Ok(mut response) => {
                    self.inner.warnings.report(response.headers());
                    if response.status() == StatusCode::UNAUTHORIZED
                        && !renewed
                        && self.inner.auth.rejected(authorization.as_ref())
                    {
                        renewed = true;
                        (Duration::ZERO, response.status().to_string())
                    } else {
                        match retry::after_response(verb, &parts.method, response.status(), response.headers()) {
                            Some(wait) if attempt < max_attempts => (wait, response.status().to_string()),
                            _ => {
                                response.extensions_mut().insert(earlier);
                                return Ok(decompressed(response));
                            }
                        }
                    }
                }
                Err(error) => match retry::after_error(verb, attempt, &error) {
                    Some(wait) if attempt < max_attempts => (wait, error.to_string()),
                    _ => return Err(earlier.added_to(error)),
                },
            };
            earlier.push(failure);
            self.inner.metrics.retried(&parts.method, code);
            tracing::debug!(attempt, ?wait, code = code.map(|code| code.as_u16()), "retrying request");
            tokio::time::sleep(wait).await;
        }
    }

    async fn throttled(&self, verb: Option<Verb>, method: &http::Method) {
        if let Some(throttle) = &self.inner.throttle {
            let waited = throttle.take().await;
            self.inner.metrics.throttled(verb, method, waited);
        }
    }

    fn request(
        &self,
        parts: &http::request::Parts,
        body: &Bytes,
        authorization: Option<&HeaderValue>,
    ) -> http::Request<Bytes> {
        let mut request = http::Request::new(body.clone());
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = parts.uri.clone();
        *request.extensions_mut() = parts.extensions.clone();
        let headers = request.headers_mut();
        headers.clone_from(&self.inner.headers);
        for name in parts.headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &parts.headers {
            headers.append(name, value.clone());
        }
        if let Some(value) = authorization
            && !parts.headers.contains_key(AUTHORIZATION)
        {
            headers.insert(AUTHORIZATION, value.clone());
        }
        request
    }

    /// Limits the wait for the head of a response, so that a server that never responds cannot hang a caller.
    async fn response_in_time(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> Result<http::Response<Body>, Error> {
        let limit = match options.head_timeout {
            HeadTimeout::Default => self.timeout(),
            HeadTimeout::Unbounded => return self.inner.transport.send(request).await,
        };
        let uri = request.uri().clone();
        tokio::time::timeout(limit, self.inner.transport.send(request)).await.unwrap_or_else(|_| {
            let what = format!("no response to {} within {} s", uri.path(), limit.as_secs_f32());
            Err(Error::new(ErrorKind::Timeout, what))
        })
    }

    fn with_prefix(&self, uri: Uri) -> Result<Uri, Error> {
        if self.inner.path_prefix.is_empty() {
            return Ok(uri);
        }
        format!("{}{uri}", self.inner.path_prefix)
            .parse()
            .map_err(|error| Error::new(ErrorKind::Config, "invalid path prefix of the server").with_source(error))
    }
}

fn decompressed(response: http::Response<Body>) -> http::Response<Body> {
    let is_gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|value| value.as_bytes() == b"gzip");
    if is_gzip { response.map(|body| Body::new(Gunzip::new(body))) } else { response }
}
