//! Settings from the service account that Kubernetes mounts into pods.
//!
//! Token and certificates are referenced as files, because the kubelet replaces them while the pod runs.
//! In client-go: `rest.InClusterConfig`, with the overrides that `tools/clientcmd` applies to it.

use std::{fmt::Display, fs, io};

use crate::client::{
    config::Config,
    config::Overrides,
    config::Secret,
    config::environment::Environment,
    config::{
        Credentials, DEFAULT_NAMESPACE, Pem, Tls, Trust,
        pem::{self, Expected},
    },
};
use crate::{Error, ErrorKind};

/// Returns whether this looks like a pod with a service account.
pub(in crate::client) fn is_possible(environment: &Environment) -> bool {
    environment.text(HOST).is_some()
        && environment.text(PORT).is_some()
        && environment.service_account_file("token").is_file()
}

/// Returns the settings, or an error that names the missing part.
pub(in crate::client) fn config(environment: &Environment, overrides: &Overrides) -> Result<Config, Error> {
    let variable = |name| environment.text(name).ok_or_else(|| not_in_cluster(format!("{name} is not set")));
    let (host, port) = (variable(HOST)?, variable(PORT)?);
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
    let server = overrides.cluster.server.clone().unwrap_or_else(|| format!("https://{host}:{port}"));
    let mut config = Config::for_server(&server, true)?;
    let (credentials, tls) = (credentials(environment, overrides)?, tls(environment, overrides)?);
    // An override may name a server without TLS.
    if config.uses_tls() {
        config = config.credentials(credentials).tls(tls);
    }
    config.namespace = match &overrides.namespace {
        Some(namespace) if !namespace.is_empty() => namespace.clone(),
        _ => namespace(environment),
    };
    config.request_timeout = overrides.request_timeout;
    Ok(config)
}

/// Returns the namespace of the pod, from the downward API or else from its service account.
pub(in crate::client) fn namespace(environment: &Environment) -> String {
    let of_account = || {
        let text = fs::read_to_string(environment.service_account_file("namespace")).ok()?;
        Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
    };
    environment.text("POD_NAMESPACE").or_else(of_account).unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
}

fn credentials(environment: &Environment, overrides: &Overrides) -> Result<Credentials, Error> {
    let (token, path) = match (&overrides.user.token, &overrides.user.token_file) {
        (Some(token), None) => return Ok(Credentials::Token(token.clone())),
        (token, Some(path)) => (token.clone(), path.clone()),
        (None, None) => (None, environment.service_account_file("token")),
    };
    let initial = match token {
        Some(token) => token,
        None => {
            let text = fs::read_to_string(&path).map_err(|error| {
                not_in_cluster(format!("cannot read service account token {}", path.display())).with_source(error)
            })?;
            Secret::new(text.trim())
        }
    };
    if initial.expose().is_empty() {
        return Err(not_in_cluster(format!("service account token {} is empty", path.display())));
    }
    Ok(Credentials::TokenFile { path, initial })
}

fn tls(environment: &Environment, overrides: &Overrides) -> Result<Tls, Error> {
    let path = match &overrides.cluster.certificate_authority {
        Some(path) => path.clone(),
        None => {
            let path = environment.service_account_file("ca.crt");
            // Some clusters have servers whose certificates the system trusts.
            if let Err(error) = fs::metadata(&path)
                && error.kind() == io::ErrorKind::NotFound
            {
                return Ok(Tls::default());
            }
            path
        }
    };
    let pem = Pem::File(path.clone());
    pem::check(&pem.load()?, Expected::Certificate)
        .map_err(|why| Error::new(ErrorKind::Config, format!("{} {why}", path.display())))?;
    Ok(Tls::default().trust(Trust::Authority(pem)))
}

fn not_in_cluster(why: impl Display) -> Error {
    Error::new(ErrorKind::Config, format!("not in a cluster: {why}"))
}

const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

#[cfg(test)]
mod tests;
