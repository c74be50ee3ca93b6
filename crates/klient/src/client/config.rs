//! The settings that a client is made from, resolved: nothing refers to a kubeconfig any more.
//!
//! Whatever can be checked without talking to a server has been: files are readable, certificates look like some, and
//! credentials are never there for a server that is reached in clear text.
//! In client-go: `rest.Config`, and the deferred loading of `tools/clientcmd`.

mod checks;
pub(super) mod credentials;
pub(super) mod environment;
mod exec_plugin;
mod in_cluster;
pub(super) mod kubeconfig;
pub(in crate::client) mod pem;
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
    proxy::Proxy,
    secret::{EmbeddedData, Secret},
    tls::{ClientCertificate, Pem, Tls, Trust},
};
use self::{environment::Environment, secret::without_userinfo};
use crate::{Error, ErrorKind};

/// How to reach a cluster, and as whom.
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
    /// Address of the server. A path in it goes before the API's own.
    pub server: Uri,
    /// Namespace of requests that do not name one.
    pub namespace: String,
    /// How to trust the server, and which certificate to show it.
    pub tls: Tls,
    /// How to prove who asks.
    pub credentials: Credentials,
    /// Whom to act as.
    pub impersonation: Option<Impersonation>,
    /// The proxy for all requests; the environment decides unless told otherwise.
    pub proxy: Proxy,
    /// Speaks HTTP/1.1 only. So does a client that is made while the variable `DISABLE_HTTP2` is set, as with client-go.
    pub disable_http2: bool,
    /// Limit for one request from start to end, watches excepted; 75 s without one, as servers give up after 60 s.
    pub request_timeout: Option<Duration>,
    /// Limit for making a connection.
    pub connect_timeout: Duration,
    /// Asks the server not to compress its answers.
    pub disable_compression: bool,
    /// What the client calls itself.
    pub user_agent: String,
}

impl Config {
    /// Settings for the server at that address, with nothing else said.
    ///
    /// Without a scheme it is `http`; of the parts after the path nothing is kept.
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
    /// If it is neither a URL nor a host with or without a port.
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
        }
    }

    /// Finds the settings as programs made with client-go do.
    ///
    /// 1. The files that `KUBECONFIG` lists, merged; or else `~/.kube/config`. Any of them may be missing.
    /// 2. If they say nothing about a cluster: the service account of the pod that this runs in.
    ///
    /// The namespace is the context's; without one, in a pod, that of `POD_NAMESPACE` or of the service account;
    /// else `default`.
    ///
    /// # Errors
    ///
    /// If there is neither; or if a file cannot be read or is wrong, even in a pod. The message names file and field.
    #[doc(alias = "NewNonInteractiveDeferredLoadingClientConfig")]
    #[doc(alias = "BuildConfigFromFlags")]
    pub fn infer() -> Result<Self, Error> {
        Self::load(&KubeconfigFiles::from_env(), &Overrides::default())
    }

    /// As [`infer`](Self::infer), with these files and overrides: what a command line tool wants.
    ///
    /// In a pod, a server, a token or a token file, a certificate authority, a namespace and a timeout override.
    ///
    /// # Errors
    ///
    /// As [`infer`](Self::infer).
    pub fn load(files: &KubeconfigFiles, overrides: &Overrides) -> Result<Self, Error> {
        Self::load_in(&Environment::of_process(), files, overrides)
    }

    /// Settings for one context of a kubeconfig: the current one, unless overridden.
    ///
    /// The namespace is the context's, or else `default`.
    ///
    /// # Errors
    ///
    /// If no cluster is chosen, or if what is chosen is missing or wrong. The message names all problems, each with
    /// file and field.
    #[doc(alias = "RESTConfigFromKubeConfig")]
    pub fn from_kubeconfig(kubeconfig: &Kubeconfig, overrides: &Overrides) -> Result<Self, Error> {
        let config = resolve::resolve(kubeconfig, overrides, || DEFAULT_NAMESPACE.to_owned())?;
        config.ok_or_else(|| Error::new(ErrorKind::Config, resolve::nothing_chosen(kubeconfig)))
    }

    /// Settings from the service account of the pod that this runs in.
    ///
    /// # Errors
    ///
    /// If this is not a pod, or has no service account; the message says what is missing.
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
            let nothing = resolve::nothing_chosen(&kubeconfig);
            Error::new(ErrorKind::Config, format!("no configuration: {nothing} (kubeconfig: {looked}); {error}"))
        })
    }

    /// Whether the server is reached over TLS.
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

    /// Sets how to trust the server, and which certificate to show it.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// Sets how to prove who asks.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sets whom to act as.
    #[must_use]
    pub fn impersonation(mut self, impersonation: Impersonation) -> Self {
        self.impersonation = Some(impersonation);
        self
    }

    /// Sets the proxy for all requests. The environment does not matter then.
    #[must_use]
    pub fn proxy(mut self, proxy: Uri) -> Self {
        self.proxy = Proxy::Via(proxy);
        self
    }

    /// Uses no proxy, whatever the environment says.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Proxy::Direct;
        self
    }

    /// Sets whether to speak HTTP/1.1 only.
    #[must_use]
    pub fn disable_http2(mut self, disable: bool) -> Self {
        self.disable_http2 = disable;
        self
    }

    /// Sets the limit for one request.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Sets the limit for making a connection.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets whether to ask the server not to compress its answers.
    #[must_use]
    pub fn disable_compression(mut self, disable: bool) -> Self {
        self.disable_compression = disable;
        self
    }

    /// Sets what the client calls itself.
    #[must_use]
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = user_agent.into();
        self
    }

    /// The same server and trust, as nobody.
    #[doc(alias = "AnonymousClientConfig")]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.credentials = Credentials::Anonymous;
        self.impersonation = None;
        self.tls.client_certificate = None;
        self
    }
}

/// The program's name, the system it runs on, and this crate.
///
/// A server takes what is before the first slash for the field manager of writes that name none: that is the program's
/// name, as with client-go. Its version is not known here.
fn default_user_agent() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = std::path::Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    let program: String = program.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.+".contains(*c)).collect();
    let program = if program.is_empty() { "unknown" } else { &program };
    // By Go's names, so that logs and metrics of servers tell one system by one name.
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
            .finish()
    }
}

pub(in crate::client) const DEFAULT_NAMESPACE: &str = "default";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
