//! `klient get`, `watch` and `api-resources`.

use std::{path::Path, process::Stdio};

use k8s_openapi::api::core::v1::Secret;
use klient::{Api, Patch};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

use crate::program::{PATIENCE, Serving, klient, outcome};

async fn serving(folder: &Path) -> Serving {
    // The tests count the config maps of a namespace, so that the server adds none of its own.
    let serving = Serving::start(folder, &["serve", "--bare", "--kubeconfig", "k"]).await;
    for (name, app) in [("menu", "bar"), ("prices", "bar"), ("tables", "kitchen")] {
        let map = json!({"metadata": {"name": name, "labels": {"app": app}}, "data": {"n": "0"}});
        serving.maps().create(&serde_json::from_value(map).unwrap()).await.unwrap();
    }
    serving
}

#[tokio::test]
async fn get_shows_tables_names_and_whole_objects() {
    let folder = tempfile::tempdir().unwrap();
    let serving = serving(folder.path()).await;
    let get = async |arguments: &[&str]| {
        let (code, output, errors) = outcome(folder.path(), &[&["get", "--kubeconfig", "k"], arguments].concat()).await;
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
        output
    };
    let table = get(&["cm", "-l", "app=bar"]).await;
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "DATA", "AGE"]);
    assert_eq!(
        (lines[1][..2].to_vec(), lines[2][..2].to_vec(), lines.len()),
        (vec!["menu", "1"], vec!["prices", "1"], 3)
    );
    let everywhere = get(&["configmaps", "-A", "--field-selector", "metadata.name=menu"]).await;
    assert!(everywhere.starts_with("NAMESPACE   NAME"), "{everywhere}");
    assert!(everywhere.contains("\ndefault     menu"), "{everywhere}");
    assert_eq!(get(&["cm", "tables", "menu", "-o", "name"]).await, "configmaps/tables\nconfigmaps/menu\n");
    let one: Value = serde_json::from_str(&get(&["cm/menu", "-o", "json"]).await).unwrap();
    assert_eq!(
        (&one["kind"], &one["metadata"]["name"], &one["data"]["n"]),
        (&json!("ConfigMap"), &json!("menu"), &json!("0"))
    );
    let all: Value = serde_json::from_str(&get(&["cm", "-o", "json"]).await).unwrap();
    assert_eq!((&all["kind"], all["items"].as_array().unwrap().len()), (&json!("List"), 3));
    let yaml = get(&["cm", "menu", "-o", "yaml"]).await;
    assert!(yaml.contains("kind: ConfigMap") && yaml.contains("  name: menu"), "{yaml}");
    let nodes = get(&["namespaces"]).await;
    assert!(nodes.contains("default") && nodes.contains("Active"), "{nodes}");
    serving.end("-INT").await;
}

#[tokio::test]
async fn get_reports_what_it_does_not_find() {
    let folder = tempfile::tempdir().unwrap();
    let serving = serving(folder.path()).await;
    let get = |arguments: &'static [&'static str]| {
        let folder = folder.path().to_owned();
        async move { outcome(&folder, &[&["get", "--kubeconfig", "k"], arguments].concat()).await }
    };
    let (code, output, errors) = get(&["pods"]).await;
    assert_eq!((code, output.as_str(), errors.as_str()), (Some(0), "", "no pods found in namespace \"default\"\n"));
    let (code, _, errors) = get(&["cm", "nothing"]).await;
    assert_eq!((code, errors.as_str()), (Some(1), "error: configmaps \"nothing\" not found\n"));
    let (code, _, errors) = get(&["widgets"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("widgets"), "{errors}");
    let (code, _, errors) = get(&["cm", "menu", "-A"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("--all-namespaces cannot be used with names"), "{errors}");
    let (code, _, errors) = outcome(folder.path(), &["get", "pods", "--kubeconfig", "no/such/file"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("no/such/file"), "{errors}");
    serving.end("-INT").await;
}

#[tokio::test]
async fn closed_pipe_is_not_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let serving = serving(folder.path()).await;
    let shell =
        format!("{} get cm --kubeconfig k -o json | head -1; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_klient"));
    let output = Command::new("bash").args(["-c", &shell]).current_dir(folder.path()).output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\n0\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    serving.end("-INT").await;
}

#[tokio::test]
async fn watch_prints_objects_and_changes_but_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let serving = serving(folder.path()).await;
    let follow = |kind: &str| {
        let mut child =
            klient(folder.path(), &["watch", "--kubeconfig", "k", kind]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines)
    };
    let (mut child, mut lines) = follow("cm");
    let mut line = async || {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        // Resource versions differ from run to run.
        line.split_whitespace()
            .enumerate()
            .filter(|(place, _)| *place != 2)
            .map(|(_, word)| word.to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut found = [line().await, line().await, line().await];
    found.sort();
    assert_eq!(found, ["FOUND default/menu", "FOUND default/prices", "FOUND default/tables"]);
    let soup = Patch::merge(json!({"data": {"n": "1", "soup": "4.50"}}));
    serving.maps().patch("menu", soup.clone()).await.unwrap();
    assert_eq!(line().await, "CHANGED default/menu data.n: \"0\" -> \"1\", data.soup: nothing -> \"4.50\"");
    serving.maps().delete("prices").await.unwrap();
    assert_eq!(line().await, "DELETED default/prices");
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    assert_eq!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().code(), Some(0));

    let (_child, mut lines) = follow("secrets");
    let secrets: Api<Secret> = Api::namespaced(serving.client.clone(), "default");
    let secret = json!({"metadata": {"name": "key"}, "stringData": {"password": "a1"}});
    secrets.create(&serde_json::from_value(secret).unwrap()).await.unwrap();
    lines.next_line().await.unwrap();
    let other = Patch::merge(json!({"stringData": {"password": "b2"}}));
    secrets.patch("key", other.clone()).await.unwrap();
    let changed = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(changed.starts_with("CHANGED") && changed.ends_with(" data.password"), "{changed}");
    serving.end("-INT").await;
}

#[tokio::test]
async fn api_resources_prints_kinds_and_verbs() {
    let folder = tempfile::tempdir().unwrap();
    let serving = serving(folder.path()).await;
    let show = async |arguments: &[&str]| {
        outcome(folder.path(), &[&["api-resources", "--kubeconfig", "k"], arguments].concat()).await.1
    };
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let all = show(&[]).await;
    assert_eq!(words(all.lines().next().unwrap()), ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS"]);
    let deployments = all.lines().find(|line| line.starts_with("deployments ")).unwrap();
    assert_eq!(words(deployments)[1..5], ["deploy", "apps/v1", "true", "Deployment"]);
    let apps = show(&["--api-group", "apps", "--namespaced"]).await;
    assert!(apps.lines().skip(1).all(|line| line.contains("apps/v1")) && apps.lines().count() > 4, "{apps}");
    let cluster = show(&["--namespaced=false"]).await;
    assert!(cluster.contains("\nnodes ") && !cluster.contains("\npods "), "{cluster}");
    serving.end("-INT").await;
}
