//! The `oidc` auth provider of kubeconfigs: an id token, and a refresh token to obtain the next one.
//!
//! New tokens are written back to the kubeconfig, where other programs find them. Before a refresh, the kubeconfig is
//! checked for newer tokens, and again, while it is locked, before new ones are written: newer tokens are never replaced
//! by older ones. A kubeconfig that cannot be written causes a warning, not a failed request.

mod id_token;
mod issuer;
mod web;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use self::{issuer::Tokens, web::Web};
use crate::client::{
    auth::{Credential, IssueFuture, Issuer, bearer},
    config::secret::decode_base64,
    config::{AuthProvider, Config, Pem, Proxy, Tls, Trust, credentials::why_not},
};
use crate::{Error, ErrorKind};

/// A source of id tokens.
pub(in crate::client) struct OidcIssuer {
    provider: AuthProvider,
    settings: Mutex<Settings>,
    web: Web,
    allow_http: bool,
}

type Settings = BTreeMap<String, String>;

impl OidcIssuer {
    pub(in crate::client) fn new(provider: &AuthProvider, config: &Config) -> Result<Self, Error> {
        let settings = provider.config.config.clone();
        if provider.config.name != "oidc" {
            let why = why_not(&provider.config.name);
            return Err(Error::new(ErrorKind::Config, format!("auth provider {why}")));
        }
        if of(&settings, EXTRA_SCOPES).is_some() {
            tracing::debug!("ignoring extra-scopes of the oidc auth provider, because a refresh requests no scopes");
        }
        // As in client-go, the cluster's own proxy is not used for the issuer.
        let proxy = match config.proxy {
            Proxy::Direct => Proxy::Direct,
            _ => Proxy::FromEnvironment,
        };
        let web = Web::new(Tls::default().trust(trust(&settings)?), proxy);
        Ok(Self {
            provider: provider.clone(),
            settings: Mutex::new(settings),
            web,
            allow_http: config.allow_http_issuer,
        })
    }

    async fn token(&self, previous: Option<Arc<Credential>>) -> Result<Credential, Error> {
        let mut settings = self.newest().await;
        let mut problem = None;
        if let Some(token) = of(&settings, ID_TOKEN) {
            match credential(token) {
                Ok(found) if is_better(&found, previous.as_deref()) => return Ok(found),
                Ok(_) => {}
                Err(error) => problem = Some(error),
            }
        }
        let Some(refresh_token) = of(&settings, REFRESH_TOKEN) else {
            return Err(problem.unwrap_or_else(|| {
                let what =
                    "the oidc id-token is missing, expired or rejected, and there is no refresh-token: log in again";
                Error::new(ErrorKind::Auth, what)
            }));
        };
        let client =
            issuer::Client { id: of(&settings, CLIENT_ID).unwrap_or_default(), secret: of(&settings, CLIENT_SECRET) };
        let issuer_url = of(&settings, ISSUER_URL).unwrap_or_default();
        issuer::check_scheme(issuer_url, self.allow_http)?;
        let tokens = issuer::refresh(&self.web, issuer_url, client, refresh_token).await?;
        let credential = credential(tokens.id_token.expose())?;
        self.keep(&mut settings, tokens).await;
        Ok(credential)
    }

    /// Returns the settings, with tokens that another program may have written meanwhile.
    async fn newest(&self) -> Settings {
        let provider = self.provider.clone();
        let stored = tokio::task::spawn_blocking(move || provider.stored_settings()).await;
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(Some(stored)) = stored
            && is_same_client(&stored, &settings)
        {
            // Tokens that this process could not write back are newer than the stored ones.
            if expiry(&stored) >= expiry(&settings) {
                *settings = stored;
            }
        }
        settings.clone()
    }

    async fn keep(&self, settings: &mut Settings, tokens: Tokens) {
        let before = settings.clone();
        settings.insert(ID_TOKEN.to_owned(), tokens.id_token.expose().to_owned());
        if let Some(token) = tokens.refresh_token {
            settings.insert(REFRESH_TOKEN.to_owned(), token.expose().to_owned());
        }
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone_from(settings);
        let (provider, settings) = (self.provider.clone(), settings.clone());
        let update = move |stored: &mut Settings| {
            // Another program may have logged in or refreshed while this one waited for the issuer or the lock.
            let changed = [ID_TOKEN, REFRESH_TOKEN].iter().any(|name| of(stored, name) != of(&before, name));
            if !is_same_client(stored, &settings) || changed && expiry(stored) >= expiry(&settings) {
                tracing::debug!("kubeconfig has newer oidc tokens, leaving it unchanged");
                return;
            }
            for name in [ID_TOKEN, REFRESH_TOKEN] {
                if let Some(token) = settings.get(name) {
                    stored.insert(name.to_owned(), token.clone());
                }
            }
        };
        let written = tokio::task::spawn_blocking(move || provider.update(update)).await;
        if let Ok(Err(error)) = written {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "cannot write new oidc tokens to the kubeconfig");
        }
    }
}

impl Issuer for OidcIssuer {
    fn issue(&self, previous: Option<Arc<Credential>>) -> IssueFuture<'_> {
        Box::pin(self.token(previous))
    }
}

fn of<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    settings.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns whether both settings are for the same client of the same issuer.
fn is_same_client(one: &Settings, other: &Settings) -> bool {
    [ISSUER_URL, CLIENT_ID].iter().all(|name| of(one, name) == of(other, name))
}

/// Returns when the id token expires, if there is one that can be read.
fn expiry(settings: &Settings) -> Option<SystemTime> {
    id_token::expiry(of(settings, ID_TOKEN)?).ok()
}

fn credential(token: &str) -> Result<Credential, Error> {
    let expires =
        id_token::expiry(token).map_err(|why| Error::new(ErrorKind::Auth, format!("invalid oidc id-token: {why}")))?;
    Ok(Credential { header: Some(bearer(token)?), certificate: None, expires: Some(expires) })
}

/// Returns whether the token is valid for a while and differs from the previous one.
fn is_better(found: &Credential, previous: Option<&Credential>) -> bool {
    let good = found.expires.is_none_or(|expires| SystemTime::now() + LEEWAY < expires);
    good && previous.is_none_or(|previous| previous.header != found.header)
}

fn trust(settings: &Settings) -> Result<Trust, Error> {
    let pem = match (of(settings, AUTHORITY_DATA), of(settings, AUTHORITY)) {
        (Some(data), _) => Pem::Data(decode_base64(data).ok_or_else(|| {
            Error::new(ErrorKind::Config, format!("the oidc auth provider's {AUTHORITY_DATA} is not base64"))
        })?),
        (None, Some(file)) => Pem::File(file.into()),
        (None, None) => return Ok(Trust::System),
    };
    Ok(Trust::Authority(pem))
}

const ISSUER_URL: &str = "idp-issuer-url";
const CLIENT_ID: &str = "client-id";
const CLIENT_SECRET: &str = "client-secret";
const AUTHORITY: &str = "idp-certificate-authority";
const AUTHORITY_DATA: &str = "idp-certificate-authority-data";
const ID_TOKEN: &str = "id-token";
const REFRESH_TOKEN: &str = "refresh-token";
const EXTRA_SCOPES: &str = "extra-scopes";
/// Allowance for clock differences.
const LEEWAY: Duration = Duration::from_secs(10);
