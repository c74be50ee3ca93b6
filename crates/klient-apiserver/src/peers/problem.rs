//! Failures of calls, in the words of Go's HTTP client and of client-go.

use std::io::{self, ErrorKind};

use rustls::CertificateError;

/// Returns why a connection could not be opened.
pub(super) fn of_dial(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns why a TLS handshake failed.
pub(super) fn of_tls(error: &io::Error, server: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(inner) = inner else {
        return if error.kind() == ErrorKind::UnexpectedEof { "EOF".to_owned() } else { error.to_string() };
    };
    match inner {
        rustls::Error::InvalidCertificate(why) => {
            format!("tls: failed to verify certificate: x509: {}", of_certificate(why, server))
        }
        rustls::Error::InvalidMessage(_) => "tls: first record does not look like a TLS handshake".to_owned(),
        other => format!("tls: {other}"),
    }
}

fn of_certificate(why: &CertificateError, server: &str) -> String {
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForName => not_valid_for(&[], server),
        CertificateError::NotValidForNameContext { presented, .. } => not_valid_for(presented, server),
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => "certificate has expired or is not yet valid".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        other => other.to_string(),
    }
}

/// Returns why a certificate is not for a server. `presented` are the names that it has, such as `DnsName("a")`.
fn not_valid_for(presented: &[String], server: &str) -> String {
    let names = |sort: &str| -> Vec<&str> {
        let quoted = presented.iter().filter_map(|name| name.strip_prefix(sort)?.strip_suffix(')'));
        quoted.map(|name| name.trim_matches(['(', '"'])).collect()
    };
    if server.parse::<std::net::IpAddr>().is_ok() {
        let addresses = names("IpAddress");
        if addresses.is_empty() {
            return format!("cannot validate certificate for {server} because it doesn't contain any IP SANs");
        }
        return format!("certificate is valid for {}, not {server}", addresses.join(", "));
    }
    match names("DnsName") {
        names if names.is_empty() => format!("certificate is not valid for any names, but wanted to match {server}"),
        names => format!("certificate is valid for {}, not {server}", names.join(", ")),
    }
}

/// Returns why a request got no response.
pub(super) fn of_exchange(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response".to_owned();
    }
    error.to_string()
}

/// Returns client-go's error for a response that is not a success.
pub(super) fn of_response(code: u16, is_text: bool, body: &[u8]) -> String {
    if let Ok(status) = serde_json::from_slice::<serde_json::Value>(body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    let message = if is_text { String::from_utf8_lossy(body).trim().to_owned() } else { "unknown".to_owned() };
    let fixed = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return message,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if message.is_empty() || message == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return message,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => return format!("an error on the server ({message:?}) has prevented the request from succeeding"),
        _ => return format!("the server responded with the status code {code} but did not return more information"),
    };
    fixed.to_owned()
}
