//! Validation of the conversion between versions of a custom kind.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use klient_core::StatusCause;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;

use crate::causes::Causes;

/// Validates `spec.conversion`.
pub(super) fn validate(definition: &Value, old: Option<&Value>, causes: &mut Causes) {
    let Some(conversion) = definition["spec"].get("conversion") else { return };
    let path = "spec.conversion";
    let strategy = conversion["strategy"].as_str().unwrap_or_default();
    match strategy {
        "" => causes.add(|| StatusCause::required(format!("{path}.strategy"), "")),
        "None" | "Webhook" => {}
        other => causes.add(|| StatusCause::not_supported(format!("{path}.strategy"), other, &["None", "Webhook"])),
    }
    let client = conversion["webhook"].get("clientConfig");
    let client_path = format!("{path}.webhookClientConfig");
    if strategy != "Webhook" {
        if client.is_some() {
            let detail = "should not be set when strategy is not set to Webhook";
            causes.add(|| StatusCause::forbidden(client_path, detail));
        }
        if conversion["webhook"]["conversionReviewVersions"].as_array().is_some_and(|versions| !versions.is_empty()) {
            let detail = "should not be set when strategy is not set to Webhook";
            causes.add(|| StatusCause::forbidden(format!("{path}.conversionReviewVersions"), detail));
        }
        return;
    }
    match client {
        None => causes.add(|| StatusCause::required(client_path, "required when strategy is set to Webhook")),
        Some(client) => validate_client(client, &client_path, old, causes),
    }
    validate_versions(
        &conversion["webhook"]["conversionReviewVersions"],
        &format!("{path}.conversionReviewVersions"),
        causes,
    );
}

/// Returns whether a definition has no bundle of certificates, or one with a certificate.
pub(super) fn has_valid_bundle(definition: &Value) -> bool {
    let bundle = &definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
    bundle.as_str().is_none_or(|bundle| bundle.is_empty() || problem_of(bundle).is_none())
}

fn validate_client(client: &Value, path: &str, old: Option<&Value>, causes: &mut Causes) {
    match (client["url"].as_str(), client.get("service")) {
        (Some(url), None) => validate_url(url, &format!("{path}.url"), causes),
        (None, Some(service)) => {
            for name in ["name", "namespace"] {
                if service[name].as_str().is_none_or(str::is_empty) {
                    causes.add(|| StatusCause::required(format!("{path}.service.{name}"), ""));
                }
            }
        }
        _ => causes.add(|| StatusCause::required(path, "exactly one of url or service is required")),
    }
    let bundle = client["caBundle"].as_str().unwrap_or_default();
    // A bundle is not read before the definition is established, and an invalid one may stay.
    let is_accepted = old.is_none_or(|old| !super::is_established(old) || !has_valid_bundle(old));
    if let Some(problem) = problem_of(bundle).filter(|_| !bundle.is_empty() && !is_accepted) {
        let detail = format!("unable to load root certificates: {problem}");
        causes.add(|| StatusCause::invalid(format!("{path}.caBundle"), bundle, &detail));
    }
}

pub(in crate::builtin) fn validate_url(url: &str, path: &str, causes: &mut Causes) {
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        causes.add(|| StatusCause::invalid(path, scheme, &detail));
    }
    let host = if scheme.is_empty() { "" } else { rest.split(['/', '?', '#']).next().unwrap_or_default() };
    if host.is_empty() {
        causes.add(|| StatusCause::invalid(path, "", &format!("host must be specified{form}")));
    }
    if let Some((user, _)) = host.rsplit_once('@') {
        causes.add(|| StatusCause::invalid(path, user, "user information is not permitted in the URL"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    if !fragment.is_empty() {
        causes.add(|| StatusCause::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if let Some((_, query)) = rest.split_once('?').filter(|(_, query)| !query.is_empty()) {
        causes.add(|| StatusCause::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

fn validate_versions(versions: &Value, path: &str, causes: &mut Causes) {
    let versions = versions.as_array().map_or(&[][..], Vec::as_slice);
    if versions.is_empty() {
        causes.add(|| StatusCause::required(path, ""));
    } else if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let given = Value::Array(versions.to_vec());
        causes.add(|| StatusCause::invalid(path, given, "must include at least one of v1, v1beta1"));
    }
}

/// Returns why a bundle of certificates, which is in base64, has none.
fn problem_of(bundle: &str) -> Option<&'static str> {
    let text = STANDARD.decode(bundle).unwrap_or_default();
    let mut problem = "unable to parse bytes as PEM block";
    for certificate in CertificateDer::pem_slice_iter(&text).flatten() {
        // A certificate is a sequence in DER.
        if certificate.first() == Some(&0x30) {
            return None;
        }
        problem = "failed to parse certificate: x509: malformed certificate";
    }
    Some(problem)
}
