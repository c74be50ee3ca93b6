//! The versions of the programs.

use std::process::Command;

use klient::client::discovery::DiscoveryClient;
use serde_json::Value;

use crate::cluster::{client, or_skip, programs, server};

#[tokio::test]
async fn server_and_kubectl_report_their_version() {
    let (server, programs) = (or_skip!(server()), or_skip!(programs()));
    let expected = programs.kubernetes_version().unwrap();
    let version = DiscoveryClient::new(or_skip!(client())).server_version().await.unwrap();
    assert_eq!(version.git_version, expected);
    assert!(expected.starts_with(&format!("v{}.{}.", version.major, version.minor)), "{version:?}");

    let kubectl = programs.folder().join("kubectl");
    // Directories of other origin may not contain it.
    if !kubectl.is_file() {
        return;
    }
    let asked = Command::new(kubectl).args(["version", "-o", "json", "--kubeconfig"]).arg(server.kubeconfig()).output();
    let answer: Value = serde_json::from_slice(&asked.unwrap().stdout).unwrap();
    assert_eq!(answer["clientVersion"]["gitVersion"], *expected);
    assert_eq!(answer["serverVersion"]["gitVersion"], *expected);
}
