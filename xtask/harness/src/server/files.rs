//! The files of an API server (certificates, keys, tokens) and of its clients (kubeconfigs).

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use rcgen::KeyPair;
use serde_json::json;

use crate::Authority;

/// The folder with the files, and the authority of the users.
pub(super) struct Files {
    folder: PathBuf,
    user_authority: Authority,
}

impl Files {
    pub(super) fn write(folder: &Path, port: u16) -> Result<Self> {
        let files = Self { folder: folder.to_owned(), user_authority: Authority::new("klient users")? };
        files.write_authority()?;
        files.put("user-ca.crt", &files.user_authority.certificate())?;
        let user = files.user_authority.user("e2e-certificate", "system:masters")?;
        files.put("client.crt", &user.certificate)?;
        files.put("client.key", &user.key)?;
        let service_account = KeyPair::generate()?;
        files.put("service-account.key", &service_account.serialize_pem())?;
        files.put("service-account.pub", &service_account.public_key_pem())?;
        let tokens = format!(
            "{TOKEN},e2e-token-user,1,\"system:masters\"\n{SECOND_TOKEN},e2e-second-user,2,\"system:masters\"\n"
        );
        files.put("tokens.csv", &tokens)?;
        files.put("kubeconfig", &kubeconfig(port).to_string())?;
        Ok(files)
    }

    /// Creates an authority and a certificate for the server, and writes both.
    pub(super) fn write_authority(&self) -> Result<()> {
        let authority = Authority::new("klient servers")?;
        let server = authority.server()?;
        self.put("server.crt", &server.certificate)?;
        self.put("server.key", &server.key)?;
        self.put("ca.crt", &authority.certificate())
    }

    pub(super) fn user_authority(&self) -> &Authority {
        &self.user_authority
    }

    fn put(&self, name: &str, text: &str) -> Result<()> {
        Ok(fs::write(self.folder.join(name), text)?)
    }
}

fn kubeconfig(port: u16) -> serde_json::Value {
    let context = |name: &str| json!({"name": name, "context": {"cluster": "e2e", "user": name}});
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "token",
        "clusters": [{"name": "e2e", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority": "ca.crt",
        }}],
        "users": [
            {"name": "token", "user": {"token": TOKEN}},
            {"name": "second-token", "user": {"token": SECOND_TOKEN}},
            {"name": "certificate", "user": {"client-certificate": "client.crt", "client-key": "client.key"}},
        ],
        "contexts": [context("token"), context("second-token"), context("certificate")],
    })
}

/// The token of `e2e-token-user`, an administrator.
pub const TOKEN: &str = "e2e-token";
/// The token of `e2e-second-user`, another administrator.
pub const SECOND_TOKEN: &str = "e2e-second-token";
