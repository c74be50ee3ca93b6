//! Requests to an issuer: finds its token endpoint, and exchanges a refresh token for an id token.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::web::{Web, redacted};
use crate::{
    Error, ErrorKind,
    client::{auth::secret_header, config::Secret},
};

/// The OAuth client that requests tokens.
#[derive(Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) id: &'a str,
    pub(super) secret: Option<&'a str>,
}

/// The tokens in the issuer's response.
pub(super) struct Tokens {
    pub(super) id_token: Secret,
    /// The refresh token that replaces the previous one, if any.
    pub(super) refresh_token: Option<Secret>,
}

pub(super) async fn refresh(web: &Web, issuer: &str, client: Client<'_>, refresh_token: &str) -> Result<Tokens, Error> {
    let endpoint = token_endpoint(web, issuer).await?;
    // Most issuers expect the client secret in a header, some in the form. A rejection does not use up the refresh
    // token.
    let mut response = request_tokens(web, &endpoint, client, refresh_token, client.secret.is_some()).await?;
    let refused = matches!(response.0, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED);
    if client.secret.is_some()
        && refused
        && oauth_error(&response.1).is_none_or(|error| !error.starts_with("invalid_grant"))
    {
        response = request_tokens(web, &endpoint, client, refresh_token, false).await?;
    }
    let (status, body) = response;
    if !status.is_success() {
        let why = oauth_error(&body).map(|error| format!(": {error}")).unwrap_or_default();
        return Err(failed(&endpoint, &format!("cannot refresh the oidc id-token: status {status}{why}")));
    }
    let Ok(response) = serde_json::from_slice::<Value>(&body) else {
        return Err(failed(&endpoint, "sent a response that is not JSON"));
    };
    let text = |field: &str| response.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(id_token) = text("id_token") else {
        let why = "sent a response without an id_token: either the login did not request the scope openid, or the issuer \
                   returns none on refresh";
        return Err(failed(&endpoint, why));
    };
    Ok(Tokens { id_token: id_token.into(), refresh_token: text("refresh_token").map(Secret::from) })
}

/// Refuses an issuer without TLS, which would send refresh tokens over the network in plain text, unless it is allowed.
pub(super) fn check_scheme(issuer: &str, allow_http: bool) -> Result<(), Error> {
    match parse(issuer) {
        Some(url) if url.scheme_str() == Some("http") && !allow_http => {
            let what =
                "is not encrypted: use an https idp-issuer-url, or set allow_http_issuer in the client's configuration";
            Err(Error::new(ErrorKind::Config, format!("oidc issuer {} {what}", redacted(&url))))
        }
        _ => Ok(()),
    }
}

async fn token_endpoint(web: &Web, issuer: &str) -> Result<Uri, Error> {
    let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let url = parse(&url).ok_or_else(|| Error::new(ErrorKind::Config, "idp-issuer-url is not an http or https URL"))?;
    let request = Request::get(url.clone()).header(ACCEPT, "application/json").body(Bytes::new());
    let request = request.map_err(|error| failed(&url, "is not a valid address").with_source(error))?;
    let (status, body) = web.exchange(request).await?;
    if status != StatusCode::OK {
        return Err(failed(&url, &format!("does not describe an issuer: status {status}")));
    }
    let found = serde_json::from_slice::<Value>(&body).ok();
    let Some(endpoint) = found.as_ref().and_then(|found| found.get("token_endpoint")?.as_str()) else {
        return Err(failed(&url, "does not describe an issuer with a token_endpoint"));
    };
    let endpoint = parse(endpoint).ok_or_else(|| failed(&url, "has a token_endpoint that is not a URL"))?;
    if url.scheme_str() == Some("https") && endpoint.scheme_str() != Some("https") {
        return Err(failed(&url, "has a token_endpoint that is not encrypted: expected https"));
    }
    Ok(endpoint)
}

fn parse(url: &str) -> Option<Uri> {
    url.parse::<Uri>().ok().filter(|url| matches!(url.scheme_str(), Some("http" | "https")))
}

async fn request_tokens(
    web: &Web,
    endpoint: &Uri,
    client: Client<'_>,
    refresh_token: &str,
    in_header: bool,
) -> Result<(StatusCode, Bytes), Error> {
    let mut form = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
    let mut request = Request::post(endpoint.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    if in_header {
        let login = format!("{}:{}", escaped(client.id), escaped(client.secret.unwrap_or_default()));
        let value = secret_header(&format!("Basic {}", STANDARD.encode(login)), "client-secret")?;
        request = request.header(AUTHORIZATION, value);
    } else {
        form.push(("client_id", client.id));
        form.extend(client.secret.map(|secret| ("client_secret", secret)));
    }
    let form: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    let request = request.body(Bytes::from(form.join("&")));
    web.exchange(request.map_err(|error| failed(endpoint, "is not a valid address").with_source(error))?).await
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Returns the OAuth error of a response, truncated for use in a message.
fn oauth_error(body: &[u8]) -> Option<String> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let text = |field: &str| response.get(field).and_then(Value::as_str);
    let error = text("error")?;
    let whole = text("error_description").map_or(error.to_owned(), |more| format!("{error} ({more})"));
    Some(whole.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect())
}

fn failed(url: &Uri, why: &str) -> Error {
    Error::new(ErrorKind::Auth, format!("{} {why}", redacted(url)))
}

/// All characters except those that a form leaves unescaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const MAX_REASON: usize = 200;
