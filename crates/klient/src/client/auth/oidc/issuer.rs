//! Talks to an issuer: finds its token endpoint, and changes a refresh token into an id token.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::web::{Web, place};
use crate::{
    Error, ErrorKind,
    client::{auth::secret_header, config::Secret},
};

/// Who asks the issuer.
#[derive(Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) id: &'a str,
    pub(super) secret: Option<&'a str>,
}

/// What the issuer gave.
pub(super) struct Tokens {
    pub(super) id_token: Secret,
    /// If it is to be used instead of the one before.
    pub(super) refresh_token: Option<Secret>,
}

pub(super) async fn refresh(web: &Web, issuer: &str, client: Client<'_>, refresh_token: &str) -> Result<Tokens, Error> {
    let endpoint = token_endpoint(web, issuer).await?;
    // With a secret, most issuers want it in a header and some in the form; a refusal does not use up the refresh token.
    let mut answer = ask(web, &endpoint, client, refresh_token, client.secret.is_some()).await?;
    let refused = matches!(answer.0, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED);
    if client.secret.is_some()
        && refused
        && oauth_error(&answer.1).is_none_or(|error| !error.starts_with("invalid_grant"))
    {
        answer = ask(web, &endpoint, client, refresh_token, false).await?;
    }
    let (status, body) = answer;
    if !status.is_success() {
        let why = oauth_error(&body).map(|error| format!(": {error}")).unwrap_or_default();
        return Err(failed(&endpoint, &format!("does not refresh the oidc id-token, it answered {status}{why}")));
    }
    let Ok(answer) = serde_json::from_slice::<Value>(&body) else { return Err(failed(&endpoint, "answered no JSON")) };
    let text = |field: &str| answer.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(id_token) = text("id_token") else {
        let why = "answered without an id_token: either the login did not ask for the scope openid, or the issuer gives \
                   none on refresh";
        return Err(failed(&endpoint, why));
    };
    Ok(Tokens { id_token: id_token.into(), refresh_token: text("refresh_token").map(Secret::from) })
}

async fn token_endpoint(web: &Web, issuer: &str) -> Result<Uri, Error> {
    let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let url = parse(&url).ok_or_else(|| Error::new(ErrorKind::Config, "idp-issuer-url is not an http or https URL"))?;
    let request = Request::get(url.clone()).header(ACCEPT, "application/json").body(Bytes::new());
    let request = request.map_err(|error| failed(&url, "cannot be asked").with_source(error))?;
    let (status, body) = web.exchange(request).await?;
    if status != StatusCode::OK {
        return Err(failed(&url, &format!("does not describe an issuer, it answered {status}")));
    }
    let found = serde_json::from_slice::<Value>(&body).ok();
    let Some(endpoint) = found.as_ref().and_then(|found| found.get("token_endpoint")?.as_str()) else {
        return Err(failed(&url, "does not describe an issuer with a token_endpoint"));
    };
    let endpoint = parse(endpoint).ok_or_else(|| failed(&url, "names a token_endpoint that is no URL"))?;
    if url.scheme_str() == Some("https") && endpoint.scheme_str() != Some("https") {
        return Err(failed(&url, "names a token_endpoint that is reached in clear text"));
    }
    Ok(endpoint)
}

fn parse(url: &str) -> Option<Uri> {
    url.parse::<Uri>().ok().filter(|url| matches!(url.scheme_str(), Some("http" | "https")))
}

async fn ask(
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
    web.exchange(request.map_err(|error| failed(endpoint, "cannot be asked").with_source(error))?).await
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// What OAuth says about a failure, cut to what a message can bear.
fn oauth_error(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let text = |field: &str| answer.get(field).and_then(Value::as_str);
    let error = text("error")?;
    let whole = text("error_description").map_or(error.to_owned(), |more| format!("{error} ({more})"));
    Some(whole.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect())
}

fn failed(url: &Uri, why: &str) -> Error {
    Error::new(ErrorKind::Auth, format!("{} {why}", place(url)))
}

/// All but what no form needs escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const MAX_REASON: usize = 200;
