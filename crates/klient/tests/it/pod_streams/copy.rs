//! Copies to and from a container that runs this machine's programs.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use klient::ErrorKind;
use klient_apiserver::pod_streams::{ExecCall, PodStreams};
use tokio::{io::AsyncWriteExt as _, process::Command};

use super::World;

type Outcome = Result<i32, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the command as a process.
async fn run(mut call: ExecCall) -> Outcome {
    let mut child = Command::new(&call.command[0])
        .args(&call.command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (mut input, mut output, mut errors) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let feed = async {
        if let Some(stdin) = &mut call.stdin {
            // A process may end before it has read everything.
            let _ = tokio::io::copy(stdin, &mut input).await;
        }
        drop(input);
    };
    let read = async {
        if let Some(stdout) = &mut call.stdout {
            tokio::io::copy(&mut output, stdout).await.unwrap();
            stdout.shutdown().await.unwrap();
        }
    };
    let complain = async {
        if let Some(stderr) = &mut call.stderr {
            tokio::io::copy(&mut errors, stderr).await.unwrap();
            stderr.shutdown().await.unwrap();
        }
    };
    let ((), (), (), status) = tokio::join!(feed, read, complain, child.wait());
    Ok(status?.code().unwrap_or(1))
}

async fn world() -> World {
    World::new(PodStreams::new().exec(run)).await
}

fn write(path: &Path, text: impl AsRef<[u8]>, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Makes a tree of files, and returns its number of bytes.
fn tree(root: &Path) -> u64 {
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    write(&root.join("large"), &large, 0o600);
    write(&root.join("bin/run"), "#!/bin/sh\n", 0o755);
    write(&root.join("a name with 'quotes' and spaces"), "x", 0o644);
    std::os::unix::fs::symlink("large", root.join("link")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    3_000_000 + 10 + 1
}

fn check(root: &Path, copy: &Path) {
    assert_eq!(fs::read(copy.join("large")).unwrap(), fs::read(root.join("large")).unwrap());
    assert_eq!((mode(&copy.join("large")), mode(&copy.join("bin/run"))), (0o600, 0o755));
    assert_eq!(fs::read_to_string(copy.join("a name with 'quotes' and spaces")).unwrap(), "x");
    assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("large"));
    assert!(copy.join("empty").is_dir());
}

#[tokio::test]
async fn directories_are_copied_both_ways() {
    let world = world().await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    let bytes = tree(&root);
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let last = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&last);
    // A directory receives the source under its own name.
    let copied = world
        .pods()
        .copy_to("web", &root, inside.to_str().unwrap())
        .on_progress(move |copied| *seen.lock().unwrap() = Some(*copied))
        .await
        .unwrap();
    assert_eq!((copied.entries, copied.bytes), (7, bytes));
    assert_eq!(*last.lock().unwrap(), Some(copied));
    check(&root, &inside.join("tree"));
    // Another target is the name of the copy.
    let renamed = inside.join("renamed");
    world.pods().copy_to("web", &root, renamed.to_str().unwrap()).await.unwrap();
    check(&root, &renamed);

    let outside = folder.path().join("outside");
    let copied = world.pods().copy_from("web", inside.join("tree").to_str().unwrap(), &outside).await.unwrap();
    assert_eq!((copied.entries, copied.bytes), (7, bytes));
    check(&root, &outside);
    world.pods().copy_from("web", renamed.to_str().unwrap(), folder.path()).container("app").await.unwrap();
    check(&root, &folder.path().join("renamed"));
}

#[tokio::test]
async fn single_files_are_copied_and_failures_say_why() {
    let world = world().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("-file");
    write(&file, "text", 0o600);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    world.pods().copy_to("web", &file, path("copy")).await.unwrap();
    assert_eq!(fs::read_to_string(path("copy")).unwrap(), "text");
    world.pods().copy_from("web", path("-file"), path("back")).await.unwrap();
    assert_eq!(fs::read_to_string(path("back")).unwrap(), "text");

    let error = world.pods().copy_from("web", path("missing"), path("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.starts_with("cannot copy files of pod web: tar failed: ") && text.contains("missing"), "{text}");
    let error = world.pods().copy_to("web", path("absent"), path("x")).await.unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    let error = world.pods().copy_to("web", &file, path("no/such/folder")).await.unwrap_err();
    assert!(error.to_string().contains("tar failed"), "{error}");
    let error = world.pods().copy_from("web", "/", path("x")).await.unwrap_err();
    assert!(error.to_string().contains("is not the name of a file"), "{error}");
}

#[tokio::test]
async fn copy_resumes_after_a_broken_connection() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    tree(&root);
    // The first two streams end without an exit code, as those of a killed kubelet do.
    let world = World::new(PodStreams::new().exec(move |mut call: ExecCall| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if attempt < 2 {
                let mut command = call.command.clone();
                let child = Command::new(command.remove(0)).args(command).output().await?;
                let part = &child.stdout[..child.stdout.len().min(1_000_000)];
                call.stdout.as_mut().unwrap().write_all(part).await?;
                call.stdout.as_mut().unwrap().flush().await?;
                return Err("the kubelet was killed".into());
            }
            run(call).await
        }
    }))
    .await;
    let target = folder.path().join("copy");
    let copy = || world.pods().copy_from("web", root.to_str().unwrap(), &target);
    let error = copy().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(format!("{error:#}").contains("the kubelet was killed"), "{error:#}");
    attempts.store(0, Ordering::SeqCst);
    let _ = fs::remove_dir_all(&target);
    let resumed = copy().retries(2).await;
    assert_eq!(attempts.load(Ordering::SeqCst), 3, "{resumed:?}");
    resumed.unwrap();
    check(&root, &target);
}
