//! Settings that take precedence over kubeconfig files, such as a program's flags.
//!
//! An empty setting leaves the value of the files. Some settings replace several: see [`Overrides::cluster`] and
//! [`Overrides::user`].

use std::time::Duration;

use super::{AuthInfo, Cluster, Entries};
use crate::client::config::Secret;

/// Settings that take precedence over kubeconfig files.
///
/// ```
/// use klient::client::config::{Config, Kubeconfig, Overrides};
///
/// let kubeconfig: Kubeconfig = "clusters: [{name: kind, cluster: {server: 'https://127.0.0.1:6443'}}]".parse()?;
/// let overrides = Overrides::default().cluster_name("kind").token("s3cret").namespace("web");
/// let config = Config::from_kubeconfig(&kubeconfig, &overrides)?;
/// assert_eq!(config.server, "https://127.0.0.1:6443/");
/// assert_eq!(config.namespace, "web");
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "ConfigOverrides")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Overrides {
    /// The name of the context to use. It must exist.
    pub context: Option<String>,
    /// The name of the cluster to use instead of the context's. It must exist.
    pub cluster_name: Option<String>,
    /// The name of the user to use instead of the context's. It must exist.
    pub user_name: Option<String>,
    /// The namespace to use instead of the context's.
    pub namespace: Option<String>,
    /// Defaults for fields that the cluster in the files does not set.
    pub cluster_defaults: Cluster,
    /// Fields that override the cluster in the files.
    pub cluster: Cluster,
    /// Fields that override the user in the files.
    pub user: AuthInfo,
    /// The time limit of one request.
    pub request_timeout: Option<Duration>,
}

impl Overrides {
    /// Sets the name of the context.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.context = Some(name.into());
        self
    }

    /// Sets the name of the cluster.
    #[must_use]
    pub fn cluster_name(mut self, name: impl Into<String>) -> Self {
        self.cluster_name = Some(name.into());
        self
    }

    /// Sets the name of the user.
    #[must_use]
    pub fn user_name(mut self, name: impl Into<String>) -> Self {
        self.user_name = Some(name.into());
        self
    }

    /// Sets the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets defaults for fields that the cluster in the files does not set.
    #[must_use]
    pub fn cluster_defaults(mut self, cluster: Cluster) -> Self {
        self.cluster_defaults = cluster;
        self
    }

    /// Sets fields that override the cluster in the files.
    ///
    /// A certificate authority, as file or data, or `insecure_skip_tls_verify` replaces all trust settings of the
    /// files. A server also removes the files' `tls-server-name`.
    #[must_use]
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.cluster = cluster;
        self
    }

    /// Sets fields that override the user in the files.
    ///
    /// A client certificate replaces both the file and the data of the files' certificate. The same holds for a key.
    #[must_use]
    pub fn user(mut self, user: AuthInfo) -> Self {
        self.user = user;
        self
    }

    /// Sets the address of the server.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.cluster.server = Some(server.into());
        self
    }

    /// Sets the bearer token.
    #[must_use]
    pub fn token(mut self, token: impl Into<Secret>) -> Self {
        self.user.token = Some(token.into());
        self
    }

    /// Sets the user to impersonate.
    #[must_use]
    pub fn impersonate(mut self, user: impl Into<String>) -> Self {
        self.user.impersonate = Some(user.into());
        self
    }

    /// Sets the time limit of one request.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Returns the cluster to use, given the one in the files.
    pub(crate) fn apply_to_cluster(&self, file: Option<&Cluster>) -> Cluster {
        let mut merged = Cluster::default();
        for layer in [Some(&self.cluster_defaults), file, Some(&self.cluster)].into_iter().flatten() {
            put_over(&mut merged.server, &layer.server);
            put_over(&mut merged.tls_server_name, &layer.tls_server_name);
            put_over(&mut merged.certificate_authority, &layer.certificate_authority);
            put_over(&mut merged.certificate_authority_data, &layer.certificate_authority_data);
            put_over(&mut merged.proxy_url, &layer.proxy_url);
            merged.insecure_skip_tls_verify |= layer.insecure_skip_tls_verify;
            merged.disable_compression |= layer.disable_compression;
            put_all(&mut merged.extensions, &layer.extensions);
        }
        let above = &self.cluster;
        if above.insecure_skip_tls_verify
            || above.certificate_authority.is_some()
            || above.certificate_authority_data.is_some()
        {
            merged.insecure_skip_tls_verify = above.insecure_skip_tls_verify;
            merged.certificate_authority.clone_from(&above.certificate_authority);
            merged.certificate_authority_data.clone_from(&above.certificate_authority_data);
        }
        if above.server.is_some() {
            // The name in the files belongs to another server.
            merged.tls_server_name.clone_from(&above.tls_server_name);
        }
        merged
    }

    /// Returns the user to use, given the one in the files.
    pub(crate) fn apply_to_user(&self, file: Option<&AuthInfo>) -> AuthInfo {
        let mut merged = file.cloned().unwrap_or_default();
        let above = &self.user;
        put_over(&mut merged.client_certificate, &above.client_certificate);
        put_over(&mut merged.client_certificate_data, &above.client_certificate_data);
        put_over(&mut merged.client_key, &above.client_key);
        put_over(&mut merged.client_key_data, &above.client_key_data);
        put_over(&mut merged.token, &above.token);
        put_over(&mut merged.token_file, &above.token_file);
        put_over(&mut merged.impersonate, &above.impersonate);
        put_over(&mut merged.impersonate_uid, &above.impersonate_uid);
        put_over(&mut merged.username, &above.username);
        put_over(&mut merged.password, &above.password);
        put_over(&mut merged.auth_provider, &above.auth_provider);
        put_over(&mut merged.exec, &above.exec);
        if !above.impersonate_groups.is_empty() {
            merged.impersonate_groups.clone_from(&above.impersonate_groups);
        }
        merged.impersonate_extra.extend(above.impersonate_extra.clone());
        put_all(&mut merged.extensions, &above.extensions);
        if above.client_key.is_some() || above.client_key_data.is_some() {
            merged.client_key.clone_from(&above.client_key);
            merged.client_key_data.clone_from(&above.client_key_data);
        }
        if above.client_certificate.is_some() || above.client_certificate_data.is_some() {
            merged.client_certificate.clone_from(&above.client_certificate);
            merged.client_certificate_data.clone_from(&above.client_certificate_data);
        }
        merged
    }
}

fn put_over<T: Clone>(below: &mut Option<T>, above: &Option<T>) {
    if above.is_some() {
        below.clone_from(above);
    }
}

fn put_all<T: Clone>(below: &mut Entries<T>, above: &Entries<T>) {
    for (name, value) in above.iter() {
        below.insert(name, value.clone());
    }
}
