//! Changes: the file that each is written to, and the content that stays.

use super::*;

fn read(directory: &TempDir, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

fn names(directory: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn change_is_written_to_the_file_of_the_entry() {
    let directory = directory(&[
        ("a", &small("red", "https://a", "x")),
        ("b", &small("blue", "https://b", "y")),
        ("c", &small("green", "https://c", "z")),
    ]);
    let files = list(&directory, &["a", "b", "c"]);
    let (a, c) = (read(&directory, "a"), read(&directory, "c"));
    files
        .modify(|kubeconfig| kubeconfig.clusters.get_mut("blue").unwrap().server = Some("https://new".into()))
        .unwrap();
    // The other files are unchanged to the byte.
    assert_eq!((read(&directory, "a"), read(&directory, "c")), (a, c));
    assert_eq!(Kubeconfig::parse(read(&directory, "b")).unwrap(), small("blue", "https://new", "y").parse().unwrap());
    assert_eq!(names(&directory), ["a", "b", "c"]);
}

#[test]
fn new_entry_is_written_to_the_first_existing_file() {
    let directory = directory(&[("b", &small("blue", "https://b", "y")), ("c", "")]);
    let files = list(&directory, &["a", "b", "c"]);
    files
        .modify(|kubeconfig| {
            kubeconfig.users.insert("me", AuthInfo::with_token("t"));
            kubeconfig.extensions.insert("mine", json!({"a": 1}).into());
            kubeconfig.preferences.insert("x".into(), json!(1));
            kubeconfig.other.insert("y".into(), json!(2));
        })
        .unwrap();
    let b = Kubeconfig::parse(read(&directory, "b")).unwrap();
    assert!(b.users.contains("me") && b.clusters.contains("blue") && b.extensions.contains("mine"));
    assert_eq!((&b.preferences["x"], &b.other["y"]), (&json!(1), &json!(2)));
    assert_eq!(names(&directory), ["b", "c"]);
    assert_eq!(read(&directory, "c"), "");
}

#[test]
fn last_file_is_created_if_none_exists() {
    let directory = directory(&[]);
    let files = list(&directory, &["a", "new/deep/config"]);
    files.modify(|kubeconfig| kubeconfig.current_context = Some("x".into())).unwrap();
    assert_eq!(files.load().unwrap().current_context.as_deref(), Some("x"));
    assert_eq!(names(&directory), ["new"]);
    // An explicit file may be created, too.
    let files = KubeconfigFiles::explicit(directory.path().join("explicit"));
    files.modify(|kubeconfig| kubeconfig.current_context = Some("y".into())).unwrap();
    assert_eq!(files.load().unwrap().current_context.as_deref(), Some("y"));
}

#[test]
fn current_context_is_written_to_the_first_file_with_one() {
    let directory = directory(&[("a", "users: []"), ("b", "current-context: b"), ("c", "current-context: c")]);
    let files = list(&directory, &["a", "b", "c"]);
    files.modify(|kubeconfig| kubeconfig.current_context = Some("new".into())).unwrap();
    assert_eq!(read(&directory, "a"), "users: []");
    assert!(read(&directory, "b").contains("current-context: new"));
    assert_eq!(read(&directory, "c"), "current-context: c");
    // Once removed, the context of the next file takes effect.
    files.modify(|kubeconfig| kubeconfig.current_context = None).unwrap();
    assert_eq!(files.load().unwrap().current_context.as_deref(), Some("c"));
}

#[test]
fn entry_is_removed_only_from_its_own_file() {
    let directory = directory(&[("a", &small("red", "https://a", "x")), ("b", &small("red", "https://b", "y"))]);
    let files = list(&directory, &["a", "b"]);
    let b = read(&directory, "b");
    files.modify(|kubeconfig| drop(kubeconfig.clusters.remove("red"))).unwrap();
    assert_eq!(read(&directory, "b"), b);
    assert_eq!(files.load().unwrap().clusters.get("red"), Some(&Cluster::new("https://b")));
    // An entry that is removed and inserted again stays in its file.
    files
        .modify(|kubeconfig| {
            kubeconfig.clusters.remove("red");
            kubeconfig.clusters.insert("red", Cluster::new("https://again"));
        })
        .unwrap();
    assert!(read(&directory, "b").contains("https://again") && !read(&directory, "a").contains("red"));
}

#[test]
fn save_keeps_unknown_fields_order_and_path_spelling() {
    let directory = directory(&[("a", FULL)]);
    list(&directory, &["a"])
        .modify(|kubeconfig| {
            kubeconfig.clusters.get_mut("zulu").unwrap().proxy_url = None;
            let user = kubeconfig.users.get_mut("files").unwrap();
            user.client_certificate = Some(directory.path().join("new/tls.crt"));
            user.token = None;
            kubeconfig.users.get_mut("dev").unwrap().impersonate = Some("joe".into());
        })
        .unwrap();
    let mut expected: Value = serde_saphyr::from_str(FULL).unwrap();
    expected["clusters"][0]["cluster"].as_object_mut().unwrap().remove("proxy-url");
    expected["users"][0]["user"]["as"] = json!("joe");
    let files = expected["users"][2]["user"].as_object_mut().unwrap();
    files.insert("client-certificate".into(), json!("new/tls.crt"));
    files.remove("token");
    assert_eq!(serde_saphyr::from_str::<Value>(&read(&directory, "a")).unwrap(), expected);
}

#[test]
fn relative_command_is_not_looked_up_in_path() {
    let directory = directory(&[("a", "users: [{name: u, user: {exec: {command: aws}}}]")]);
    let files = list(&directory, &["a"]);
    let set = |command: PathBuf| {
        let change = |kubeconfig: &mut Kubeconfig| {
            kubeconfig.users.get_mut("u").unwrap().exec.as_mut().unwrap().command = command;
        };
        files.modify(change).unwrap();
    };
    set(directory.path().join("login"));
    assert!(read(&directory, "a").contains("command: ./login"), "{}", read(&directory, "a"));
    let loaded = files.load().unwrap();
    assert_eq!(loaded.users.get("u").unwrap().exec.as_ref().unwrap().command, directory.path().join("login"));
    set("aws".into());
    assert!(read(&directory, "a").contains("command: aws"));
}

#[test]
fn json_file_is_written_back_as_json() {
    let directory = directory(&[("a", "{\"current-context\": \"x\"}")]);
    list(&directory, &["a"]).modify(|kubeconfig| kubeconfig.current_context = Some("y".into())).unwrap();
    let value: Value = serde_json::from_str(&read(&directory, "a")).unwrap();
    assert_eq!(value["current-context"], "y");
}

#[test]
fn no_file_is_written_without_a_change_or_save() {
    let directory = directory(&[("a", FULL)]);
    let files = list(&directory, &["a"]);
    files.modify(|_| ()).unwrap();
    let mut edit = files.edit().unwrap();
    edit.current_context = None;
    assert_eq!(names(&directory), ["a", "a.lock"]);
    drop(edit);
    assert_eq!(names(&directory), ["a"]);
    assert_eq!(read(&directory, "a"), FULL);
}

#[test]
fn lock_error_names_the_file() {
    let directory = directory(&[("a", ""), ("a.lock", "")]);
    let files = list(&directory, &["a"]).lock_timeout(Duration::from_millis(20));
    let error = files.modify(|_| ()).unwrap_err();
    assert!(error.to_string().ends_with("/a: cannot lock file"), "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("a.lock exists"), "{source}");
    // The lock of the other program is not removed.
    assert_eq!(names(&directory), ["a", "a.lock"]);
}

#[test]
fn concurrent_writers_lose_no_change() {
    let directory = directory(&[("a", ""), ("b", "contexts: [{name: mine, context: {}}]")]);
    let (writers, changes) = (4, 8);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            // In both orders, so that locking in the order of the list would deadlock.
            let order = if writer % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
            let files = list(&directory, &order).lock_timeout(Duration::from_secs(60));
            scope.spawn(move || {
                for change in 0..changes {
                    let name = format!("{writer}-{change}");
                    files.modify(|kubeconfig| kubeconfig.users.insert(name, AuthInfo::with_token("t"))).unwrap();
                }
            });
        }
    });
    assert_eq!(list(&directory, &["a", "b"]).load().unwrap().users.len(), writers * changes);
    assert_eq!(names(&directory), ["a", "b"]);
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(directory: &TempDir, name: &str) -> u32 {
        fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_file_is_private_and_existing_mode_is_kept() {
        let directory = directory(&[("old", "")]);
        fs::set_permissions(directory.path().join("old"), fs::Permissions::from_mode(0o640)).unwrap();
        for (name, expected) in [("new/config", 0o600), ("old", 0o640)] {
            list(&directory, &[name]).modify(|kubeconfig| kubeconfig.current_context = Some("x".into())).unwrap();
            assert_eq!(mode(&directory, name), expected, "{name}");
        }
        assert_eq!(mode(&directory, "new"), 0o700);
    }

    #[test]
    fn save_follows_links() {
        let directory = directory(&[("real", "")]);
        symlink("real", directory.path().join("link")).unwrap();
        list(&directory, &["link"]).modify(|kubeconfig| kubeconfig.current_context = Some("x".into())).unwrap();
        assert!(directory.path().join("link").is_symlink());
        assert!(read(&directory, "real").contains("current-context: x"));
    }
}
