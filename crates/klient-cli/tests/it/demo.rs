//! `klient demo`.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

use crate::program::{PATIENCE, klient, outcome};

const STEPS: [&str; 8] =
    ["Create", "Scale", "Report status", "Repair", "Survive broken watches", "Retry failures", "Delete", "Summary"];

/// Runs the demo in an empty folder, and checks what both kinds of output have in common.
async fn run(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (code, output, errors) = outcome(folder.path(), arguments).await;
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    let mut rest = output.as_str();
    for step in STEPS {
        let title = format!("\n\n{step}\n");
        rest = rest.split_once(&title).unwrap_or_else(|| panic!("{step} is missing or not in order: {output}")).1;
    }
    assert!(output.contains("  ok  no event was lost, 0 new lists were needed "), "{output}");
    // At least the injected failures: a conflict may add one.
    let failures = output.split_once(" failed reconciles were retried").unwrap().0.rsplit_once(' ').unwrap().1;
    assert!(failures.parse::<u32>().unwrap() >= 3, "{output}");
    assert!(!output.contains('\x1b'), "coloured output in a pipe: {output}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "the demo left files behind");
    output
}

/// Returns whether a line is one of a stage: `    12.3 ms  watch      received event`.
fn is_stage(line: &str, stage: &str) -> bool {
    line.split_once(" ms  ").is_some_and(|(_, rest)| rest.starts_with(&format!("{stage:<9}  ")))
}

#[tokio::test]
async fn demo_prints_short_story_by_default() {
    let output = run(&["demo"]).await;
    assert!(output.lines().count() < 60, "{output}");
    assert!(!output.lines().any(|line| line.contains(" ms  ")), "{output}");
    // Times are aligned in one column.
    let ends: Vec<usize> = output.lines().filter(|line| line.starts_with("  ok  ")).map(str::len).collect();
    assert!(ends.len() >= 9 && ends.iter().all(|end| *end == ends[0]), "{ends:?}: {output}");
}

#[tokio::test]
async fn demo_prints_every_stage_if_verbose() {
    let output = run(&["demo", "--verbose"]).await;
    for stage in ["watch", "batch", "cache", "queue", "reconcile", "sample"] {
        assert!(output.lines().any(|line| is_stage(line, stage)), "{stage}: {output}");
    }
}

#[tokio::test]
async fn demo_keeps_serving_and_reconciling_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = klient(folder.path(), &["demo", "--keep"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut output = Vec::new();
    while !output.last().is_some_and(|line: &String| line.starts_with("kubectl scale")) {
        output.push(timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap());
    }
    let kubeconfig = output.iter().find_map(|line| line.strip_prefix("export KUBECONFIG=")).unwrap();
    let (code, table, _) = outcome(folder.path(), &["get", "deploy", "--kubeconfig", kubeconfig]).await;
    assert_eq!(code, Some(0));
    assert!(table.starts_with("NAME") && table.contains("\nblog "), "{table}");
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    assert_eq!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().code(), Some(0));
}
