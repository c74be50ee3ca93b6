//! When a request is sent again.
//!
//! Never a write that the server may have done: only what it refused and asked to be sent later, what was never sent
//! (the transport's business), and reads.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use klient_core::Verb;

use crate::{Error, ErrorKind};

/// How often one request is sent at the most.
pub(in crate::client) const MAX_ATTEMPTS: u32 = 10;

/// How long to wait before sending a refused request again; `None` if it must not be.
pub(in crate::client) fn after_answer(verb: Option<Verb>, code: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    // These are said before anything is done. Any other server error may come after, so that only reads go again.
    let undone = matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let harmless = code.is_server_error() && is_read(verb);
    if !(undone || harmless) {
        return None;
    }
    Some(delay(headers)?.min(MAX_WAIT))
}

/// How long the server asks to wait, if it says so in seconds.
pub(in crate::client) fn delay(headers: &HeaderMap) -> Option<Duration> {
    Some(Duration::from_secs(headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?))
}

/// How long to wait before sending a request again whose answer never came; `None` if it must not be.
pub(in crate::client) fn after_error(verb: Option<Verb>, attempt: u32, error: &Error) -> Option<Duration> {
    let broke = error.kind() == ErrorKind::Transport;
    (is_read(verb) && broke && attempt < MAX_READ_ATTEMPTS).then(|| Duration::from_millis(100) * 2u32.pow(attempt))
}

fn is_read(verb: Option<Verb>) -> bool {
    matches!(verb, Some(Verb::Get | Verb::List))
}

const MAX_READ_ATTEMPTS: u32 = 3;
/// Longer than any server asks for in earnest.
const MAX_WAIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(retry_after: Option<&str>) -> HeaderMap {
        retry_after.map(|value| (RETRY_AFTER, value.parse().unwrap())).into_iter().collect()
    }

    #[test]
    fn waits_as_long_as_the_server_asks() {
        let waits =
            |code: u16, value| after_answer(Some(Verb::Create), StatusCode::from_u16(code).unwrap(), &headers(value));
        assert_eq!(waits(429, Some("2")), Some(Duration::from_secs(2)));
        assert_eq!(waits(503, Some("1")), Some(Duration::from_secs(1)));
        assert_eq!(waits(429, Some("86400")), Some(MAX_WAIT));
        assert_eq!(waits(429, None), None);
        assert_eq!(waits(500, None), None);
        assert_eq!(waits(409, Some("1")), None);
        assert_eq!(waits(503, Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
    }

    #[test]
    fn sends_a_write_again_only_if_nothing_was_done() {
        let timeout = StatusCode::GATEWAY_TIMEOUT;
        assert_eq!(after_answer(Some(Verb::Create), timeout, &headers(Some("1"))), None);
        assert_eq!(after_answer(None, timeout, &headers(Some("1"))), None);
        assert_eq!(after_answer(Some(Verb::List), timeout, &headers(Some("1"))), Some(Duration::from_secs(1)));
    }

    #[test]
    fn sends_only_reads_again_when_no_answer_came() {
        let broke = Error::new(ErrorKind::Transport, "the connection broke");
        assert!(after_error(Some(Verb::Get), 1, &broke).is_some());
        assert!(after_error(Some(Verb::List), 1, &broke).is_some());
        for verb in [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection, Verb::Watch] {
            assert_eq!(after_error(Some(verb), 1, &broke), None, "{verb:?}");
        }
        assert_eq!(after_error(Some(Verb::Get), MAX_READ_ATTEMPTS, &broke), None);
        assert_eq!(after_error(Some(Verb::Get), 1, &Error::new(ErrorKind::Auth, "no token")), None);
    }
}
