//! The response of a program: an `ExecCredential` with a status, in JSON or YAML.
//!
//! It is read field by field, because the errors of a typed parser would quote the secrets that it found.

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

/// The reason why a response contains no credential.
pub(super) enum Invalid {
    /// A message that follows the program's name.
    Response(String),
    Certificate(Error),
}

impl From<String> for Invalid {
    fn from(why: String) -> Self {
        Self::Response(why)
    }
}

pub(super) fn read(output: &[u8], version: ExecApiVersion) -> Result<Credential, Invalid> {
    let response = match read_text(output) {
        Ok(response @ Value::Object(_)) => response,
        _ if output.trim_ascii().is_empty() => return Err("wrote no response to standard output".to_owned().into()),
        _ => return Err("returned neither a JSON nor a YAML object".to_owned().into()),
    };
    let text = |field: &str| response.get(field).and_then(Value::as_str).unwrap_or_default();
    if (text("kind"), text("apiVersion")) != (KIND, version.as_str()) {
        let found = format!("{} in {}", named(text("kind")), named(text("apiVersion")));
        return Err(format!("returned {found}, expected {KIND} in {}", version.as_str()).into());
    }
    let status = match response.get("status") {
        Some(Value::Object(status)) => status,
        None | Some(Value::Null) => return Err("returned a response without a status".to_owned().into()),
        Some(_) => return Err("returned a status that is not an object".to_owned().into()),
    };
    let field = |field: &str| match status.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("returned a status.{field} that is not a string")),
    };
    let expires = field("expirationTimestamp")?.map(|text| {
        let time = parse_time(text)
            .map_err(|_| "returned a status.expirationTimestamp that is not an RFC 3339 time".to_owned());
        time.map(|time| SystemTime::from(time.0))
    });
    let header = field("token")?.map(|token| {
        bearer(token).map_err(|_| "returned a token with characters that are not allowed in a header".to_owned())
    });
    let certificate = match (field("clientCertificateData")?, field("clientKeyData")?) {
        (Some(certificate), Some(key)) => {
            let pem = |text: &str| Pem::Data(text.as_bytes().to_vec());
            Some(ClientCertificate::new(pem(certificate), pem(key)))
        }
        (None, None) => None,
        (Some(_), None) => return Err("returned a certificate but no key".to_owned().into()),
        (None, Some(_)) => return Err("returned a key but no certificate".to_owned().into()),
    };
    if header.is_none() && certificate.is_none() {
        return Err("returned neither a token nor a certificate".to_owned().into());
    }
    if let Some(certificate) = &certificate {
        check_identity(certificate).map_err(Invalid::Certificate)?;
    }
    Ok(Credential { header: header.transpose()?, certificate, expires: expires.transpose()? })
}

/// Quotes a name from the response, truncated for use in a message.
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

    fn why(response: &str) -> String {
        match read(response.as_bytes(), ExecApiVersion::V1) {
            Ok(credential) => panic!("{credential:?}"),
            Err(Invalid::Response(why)) => why,
            Err(Invalid::Certificate(error)) => format!("certificate: {error}"),
        }
    }

    fn status(status: &str) -> String {
        format!(
            "{{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {status}}}"
        )
    }

    #[test]
    fn error_names_the_problem_without_the_secret() {
        for (response, expected) in [
            (String::new(), "wrote no response"),
            ("s3cret".to_owned(), "neither a JSON nor a YAML object"),
            ("{\"kind\": s3cret".to_owned(), "neither a JSON nor a YAML object"),
            ("\u{0}\u{1}".to_owned(), "neither a JSON nor a YAML object"),
            ("{}".to_owned(), "nothing in nothing, expected ExecCredential in client.authentication.k8s.io/v1"),
            (status("null"), "without a status"),
            (status("\"s3cret\""), "a status that is not an object"),
            (status("{}"), "neither a token nor a certificate"),
            (status("{\"token\": \"\"}"), "neither a token nor a certificate"),
            (status("{\"token\": [\"s3cret\"]}"), "status.token that is not a string"),
            (status("{\"token\": \"s3cret\\n\"}"), "characters that are not allowed in a header"),
            (status("{\"token\": \"s3cret\", \"expirationTimestamp\": \"s3cret\"}"), "that is not an RFC 3339 time"),
            (status("{\"clientCertificateData\": \"s3cret\"}"), "a certificate but no key"),
            (status("{\"clientKeyData\": \"s3cret\"}"), "a key but no certificate"),
            (status("{\"clientCertificateData\": \"s3cret\", \"clientKeyData\": \"s3cret\"}"), "certificate: "),
        ] {
            let why = why(&response);
            assert!(why.contains(expected) && !why.contains("s3cret"), "{response}: {why}");
        }
    }

    #[test]
    fn response_of_another_version_or_kind_is_rejected() {
        let why = why("{\"kind\": \"Pod\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\"}");
        assert!(why.contains("\"Pod\" in \"client.authentication.k8s.io/v1beta1\""), "{why}");
        assert!(why.ends_with("expected ExecCredential in client.authentication.k8s.io/v1"), "{why}");
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
