//! A client from its configuration.

use http::{HeaderName, HeaderValue, header::USER_AGENT};

use super::{
    AuthSource, Client, ClientBuilder, StaticAuth, TokenFileAuth,
    config::{Config, Credentials, Impersonation},
    transport::{HttpSettings, HttpTransport},
};
use crate::{Error, ErrorKind};

impl Client {
    /// A client with the settings that client-go's users expect: see [`Config::infer`].
    ///
    /// # Errors
    ///
    /// If there is no configuration, or it is wrong.
    pub fn infer() -> Result<Self, Error> {
        Self::from_config(&Config::infer()?)
    }

    /// A client with these settings. Connects when the first request is sent.
    ///
    /// # Errors
    ///
    /// If the settings make no sense, or ask for what is not there yet: exec plugins, auth providers and proxies.
    pub fn from_config(config: &Config) -> Result<Self, Error> {
        Ok(Self::builder_from_config(config)?.build())
    }

    /// The same, to be set up further.
    ///
    /// # Errors
    ///
    /// As [`from_config`](Self::from_config).
    pub fn builder_from_config(config: &Config) -> Result<ClientBuilder, Error> {
        if config.proxy.is_some() {
            return Err(Error::new(ErrorKind::Config, "proxies are not supported yet"));
        }
        let mut settings = HttpSettings::new(config.server.clone());
        settings.tls = config.tls.clone();
        settings.connect_timeout = config.connect_timeout;
        let mut builder = Self::builder(HttpTransport::new(settings)?)
            .boxed_auth(auth_source(&config.credentials)?)
            .path_prefix(config.server.path())
            .default_namespace(config.namespace.clone())
            .compression(!config.disable_compression)
            .replaced_header(USER_AGENT, header("user agent", &config.user_agent)?);
        if let Some(timeout) = config.request_timeout {
            builder = builder.timeout(timeout);
        }
        for (name, value) in
            config.impersonation.iter().map(impersonation_headers).collect::<Result<Vec<_>, _>>()?.concat()
        {
            builder = builder.header(name, value);
        }
        Ok(builder)
    }
}

fn auth_source(credentials: &Credentials) -> Result<Box<dyn AuthSource>, Error> {
    Ok(match credentials {
        Credentials::Anonymous => Box::new(StaticAuth::none()),
        Credentials::Token(token) => Box::new(StaticAuth::bearer(token.expose())?),
        Credentials::TokenFile { path, initial } => Box::new(TokenFileAuth::new(path, Some(initial.expose()))?),
        Credentials::Basic { username, password } => Box::new(StaticAuth::basic(username, password.expose())?),
        Credentials::Exec(_) => return Err(Error::new(ErrorKind::Config, "exec plugins are not supported yet")),
        Credentials::AuthProvider(_) => {
            return Err(Error::new(ErrorKind::Config, "auth providers are not supported yet"));
        }
    })
}

/// The headers that ask the server to take us for someone else.
fn impersonation_headers(impersonation: &Impersonation) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
    let mut headers =
        vec![(HeaderName::from_static("impersonate-user"), header("impersonated user", &impersonation.user)?)];
    if let Some(uid) = &impersonation.uid {
        headers.push((HeaderName::from_static("impersonate-uid"), header("impersonated uid", uid)?));
    }
    for group in &impersonation.groups {
        headers.push((HeaderName::from_static("impersonate-group"), header("impersonated group", group)?));
    }
    for (key, values) in &impersonation.extra {
        // Keys may hold what header names may not; the server decodes them.
        let escaped = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC).to_string();
        let name = HeaderName::try_from(format!("impersonate-extra-{escaped}"))
            .map_err(|_| Error::new(ErrorKind::Config, format!("impersonated extra {key:?} cannot be a header")))?;
        for value in values {
            headers.push((name.clone(), header("impersonated extra", value)?));
        }
    }
    Ok(headers)
}

fn header(what: &str, value: &str) -> Result<HeaderValue, Error> {
    // Names of people are not always ASCII; servers take the bytes as UTF-8.
    HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| Error::new(ErrorKind::Config, format!("the {what} holds characters that no header may")))
}
