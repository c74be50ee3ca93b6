//! `klient replay`.

use crate::program::outcome;

const RECORDING: &str = concat!(
    r#"{"klient":"recording","version":1,"started":"2026-01-01T00:00:00Z","whole":true}"#,
    "\n",
    r#"{"at":10,"step":"object","resource":"configmaps","change":"added","object":{"metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"data":{"a":"hidden"}}}"#,
    "\n",
    r#"{"at":20,"step":"started","turn":1,"controller":"maps","key":"shop/web","reasons":[{"kind":"added","source":"configmaps","object":"shop/web"}],"failures":0}"#,
    "\n",
    r#"{"at":25,"step":"queued","controller":"maps","key":"shop/other","reason":{"kind":"requested"}}"#,
    "\n",
    r#"{"at":30,"step":"request","turn":1,"method":"GET","path":"/version","status":500,"response":{"message":"on purpose"}}"#,
    "\n",
    r#"{"at":40,"step":"ended","turn":1,"end":"failed","error":"on purpose"}"#,
    "\n",
);

#[tokio::test]
async fn replay_shows_the_story_of_a_key() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("night.klient"), RECORDING).unwrap();
    let (code, output, _) = outcome(folder.path(), &["replay", "night.klient", "--key", "shop/web"]).await;
    let expected = "recorded from the start of the process, at 2026-01-01T00:00:00Z
    0.000010 s  configmaps shop/web added, version 7
    0.000020 s  #1 maps reconciles shop/web because of: configmaps shop/web added
    0.000030 s  #1 GET /version 500 on purpose
    0.000040 s  #1 failed: on purpose
";
    assert_eq!((code, output.as_str()), (Some(0), expected));
    let (_, all, _) = outcome(folder.path(), &["replay", "night.klient"]).await;
    assert!(all.contains("maps queued shop/other because of requested"), "{all}");
    let (code, _, errors) = outcome(folder.path(), &["replay", "night.klient", "--key", "shop/nothing"]).await;
    assert_eq!((code, errors.as_str()), (Some(1), "error: the recording has nothing about shop/nothing\n"));
}

#[tokio::test]
async fn replay_gives_the_file_to_a_program() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("night.klient"), RECORDING).unwrap();
    let (code, output, _) =
        outcome(folder.path(), &["replay", "night.klient", "--", "printenv", "KLIENT_REPLAY"]).await;
    assert_eq!(code, Some(0));
    assert!(output.trim_end().ends_with("/night.klient") && output.starts_with('/'), "{output}");
    let (code, ..) = outcome(folder.path(), &["replay", "night.klient", "--", "sh", "-c", "exit 7"]).await;
    assert_eq!(code, Some(7));
}

#[tokio::test]
async fn replay_refuses_other_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pod.yaml"), "apiVersion: v1\n").unwrap();
    let (code, _, errors) = outcome(folder.path(), &["replay", "pod.yaml"]).await;
    assert_eq!(code, Some(1));
    assert!(
        errors.starts_with("error: cannot read recording pod.yaml: line 1 is no header of a recording"),
        "{errors}"
    );
    let (code, _, errors) = outcome(folder.path(), &["replay", "missing.klient"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("missing.klient"), "{errors}");
}
