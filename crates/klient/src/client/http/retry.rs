//! The conditions for retries.
//!
//! A write that the server may have executed is never retried. Retried are requests that the server rejected with 429
//! and a delay, requests that were never sent (by the transport), and reads.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header::RETRY_AFTER};
use klient_core::Verb;

use crate::{Error, ErrorKind, retry::MAX_RETRY_AFTER};

/// The maximum number of attempts of one request.
pub(in crate::client) const MAX_ATTEMPTS: u32 = 10;

/// Returns the delay before a rejected request is retried, or `None` if it must not be.
pub(in crate::client) fn after_response(
    verb: Option<Verb>,
    method: &Method,
    code: StatusCode,
    headers: &HeaderMap,
) -> Option<Duration> {
    // Only 429 means that nothing was executed. A proxy or an aggregator also responds with 503 if it lost the connection
    // after it had forwarded the request.
    let retried = match code {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => *method == Method::GET || *method == Method::HEAD,
        code => code.is_server_error() && is_read(verb),
    };
    if retried { delay(headers) } else { None }
}

/// Returns the delay that the server requests in seconds, if any, at most [`MAX_RETRY_AFTER`].
pub(in crate::client) fn delay(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

/// Returns the delay before a request without a response is retried, or `None` if it must not be.
pub(in crate::client) fn after_error(verb: Option<Verb>, attempt: u32, error: &Error) -> Option<Duration> {
    let broke = error.kind() == ErrorKind::Transport;
    (is_read(verb) && broke && attempt < MAX_READ_ATTEMPTS).then(|| Duration::from_millis(100) * 2u32.pow(attempt))
}

fn is_read(verb: Option<Verb>) -> bool {
    matches!(verb, Some(Verb::Get | Verb::List))
}

const MAX_READ_ATTEMPTS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(retry_after: Option<&str>) -> HeaderMap {
        retry_after.map(|value| (RETRY_AFTER, value.parse().unwrap())).into_iter().collect()
    }

    fn after(method: &Method, verb: Option<Verb>, code: u16, value: Option<&str>) -> Option<Duration> {
        after_response(verb, method, StatusCode::from_u16(code).unwrap(), &headers(value))
    }

    #[test]
    fn retry_waits_for_the_delay_of_the_server() {
        let waits = |code: u16, value| after(&Method::GET, Some(Verb::Get), code, value);
        assert_eq!(waits(429, Some("2")), Some(Duration::from_secs(2)));
        assert_eq!(waits(503, Some("1")), Some(Duration::from_secs(1)));
        assert_eq!(waits(429, Some("86400")), Some(MAX_RETRY_AFTER));
        assert_eq!(waits(429, None), None);
        assert_eq!(waits(500, None), None);
        assert_eq!(waits(409, Some("1")), None);
        assert_eq!(waits(503, Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
    }

    #[test]
    fn write_is_retried_only_if_it_was_not_executed() {
        let second = Some(Duration::from_secs(1));
        for (code, write, read, watch) in
            [(429, second, second, second), (503, None, second, second), (504, None, second, None)]
        {
            assert_eq!(after(&Method::POST, Some(Verb::Create), code, Some("1")), write, "{code}");
            assert_eq!(after(&Method::PUT, None, code, Some("1")), write, "{code}");
            assert_eq!(after(&Method::GET, Some(Verb::List), code, Some("1")), read, "{code}");
            assert_eq!(after(&Method::GET, Some(Verb::Watch), code, Some("1")), watch, "{code}");
        }
    }

    #[test]
    fn only_reads_are_retried_without_a_response() {
        let broke = Error::new(ErrorKind::Transport, "connection broke");
        assert!(after_error(Some(Verb::Get), 1, &broke).is_some());
        assert!(after_error(Some(Verb::List), 1, &broke).is_some());
        for verb in [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection, Verb::Watch] {
            assert_eq!(after_error(Some(verb), 1, &broke), None, "{verb:?}");
        }
        assert_eq!(after_error(Some(Verb::Get), MAX_READ_ATTEMPTS, &broke), None);
        assert_eq!(after_error(Some(Verb::Get), 1, &Error::new(ErrorKind::Auth, "no token")), None);
    }
}
