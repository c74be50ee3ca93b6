//! What a program answers: an `ExecCredential` with a status, in JSON or YAML.
//!
//! Read field by field, because the errors of a typed parser would show what it found.

use std::time::SystemTime;

use klient_core::parse_time;
use serde_json::Value;

use crate::{
    Error,
    client::{
        auth::{Credential, bearer},
        config::{ClientCertificate, ExecApiVersion, Pem, kubeconfig::read_text},
        http::transport::check_identity,
    },
};

/// Why an answer is no credential.
pub(super) enum Wrong {
    /// In words that follow the program's name.
    Answer(String),
    Certificate(Error),
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self::Answer(why)
    }
}

pub(super) fn read(output: &[u8], version: ExecApiVersion) -> Result<Credential, Wrong> {
    let answer = match read_text(output) {
        Ok(answer @ Value::Object(_)) => answer,
        _ if output.trim_ascii().is_empty() => return Err("answered nothing".to_owned().into()),
        _ => return Err("answered with neither a JSON nor a YAML object".to_owned().into()),
    };
    let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default();
    if (text("kind"), text("apiVersion")) != (KIND, version.as_str()) {
        let found = format!("{} of {}", named(text("kind")), named(text("apiVersion")));
        return Err(format!("answered with {found}, not with {KIND} of {}", version.as_str()).into());
    }
    let status = match answer.get("status") {
        Some(Value::Object(status)) => status,
        None | Some(Value::Null) => return Err("answered without a status".to_owned().into()),
        Some(_) => return Err("answered with a status that is no object".to_owned().into()),
    };
    let field = |field: &str| match status.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("answered with a status.{field} that is no text")),
    };
    let expires = field("expirationTimestamp")?.map(|text| {
        let time =
            parse_time(text).map_err(|_| "answered with a status.expirationTimestamp that is no time".to_owned());
        time.map(|time| SystemTime::from(time.0))
    });
    let header = field("token")?.map(|token| {
        bearer(token).map_err(|_| "answered with a token that holds characters that no header may".to_owned())
    });
    let certificate = match (field("clientCertificateData")?, field("clientKeyData")?) {
        (Some(certificate), Some(key)) => {
            let pem = |text: &str| Pem::Data(text.as_bytes().to_vec());
            Some(ClientCertificate::new(pem(certificate), pem(key)))
        }
        (None, None) => None,
        (Some(_), None) => return Err("answered with a certificate but no key".to_owned().into()),
        (None, Some(_)) => return Err("answered with a key but no certificate".to_owned().into()),
    };
    if header.is_none() && certificate.is_none() {
        return Err("answered with neither a token nor a certificate".to_owned().into());
    }
    if let Some(certificate) = &certificate {
        check_identity(certificate).map_err(Wrong::Certificate)?;
    }
    Ok(Credential { header: header.transpose()?, certificate, expires: expires.transpose()? })
}

/// A name that somebody else chose, cut to what a message can bear.
fn named(text: &str) -> String {
    match text {
        "" => "nothing".to_owned(),
        text => format!("{:?}", text.chars().take(100).collect::<String>()),
    }
}

const KIND: &str = "ExecCredential";

#[cfg(test)]
mod tests {
    use super::*;

    fn why(answer: &str) -> String {
        match read(answer.as_bytes(), ExecApiVersion::V1) {
            Ok(credential) => panic!("{credential:?}"),
            Err(Wrong::Answer(why)) => why,
            Err(Wrong::Certificate(error)) => format!("certificate: {error}"),
        }
    }

    fn status(status: &str) -> String {
        format!(
            "{{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {status}}}"
        )
    }

    #[test]
    fn says_what_is_wrong_and_shows_no_secret() {
        for (answer, expected) in [
            (String::new(), "answered nothing"),
            ("s3cret".to_owned(), "neither a JSON nor a YAML object"),
            ("{\"kind\": s3cret".to_owned(), "neither a JSON nor a YAML object"),
            ("\u{0}\u{1}".to_owned(), "neither a JSON nor a YAML object"),
            ("{}".to_owned(), "nothing of nothing, not with ExecCredential of client.authentication.k8s.io/v1"),
            (status("null"), "without a status"),
            (status("\"s3cret\""), "a status that is no object"),
            (status("{}"), "neither a token nor a certificate"),
            (status("{\"token\": \"\"}"), "neither a token nor a certificate"),
            (status("{\"token\": [\"s3cret\"]}"), "status.token that is no text"),
            (status("{\"token\": \"s3cret\\n\"}"), "characters that no header may"),
            (status("{\"token\": \"s3cret\", \"expirationTimestamp\": \"s3cret\"}"), "that is no time"),
            (status("{\"clientCertificateData\": \"s3cret\"}"), "a certificate but no key"),
            (status("{\"clientKeyData\": \"s3cret\"}"), "a key but no certificate"),
            (status("{\"clientCertificateData\": \"s3cret\", \"clientKeyData\": \"s3cret\"}"), "certificate: "),
        ] {
            let why = why(&answer);
            assert!(why.contains(expected) && !why.contains("s3cret"), "{answer}: {why}");
        }
    }

    #[test]
    fn another_version_or_kind_is_refused_by_name() {
        let why = why("{\"kind\": \"Pod\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\"}");
        assert!(why.contains("\"Pod\" of \"client.authentication.k8s.io/v1beta1\""), "{why}");
        assert!(why.ends_with("not with ExecCredential of client.authentication.k8s.io/v1"), "{why}");
    }

    #[test]
    fn reads_yaml_too() {
        let yaml = "kind: ExecCredential\napiVersion: client.authentication.k8s.io/v1\nstatus:\n  token: t\n  \
                    expirationTimestamp: 2026-01-01T00:00:00Z\n";
        let Ok(credential) = read(yaml.as_bytes(), ExecApiVersion::V1) else { panic!("not read") };
        assert_eq!(credential.header.unwrap(), "Bearer t");
        let expires = credential.expires.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(expires.as_secs(), 1_767_225_600);
    }
}
