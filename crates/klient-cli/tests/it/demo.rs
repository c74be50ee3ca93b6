//! `klient demo`.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

use crate::program::{PATIENCE, klient, outcome};

#[tokio::test]
async fn it_walks_through_every_step_and_shows_every_stage() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said, complaints) = outcome(folder.path(), &["demo"]).await;
    assert_eq!((code, complaints.as_str()), (Some(0), ""), "{said}");
    for step in ["Create", "Scale", "Status", "Drift", "Cut watch", "Failed reconcile", "Delete", "Summary"] {
        assert!(said.contains(&format!("\n== {step}")), "{step}: {said}");
    }
    for stage in ["reflector", "fifo", "cache", "queue", "reconcile"] {
        assert!(said.contains(&format!(" ms  {stage}")), "{stage}: {said}");
    }
    assert!(said.contains("ok  nothing was lost, and 0 lists were needed for it"), "{said}");
    // At least those on purpose: a conflict may come on top, which is what retries are for.
    let failures = said.split_once("ok  after ").unwrap().1.split_once(" failures, each tried again later").unwrap().0;
    assert!(failures.parse::<u32>().unwrap() >= 3, "{said}");
    assert!(!said.contains('\x1b'), "no colours in a pipe");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "it leaves nothing behind");
}

#[tokio::test]
async fn kept_up_it_serves_others_and_goes_on_reconciling() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = klient(folder.path(), &["demo", "--quiet", "--keep"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    while !said.last().is_some_and(|line: &String| line.starts_with("kubectl scale")) {
        said.push(timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap());
    }
    assert!(!said.iter().any(|line| line.contains(" ms  reflector")), "it was to be quiet: {said:?}");
    let kubeconfig = said.iter().find_map(|line| line.strip_prefix("export KUBECONFIG=")).unwrap();
    let (code, table, _) = outcome(folder.path(), &["get", "deploy", "--kubeconfig", kubeconfig]).await;
    assert_eq!(code, Some(0));
    assert!(table.starts_with("NAME") && table.contains("\nblog "), "{table}");
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    assert_eq!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().code(), Some(0));
}
