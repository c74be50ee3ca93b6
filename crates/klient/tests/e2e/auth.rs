//! Authentication as the server sees it, and credentials that change while a client runs.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    core::v1::{ConfigMap, Secret},
};
use klient::{
    Api, Client, Error, ErrorKind,
    client::{
        config::{Config, Credentials, ExecApiVersion, ExecPlugin, Impersonation, Pem},
        http::{HttpSettings, HttpTransport},
    },
};
use klient_harness::{CertifiedKey, SECOND_TOKEN, TOKEN};
use serde_json::json;

use crate::cluster::{config, context, or_skip, server};

/// Returns the user that the server authenticates a client as.
async fn user(client: &Client) -> Result<String, Error> {
    let reviews: Api<SelfSubjectReview> = Api::cluster(client.clone());
    let review = reviews.create(&SelfSubjectReview::default()).await?;
    Ok(review.status.unwrap().user_info.unwrap().username.unwrap())
}

async fn user_of(config: &Config) -> String {
    user(&Client::from_config(config).unwrap()).await.unwrap()
}

/// Writes a certificate of an administrator to files.
fn write_certificate(folder: &Path, name: &str) -> [PathBuf; 2] {
    let made = certified(name);
    let paths = [folder.join("client.crt"), folder.join("client.key")];
    std::fs::write(&paths[0], made.certificate).unwrap();
    std::fs::write(&paths[1], made.key).unwrap();
    paths
}

fn certified(name: &str) -> CertifiedKey {
    server().unwrap().user_authority().user(name, "system:masters").unwrap()
}

#[tokio::test]
async fn server_authenticates_each_credential() {
    let config = or_skip!(config());
    assert_eq!(user_of(&config).await, "e2e-token-user");
    assert_eq!(user_of(&or_skip!(context("second-token"))).await, "e2e-second-user");
    assert_eq!(user_of(&or_skip!(context("certificate"))).await, "e2e-certificate");
    let jane = Impersonation::new("jane").groups(["system:authenticated"]);
    assert_eq!(user_of(&config.impersonation(jane)).await, "jane");
}

#[tokio::test]
async fn wrong_token_is_unauthorized_and_missing_right_is_forbidden() {
    let config = or_skip!(config());
    let wrong = config.clone().credentials(Credentials::Token("wrong".into()));
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&wrong).unwrap(), "default");
    let error = maps.list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);

    let jane = config.impersonation(Impersonation::new("jane"));
    let secrets: Api<Secret> = Api::namespaced(Client::from_config(&jane).unwrap(), "default");
    let error = secrets.list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains(r#"User "jane" cannot list resource "secrets""#), "{error}");
}

#[tokio::test]
async fn token_file_is_reread_after_a_rejection_and_each_minute() {
    let config = or_skip!(config());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "stale").unwrap();
    let file = config.credentials(Credentials::TokenFile { path: path.clone(), initial: "".into() });
    let client = Client::from_config(&file).unwrap();
    assert_eq!(user(&client).await.unwrap_err().kind(), ErrorKind::Unauthorized);
    std::fs::write(&path, TOKEN).unwrap();
    assert_eq!(user(&client).await.unwrap(), "e2e-token-user");

    std::fs::write(&path, SECOND_TOKEN).unwrap();
    assert_eq!(user(&client).await.unwrap(), "e2e-token-user");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(user(&client).await.unwrap(), "e2e-second-user");
}

#[tokio::test]
async fn replaced_client_certificate_is_used_by_the_next_request() {
    let config = or_skip!(context("certificate"));
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = write_certificate(folder.path(), "first");
    let mut settings = HttpSettings::new(config.server.clone());
    settings.tls = config.tls.client_certificate(Pem::File(certificate), Pem::File(key));
    // By default, files are checked every ten seconds.
    settings.file_check = Duration::ZERO;
    let client = Client::builder(HttpTransport::new(settings).unwrap()).build();
    assert_eq!(user(&client).await.unwrap(), "first");
    write_certificate(folder.path(), "the-second-one");
    assert_eq!(user(&client).await.unwrap(), "the-second-one");
}

/// Creates a credential plugin that prints these statuses one after the other, and repeats the last one.
fn plugin(folder: &Path, statuses: &[serde_json::Value]) -> Credentials {
    for (number, status) in statuses.iter().enumerate() {
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
        std::fs::write(folder.join(format!("{number}.json")), credential.to_string()).unwrap();
    }
    let script = folder.join("plugin");
    let text = "cd \"${0%/*}\"\nset -- *.json\ncat \"$1\"\n[ $# = 1 ] || rm \"$1\"\n";
    std::fs::write(&script, text).unwrap();
    // Run through a shell, because another test may start a program now, which holds the file open for writing.
    let mut plugin = ExecPlugin::new("/bin/sh", ExecApiVersion::V1);
    plugin.args = vec![script.display().to_string()];
    Credentials::Exec(Box::new(plugin))
}

#[tokio::test]
async fn plugin_token_is_renewed_after_a_rejection() {
    let config = or_skip!(config());
    let folder = tempfile::tempdir().unwrap();
    let plugin = plugin(folder.path(), &[json!({"token": "stale"}), json!({"token": SECOND_TOKEN})]);
    assert_eq!(user_of(&config.credentials(plugin)).await, "e2e-second-user");
}

#[tokio::test]
async fn plugin_client_certificate_is_used() {
    let config = or_skip!(config());
    let folder = tempfile::tempdir().unwrap();
    let made = certified("from-a-plugin");
    let status = json!({"clientCertificateData": made.certificate, "clientKeyData": made.key});
    assert_eq!(user_of(&config.credentials(plugin(folder.path(), &[status]))).await, "from-a-plugin");
}
