//! `klient serve`, started as users start it.

use std::process::Stdio;

use http::{HeaderName, HeaderValue};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use klient::{
    Api, Client,
    client::config::{Config, Kubeconfig, Overrides},
};
use serde_json::json;
use tokio::{process::Command, time::timeout};

use crate::program::{PATIENCE, Serving, klient};

#[tokio::test]
async fn serve_runs_until_interrupted() {
    for (arguments, scheme, signal) in [
        (&["serve"][..], "https://", "-INT"),
        (&["serve", "--http", "--anonymous", "--kubeconfig", "k"], "http://", "-TERM"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let serving = Serving::start(folder.path(), arguments).await;
        assert!(serving.url.starts_with(scheme), "{}", serving.url);
        let namespaces: Api<Namespace> = Api::cluster(serving.client.clone());
        assert_eq!(namespaces.list().await.unwrap().items.len(), 4);
        serving.end(signal).await;
    }
}

#[tokio::test]
async fn serve_continues_if_its_output_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = klient(folder.path(), &["serve", "--http", "--anonymous", "--kubeconfig", "k"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let path = folder.path().join("k");
    let reached = async {
        loop {
            if let Ok(kubeconfig) = Kubeconfig::from_file(&path)
                && let Ok(config) = Config::from_kubeconfig(&kubeconfig, &Overrides::default())
            {
                let namespaces: Api<Namespace> = Api::cluster(Client::from_config(&config.no_proxy()).unwrap());
                if namespaces.list().await.is_ok() {
                    return;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, reached).await.unwrap();
    // The command has printed its lines by now.
    assert!(child.try_wait().unwrap().is_none());
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    assert_eq!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn serve_keeps_objects_of_a_folder_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &["serve", "--data", "objects"]).await;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let made = serving.maps().create(&map).await.unwrap();
    serving.end("-INT").await;
    let serving = Serving::start(folder.path(), &["serve", "--data", "objects"]).await;
    assert_eq!(serving.maps().get("a").await.unwrap(), made);

    let second = klient(folder.path(), &["serve", "--data", "objects"]).output().await.unwrap();
    let errors = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(errors.starts_with("error: ") && errors.contains("objects: "), "{errors}");
    serving.end("-INT").await;
}

#[tokio::test]
async fn serve_exits_with_1_if_it_cannot_start() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, why) in [
        (&["serve", "--port", &port][..], "cannot listen on 127.0.0.1:"),
        (&["serve", "--kubeconfig", "no/such/file"], "cannot write the kubeconfig "),
    ] {
        let output = timeout(PATIENCE, klient(folder.path(), arguments).output()).await.unwrap().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.starts_with("error: ") && errors.contains(why), "{errors}");
    }
}

#[tokio::test]
async fn serve_exits_with_2_on_invalid_arguments() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, why) in [
        (&["serve", "--port", "99999"][..], "invalid value '99999' for '--port <PORT>'"),
        (&["serve", "--tls"], "unexpected argument '--tls'"),
        (&["srv"], "unrecognized subcommand 'srv'"),
        (&[], "Usage: klient <COMMAND>"),
    ] {
        let output = timeout(PATIENCE, klient(folder.path(), arguments).output()).await.unwrap().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "{errors}");
    }
    let help = klient(folder.path(), &["serve", "--help"]).output().await.unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("--kubeconfig <FILE>"));
}

#[tokio::test]
async fn serve_has_roles_unless_it_is_told_otherwise() {
    for (arguments, is_allowed) in [(&["serve"][..], false), (&["serve", "--no-rbac"], true)] {
        let folder = tempfile::tempdir().unwrap();
        let serving = Serving::start(folder.path(), arguments).await;
        // The administrator's kubeconfig may do everything.
        assert!(!serving.maps().list().await.unwrap().items.is_empty());
        let path = "/api/v1/namespaces/default/configmaps";
        let (name, bob) = (HeaderName::from_static("impersonate-user"), HeaderValue::from_static("bob"));
        let as_bob = serving.client.rest().get().path(path).header(name, bob).bytes().await;
        assert_eq!(as_bob.is_ok(), is_allowed, "{arguments:?}");
        serving.end("-INT").await;
    }
}

#[tokio::test]
async fn serve_writes_audit_log_and_used_roles() {
    let folder = tempfile::tempdir().unwrap();
    let policy =
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Request}]\n";
    std::fs::write(folder.path().join("policy"), policy).unwrap();
    let arguments = ["serve", "--audit-log", "log", "--audit-policy", "policy", "--record-rbac", "roles"];
    let serving = Serving::start(folder.path(), &arguments).await;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    serving.maps().create(&map).await.unwrap();
    serving.end("-INT").await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let events: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let created: Vec<_> = events.iter().filter(|event| event["verb"] == "create").collect();
    assert_eq!((created.len(), &created[0]["objectRef"]["name"]), (1, &json!("a")));
    let roles = std::fs::read_to_string(folder.path().join("roles")).unwrap();
    assert!(roles.contains("kind: Role\n") && roles.contains("- create\n"), "{roles}");

    std::fs::write(folder.path().join("policy"), "kind: Zork").unwrap();
    let output = klient(folder.path(), &arguments).output().await.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.starts_with("error: policy: invalid audit policy: "), "{errors}");
}
