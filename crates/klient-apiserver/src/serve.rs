//! Sockets: HTTPS or HTTP on the loopback address, for clients in other processes.

mod certificates;
mod connection;
mod listen;

use std::{
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use self::certificates::{Certificates, Identity};
pub use self::listen::Listen;
use crate::access::User;

/// A listening socket of a server. Dropping it stops listening and closes all connections.
pub struct Listening {
    address: SocketAddr,
    certificates: Option<Certificates>,
    /// The token that was generated for this socket.
    token: Arc<str>,
    task: JoinHandle<()>,
}

/// An error of a server that cannot listen.
#[derive(Debug)]
pub struct ServeError {
    message: String,
    source: io::Error,
}

impl Listening {
    /// Returns the address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the token that was generated for this socket. It is the administrator's, as the client certificate is.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns a kubeconfig for this server, with a token of the server or else with generated credentials: the client
    /// certificate, or a token for plain HTTP.
    ///
    /// klient, kubectl and client-go send no credentials of a kubeconfig over plain HTTP. Clients of such a socket send the token
    /// themselves, or the socket is [anonymous](Listen::anonymous).
    pub fn kubeconfig(&self, token: Option<&str>) -> String {
        let identity = self.certificates.as_ref().map(Certificates::administrator);
        self.config(&match (token, identity) {
            (None, Some(identity)) => by_certificate(identity),
            (token, _) => json!({"token": token.unwrap_or(&self.token)}),
        })
    }

    /// Returns a kubeconfig for a user of this server, with a client certificate that is created for the user.
    ///
    /// The user's permissions depend on roles, if the server [has them](crate::ApiServerBuilder::rbac).
    ///
    /// # Errors
    ///
    /// Returns an error if the socket has no TLS, or if the user has more than one group.
    pub fn kubeconfig_of(&self, user: &User) -> Result<String, ServeError> {
        let failed = |source| ServeError { message: format!("cannot create a client certificate for {user}"), source };
        let no_tls = || failed(io::Error::other("the socket has no TLS"));
        let identity = self.certificates.as_ref().ok_or_else(no_tls)?.identity(user).map_err(failed)?;
        Ok(self.config(&by_certificate(&identity)))
    }

    fn config(&self, user: &Value) -> String {
        let mut cluster = json!({"server": self.url()});
        if let Some(certificates) = &self.certificates {
            cluster["certificate-authority-data"] = json!(certificates.authority_base64());
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "klient",
            "clusters": [{"name": "klient", "cluster": cluster}],
            "users": [{"name": "klient", "user": user}],
            "contexts": [{"name": "klient", "context": {"cluster": "klient", "user": "klient"}}],
        });
        // Every JSON document is a YAML document.
        serde_json::to_string_pretty(&config).unwrap_or_default()
    }

    /// Writes the kubeconfig to a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>, token: Option<&str>) -> Result<PathBuf, ServeError> {
        use std::io::Write as _;
        let message = format!("cannot write the kubeconfig {}", path.as_ref().display());
        let failed = |source| ServeError { message: message.clone(), source };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path.as_ref()).map_err(failed)?;
        // The mode above applies to new files only.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(failed)?;
        file.write_all(self.kubeconfig(token).as_bytes()).map_err(failed)?;
        Ok(path.as_ref().to_owned())
    }
}

/// Returns the credentials of a client certificate.
fn by_certificate(identity: &Identity) -> Value {
    json!({"client-certificate-data": identity.certificate_base64(), "client-key-data": identity.key_base64()})
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
