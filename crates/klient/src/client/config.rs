//! The resolved settings of a client, independent of any kubeconfig.
//!
//! Everything that can be checked without a server is checked here: files are readable, certificates are PEM, and
//! credentials are never sent to a server without TLS.
//! In client-go: `rest.Config`, and the deferred loading of `tools/clientcmd`.

mod checks;
pub(super) mod credentials;
pub(super) mod environment;
mod exec_plugin;
mod in_cluster;
pub(super) mod kubeconfig;
pub(in crate::client) mod pem;
mod plugin_policy;
mod proxy;
mod resolve;
pub(super) mod secret;
mod server;
mod tls;

use std::{fmt, time::Duration};

use http::Uri;

pub use self::{
    credentials::{AuthProvider, Credentials, Impersonation},
    exec_plugin::{ExecApiVersion, ExecPlugin, InteractiveMode},
    kubeconfig::{
        AuthInfo, AuthProviderConfig, Cluster, Context, Entries, ExecConfig, ExecEnvVar, Extension, Kubeconfig,
        KubeconfigEdit, KubeconfigFiles, Overrides,
    },
    plugin_policy::PluginPolicy,
    proxy::Proxy,
    secret::{EmbeddedData, Secret},
    tls::{ClientCertificate, Pem, Tls, Trust},
};
use self::{environment::Environment, secret::without_userinfo};
use crate::{Error, ErrorKind};

/// The address of a cluster, and how to authenticate to it.
///
/// ```no_run
/// use klient::client::config::Config;
///
/// let config = Config::infer()?;
/// println!("{} in {}", config.server, config.namespace);
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "rest.Config")]
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The address of the server. A path in it is a prefix of every request's path.
    pub server: Uri,
    /// The namespace of requests that do not name one.
    pub namespace: String,
    /// The trusted certificate authorities, and the client certificate.
    pub tls: Tls,
    /// The credentials.
    pub credentials: Credentials,
    /// The user to impersonate.
    pub impersonation: Option<Impersonation>,
    /// The proxy for all requests; taken from the environment by default.
    pub proxy: Proxy,
    /// Whether to use HTTP/1.1 only. Setting the variable `DISABLE_HTTP2` has the same effect, as in client-go.
    pub disable_http2: bool,
    /// The time limit of one request, except watches; 75 s if not set, because servers time out after 60 s.
    pub request_timeout: Option<Duration>,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Whether the server must not compress its responses.
    pub disable_compression: bool,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The credential plugins that may run.
    pub plugin_policy: PluginPolicy,
    /// Whether OIDC tokens may be refreshed at an issuer without TLS. Tokens are readable on the network then.
    pub allow_http_issuer: bool,
}

impl Config {
    /// Creates the settings for the server at that address, with defaults for everything else.
    ///
    /// Without a scheme, `http` is used. A query or a fragment is dropped.
    ///
    /// ```
    /// use klient::client::config::Config;
    ///
    /// assert_eq!(Config::new("localhost:8080")?.server, "http://localhost:8080/");
    /// assert_eq!(Config::new("https://host/clusters/a/")?.server, "https://host/clusters/a");
    /// # Ok::<(), klient::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the address is neither a URL nor a host with an optional port.
    pub fn new(server: &str) -> Result<Self, Error> {
        Self::for_server(server, false)
    }

    pub(in crate::client) fn for_server(server: &str, tls_by_default: bool) -> Result<Self, Error> {
        match server::parse_server(server, tls_by_default) {
            Ok(server) => Ok(Self::at(server)),
            Err(why) => Err(Error::new(ErrorKind::Config, format!("server {:?}: {why}", without_userinfo(server)))),
        }
    }

    fn at(server: Uri) -> Self {
        Self {
            server,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            tls: Tls::default(),
            credentials: Credentials::default(),
            impersonation: None,
            proxy: Proxy::default(),
            disable_http2: false,
            request_timeout: None,
            connect_timeout: CONNECT_TIMEOUT,
            disable_compression: false,
            user_agent: default_user_agent(),
            plugin_policy: PluginPolicy::default(),
            allow_http_issuer: false,
        }
    }

    /// Loads the configuration from the environment, as programs built with client-go do.
    ///
    /// 1. The files that `KUBECONFIG` lists, merged; or else `~/.kube/config`. Any of them may be missing.
    /// 2. If they configure no cluster: the service account of the pod that this process runs in.
    ///
    /// The namespace is the context's. Without one, in a pod, it is that of `POD_NAMESPACE` or of the service account;
    /// otherwise `default`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no configuration, or if a file cannot be read or is invalid, even in a pod. The
    /// message names the file and the field.
    #[doc(alias = "NewNonInteractiveDeferredLoadingClientConfig")]
    #[doc(alias = "BuildConfigFromFlags")]
    pub fn infer() -> Result<Self, Error> {
        Self::load(&KubeconfigFiles::from_env(), &Overrides::default())
    }

    /// Loads the configuration as [`infer`](Self::infer) does, from these files and with overrides such as command line
    /// flags.
    ///
    /// In a pod, only a server, a token or a token file, a certificate authority, a namespace and a timeout are
    /// overridden.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`infer`](Self::infer).
    pub fn load(files: &KubeconfigFiles, overrides: &Overrides) -> Result<Self, Error> {
        Self::load_in(&Environment::of_process(), files, overrides)
    }

    /// Resolves one context of a kubeconfig: the current one, unless overridden.
    ///
    /// The namespace is the context's, or else `default`.
    ///
    /// # Errors
    ///
    /// Returns an error if no cluster is selected, or if the selected entries are missing or invalid. The message names
    /// all problems, each with file and field.
    #[doc(alias = "RESTConfigFromKubeConfig")]
    pub fn from_kubeconfig(kubeconfig: &Kubeconfig, overrides: &Overrides) -> Result<Self, Error> {
        let config = resolve::resolve(kubeconfig, overrides, || DEFAULT_NAMESPACE.to_owned())?;
        config.ok_or_else(|| Error::new(ErrorKind::Config, resolve::nothing_selected(kubeconfig)))
    }

    /// Loads the service account of the pod that this process runs in.
    ///
    /// # Errors
    ///
    /// Returns an error if this is not a pod or has no service account. The message names the missing part.
    #[doc(alias = "InClusterConfig")]
    pub fn in_cluster() -> Result<Self, Error> {
        in_cluster::config(&Environment::of_process(), &Overrides::default())
    }

    fn load_in(environment: &Environment, files: &KubeconfigFiles, overrides: &Overrides) -> Result<Self, Error> {
        let kubeconfig = files.load()?;
        let in_pod = in_cluster::is_possible(environment);
        let fallback_namespace =
            || if in_pod { in_cluster::namespace(environment) } else { DEFAULT_NAMESPACE.to_owned() };
        if let Some(config) = resolve::resolve(&kubeconfig, overrides, fallback_namespace)? {
            return Ok(config);
        }
        in_cluster::config(environment, overrides).map_err(|error| {
            let looked: Vec<String> = files
                .paths()
                .iter()
                .map(|path| format!("{}{}", path.display(), if path.exists() { "" } else { " (missing)" }))
                .collect();
            let looked = if looked.is_empty() { "no file".to_owned() } else { looked.join(", ") };
            let nothing = resolve::nothing_selected(&kubeconfig);
            Error::new(ErrorKind::Config, format!("no configuration: {nothing} (kubeconfig: {looked}); {error}"))
        })
    }

    /// Returns whether the server is reached over TLS.
    #[doc(alias = "IsConfigTransportTLS")]
    pub fn uses_tls(&self) -> bool {
        self.server.scheme() == Some(&http::uri::Scheme::HTTPS)
    }

    /// Sets the namespace of requests that do not name one.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the trusted certificate authorities and the client certificate.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// Sets the credentials.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sets the user to impersonate.
    #[must_use]
    pub fn impersonation(mut self, impersonation: Impersonation) -> Self {
        self.impersonation = Some(impersonation);
        self
    }

    /// Sets the proxy for all requests and ignores the environment.
    #[must_use]
    pub fn proxy(mut self, proxy: Uri) -> Self {
        self.proxy = Proxy::Via(proxy);
        self
    }

    /// Uses no proxy and ignores the environment.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Proxy::Direct;
        self
    }

    /// Sets whether to use HTTP/1.1 only.
    #[must_use]
    pub fn disable_http2(mut self, disable: bool) -> Self {
        self.disable_http2 = disable;
        self
    }

    /// Sets the time limit of one request.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Sets the time limit for opening a connection.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets whether the server must not compress its responses.
    #[must_use]
    pub fn disable_compression(mut self, disable: bool) -> Self {
        self.disable_compression = disable;
        self
    }

    /// Sets the `User-Agent` header.
    #[must_use]
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = user_agent.into();
        self
    }

    /// Sets the credential plugins that may run.
    ///
    /// ```
    /// use klient::client::config::{Config, PluginPolicy};
    ///
    /// let config = Config::new("https://host:6443")?.plugin_policy(PluginPolicy::allowlist(["aws", "/opt/bin/kubelogin"]));
    /// # Ok::<(), klient::Error>(())
    /// ```
    #[doc(alias = "credentialPluginPolicy")]
    #[must_use]
    pub fn plugin_policy(mut self, policy: PluginPolicy) -> Self {
        self.plugin_policy = policy;
        self
    }

    /// Sets whether OIDC tokens may be refreshed at an issuer without TLS.
    #[must_use]
    pub fn allow_http_issuer(mut self, allow: bool) -> Self {
        self.allow_http_issuer = allow;
        self
    }

    /// Returns a copy of this configuration without credentials.
    #[doc(alias = "AnonymousClientConfig")]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.credentials = Credentials::Anonymous;
        self.impersonation = None;
        self.tls.client_certificate = None;
        self
    }
}

/// Returns the program's name, the system it runs on, and the version of this crate.
///
/// A server uses the part before the first slash as the field manager of writes that name none. That is the program's
/// name, as with client-go. The program's version is not known here.
fn default_user_agent() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = std::path::Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    let program: String = program.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.+".contains(*c)).collect();
    let program = if program.is_empty() { "unknown" } else { &program };
    // Go's names, so that logs and metrics of servers use one name per system.
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{program}/unknown ({os}/{arch}) klient/{}", env!("CARGO_PKG_VERSION"))
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .field("tls", &self.tls)
            .field("credentials", &self.credentials)
            .field("impersonation", &self.impersonation)
            .field("proxy", &self.proxy)
            .field("disable_http2", &self.disable_http2)
            .field("request_timeout", &self.request_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("disable_compression", &self.disable_compression)
            .field("user_agent", &self.user_agent)
            .field("plugin_policy", &self.plugin_policy)
            .field("allow_http_issuer", &self.allow_http_issuer)
            .finish()
    }
}

pub(in crate::client) const DEFAULT_NAMESPACE: &str = "default";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
