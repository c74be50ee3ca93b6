//! Creates a client from its configuration.

use http::{HeaderName, HeaderValue, header::USER_AGENT};

use crate::client::{
    Client, ClientBuilder,
    auth::AuthSource,
    auth::RenewedAuth,
    auth::StaticAuth,
    auth::TokenFileAuth,
    auth::exec_plugin::ExecIssuer,
    auth::oidc::OidcIssuer,
    config::environment::Environment,
    config::{Config, Credentials, Impersonation},
    http::transport::{HttpSettings, HttpTransport, IdentitySlot},
};
use crate::{Error, ErrorKind};

impl Client {
    /// Creates a client from the environment, as client-go does: see [`Config::infer`].
    ///
    /// # Errors
    ///
    /// Returns an error if there is no configuration, or if it is invalid.
    #[doc(alias = "try_default")]
    #[doc(alias = "NewForConfigOrDie")]
    pub fn infer() -> Result<Self, Error> {
        Self::from_config(&Config::infer()?)
    }

    /// Creates a client with these settings. It connects, and runs a credential plugin, with the first request.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings, or the proxy variables of the environment, are invalid.
    #[doc(alias = "NewForConfig")]
    #[doc(alias = "try_from")]
    pub fn from_config(config: &Config) -> Result<Self, Error> {
        Ok(Self::builder_from_config(config)?.build())
    }

    /// Returns a builder of a client with these settings.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_config`](Self::from_config).
    pub fn builder_from_config(config: &Config) -> Result<ClientBuilder, Error> {
        let identity = IdentitySlot::default();
        let mut settings = http_settings(config, &Environment::of_process())?;
        settings.identity = Some(identity.clone());
        let mut builder = Self::builder(HttpTransport::new(settings)?)
            .boxed_auth(auth_source(config, identity)?)
            .path_prefix(config.server.path())
            .default_namespace(config.namespace.clone())
            .host(host_and_port(&config.server))
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

/// Returns `host:port`, without a user and password in the address.
fn host_and_port(server: &http::Uri) -> String {
    let authority = server.authority().map_or("", |authority| authority.as_str());
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

/// Returns the connection settings of a configuration and the environment.
fn http_settings(config: &Config, environment: &Environment) -> Result<HttpSettings, Error> {
    let mut settings = HttpSettings::new(config.server.clone());
    settings.tls = config.tls.clone();
    settings.connect_timeout = config.connect_timeout;
    settings.proxy = config.proxy.for_server(&config.server, environment)?;
    settings.http1_only = config.disable_http2 || environment.variable("DISABLE_HTTP2").is_some();
    Ok(settings)
}

/// Returns the source of credentials. Certificates that it issues reach the transport through `identity`.
fn auth_source(config: &Config, identity: IdentitySlot) -> Result<Box<dyn AuthSource>, Error> {
    Ok(match &config.credentials {
        Credentials::Anonymous => Box::new(StaticAuth::none()),
        Credentials::Token(token) => Box::new(StaticAuth::bearer(token.expose())?),
        Credentials::TokenFile { path, initial } => Box::new(TokenFileAuth::new(path, Some(initial.expose()))?),
        Credentials::Basic { username, password } => Box::new(StaticAuth::basic(username, password.expose())?),
        Credentials::Exec(plugin) => Box::new(RenewedAuth::new(ExecIssuer::new(plugin, config)?, identity)),
        Credentials::AuthProvider(provider) => Box::new(RenewedAuth::new(OidcIssuer::new(provider, config)?, identity)),
    })
}

/// Returns the impersonation headers.
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
        // Keys may contain characters that are not allowed in header names; the server decodes them.
        let escaped = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC).to_string();
        let name = HeaderName::try_from(format!("impersonate-extra-{escaped}")).map_err(|_| {
            Error::new(ErrorKind::Config, format!("impersonated extra {key:?} is not a valid header name"))
        })?;
        for value in values {
            headers.push((name.clone(), header("impersonated extra", value)?));
        }
    }
    Ok(headers)
}

fn header(what: &str, value: &str) -> Result<HeaderValue, Error> {
    // User names are not always ASCII; servers decode the bytes as UTF-8.
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        Error::new(ErrorKind::Config, format!("{what} contains characters that are not allowed in a header"))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn environment_applies_unless_the_configuration_overrides_it() {
        let variables = [("HTTPS_PROXY", "proxy:3128"), ("NO_PROXY", "inside.example"), ("DISABLE_HTTP2", "1")];
        let environment = Environment::of_test(Path::new("/nowhere"), &variables);
        let settings = |config: Config| http_settings(&config, &environment).unwrap();
        let outside = || Config::new("https://outside.example:6443").unwrap();
        assert_eq!(settings(outside()).proxy.unwrap(), "http://proxy:3128/");
        assert!(settings(outside()).http1_only);
        assert_eq!(settings(outside().no_proxy()).proxy, None);
        assert_eq!(settings(outside().proxy("socks5://other".parse().unwrap())).proxy.unwrap(), "socks5://other/");
        assert_eq!(settings(Config::new("https://api.inside.example").unwrap()).proxy, None);
        let quiet = Environment::of_test(Path::new("/nowhere"), &[]);
        assert!(!http_settings(&outside(), &quiet).unwrap().http1_only);
        assert!(http_settings(&outside().disable_http2(true), &quiet).unwrap().http1_only);
    }
}
