//! A cluster in a kubeconfig: the address of its server, and the certificates to trust.

use std::{fmt, path::PathBuf};

use serde_json::{Map, Value};

use super::{
    entries::{Entries, EntryValue, read_entries, write_entries},
    extension::Extension,
    fields::{Fields, ObjectBuilder},
    problem::Problem,
};
use crate::client::{config::EmbeddedData, config::secret::without_userinfo};

/// The address of an API server, and the certificates to trust.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Cluster {
    /// The address of the server: `https://host:port`, with an optional path prefix.
    pub server: Option<String>,
    /// The name to expect in the server's certificate, if it is not the host's.
    pub tls_server_name: Option<String>,
    /// Whether any certificate is trusted. An attacker on the network can then read and change all traffic, credentials
    /// included.
    pub insecure_skip_tls_verify: bool,
    /// The file with the certificates to trust. Cannot be set together with the data.
    pub certificate_authority: Option<PathBuf>,
    /// The certificates to trust.
    pub certificate_authority_data: Option<EmbeddedData>,
    /// The proxy for all requests: an `http`, `https`, `socks5` or `socks5h` URL.
    pub proxy_url: Option<String>,
    /// Whether the server must not compress its responses.
    pub disable_compression: bool,
    /// Data of other programs.
    pub extensions: Entries<Extension>,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
}

impl Cluster {
    /// Creates a cluster at that address.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: Some(server.into()), ..Self::default() }
    }
}

impl EntryValue for Cluster {
    const NAMES: (&'static str, &'static str) = ("clusters", "cluster");

    fn read(path: String, value: Value) -> Result<Self, Problem> {
        let mut fields = Fields::new(path, value)?;
        Ok(Self {
            server: fields.text("server")?,
            tls_server_name: fields.text("tls-server-name")?,
            insecure_skip_tls_verify: fields.flag("insecure-skip-tls-verify")?,
            certificate_authority: fields.path("certificate-authority")?,
            certificate_authority_data: fields.data("certificate-authority-data")?,
            proxy_url: fields.text("proxy-url")?,
            disable_compression: fields.flag("disable-compression")?,
            extensions: read_entries(&mut fields)?,
            other: fields.rest(),
        })
    }

    fn write(&self) -> Value {
        ObjectBuilder::new(&self.other)
            .always("server", self.server.as_deref().unwrap_or_default())
            .text("tls-server-name", self.tls_server_name.as_deref())
            .flag("insecure-skip-tls-verify", self.insecure_skip_tls_verify)
            .path("certificate-authority", self.certificate_authority.as_ref())
            .text("certificate-authority-data", self.certificate_authority_data.as_ref().map(EmbeddedData::as_base64))
            .text("proxy-url", self.proxy_url.as_deref())
            .flag("disable-compression", self.disable_compression)
            .list("extensions", write_entries(&self.extensions))
            .done()
            .into()
    }

    fn paths(&mut self) -> Vec<(&'static str, &mut PathBuf)> {
        self.certificate_authority.iter_mut().map(|path| ("certificate-authority", path)).collect()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.server.as_deref().map(without_userinfo))
            .field("tls_server_name", &self.tls_server_name)
            .field("insecure_skip_tls_verify", &self.insecure_skip_tls_verify)
            .field("certificate_authority", &self.certificate_authority)
            .field("certificate_authority_data", &self.certificate_authority_data)
            .field("proxy_url", &self.proxy_url.as_deref().map(without_userinfo))
            .field("disable_compression", &self.disable_compression)
            .field("extensions", &self.extensions)
            .field("other", &self.other.keys().collect::<Vec<_>>())
            .finish()
    }
}
