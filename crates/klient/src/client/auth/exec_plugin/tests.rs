//! Terminals, and the request to a program.

use serde_json::json;

use super::*;
use crate::client::config::{Credentials, ExecApiVersion, Pem, Proxy, Tls, Trust};

fn issuer(mode: InteractiveMode, has_terminal: fn() -> bool) -> ExecIssuer {
    let plugin = ExecPlugin { interactive_mode: mode, ..ExecPlugin::new("plugin", ExecApiVersion::V1) };
    ExecIssuer { has_terminal, ..ExecIssuer::new(&plugin, &Config::new("https://host").unwrap()).unwrap() }
}

#[test]
fn plugin_gets_standard_input_only_if_it_is_a_terminal() {
    for (mode, with, without) in [
        (InteractiveMode::Never, Some(false), Some(false)),
        (InteractiveMode::IfAvailable, Some(true), Some(false)),
        (InteractiveMode::Always, Some(true), None),
    ] {
        assert_eq!(issuer(mode, || true).is_interactive().ok(), with, "{mode:?}");
        assert_eq!(issuer(mode, || false).is_interactive().ok(), without, "{mode:?}");
    }
    let error = issuer(InteractiveMode::Always, || false).is_interactive().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().contains("credential plugin plugin requires a terminal"), "{error}");
}

#[test]
fn plugin_receives_cluster_info_if_configured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, "pem").unwrap();
    let mut plugin = ExecPlugin::new("plugin", ExecApiVersion::V1Beta1);
    plugin.cluster_extension = Some(json!({"audience": "x"}));
    let mut config = Config::new("https://host:6443/clusters/a").unwrap().disable_compression(true);
    config.tls = Tls::default().trust(Trust::Authority(Pem::File(file))).server_name("other");
    config.proxy = Proxy::Via("http://joe:pass@proxy:3128".parse().unwrap());
    config.credentials = Credentials::Exec(Box::new(plugin.clone()));
    let info = |plugin: &ExecPlugin| {
        let issuer = ExecIssuer::new(plugin, &config).unwrap();
        let text = info::exec_info(plugin, issuer.cluster.as_ref(), true);
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let version = "client.authentication.k8s.io/v1beta1";
    assert_eq!(info(&plugin), json!({"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": true}}));
    plugin.provide_cluster_info = true;
    let cluster = json!({
        "server": "https://host:6443/clusters/a",
        "tls-server-name": "other",
        "certificate-authority-data": "cGVt",
        "proxy-url": "http://joe:pass@proxy:3128",
        "disable-compression": true,
        "config": {"audience": "x"},
    });
    assert_eq!(info(&plugin)["spec"], json!({"interactive": true, "cluster": cluster}));
}
