//! Reading, merging and writing whole files.

use std::{fs, path::PathBuf, time::Duration};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{ErrorKind, client::config::environment::Environment};

mod write_back;

/// A kubeconfig with every field that this crate knows, and unknown ones.
const FULL: &str = r#"
apiVersion: v1
kind: Config
current-context: dev
preferences: {colors: true}
future: {a: [1, 2.5, "on", null]}
clusters:
- name: zulu
  weight: 7
  cluster:
    server: https://zulu:6443
    certificate-authority: pki/ca.crt
    tls-server-name: zulu.local
    proxy-url: socks5://proxy:1080
    disable-compression: true
    future: yes-please
    extensions: [{name: minikube.sigs.k8s.io, extension: {version: v1.36.0, provider: minikube.sigs.k8s.io}}]
- name: alpha
  cluster: {server: https://alpha:6443, insecure-skip-tls-verify: true, certificate-authority-data: aGVsbG8=}
users:
- name: dev
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--role, dev]
      env: [{name: A, value: b, future: 1}]
      installHint: get it
      provideClusterInfo: true
      interactiveMode: Never
      future: true
    as: jane
    as-uid: "42"
    as-groups: [a, b]
    as-user-extra: {scopes: [x, z]}
    future: {deep: {er: 1}}
- name: old
  user: {auth-provider: {name: oidc, config: {client-id: c}, future: 1}, username: joe, password: pw}
- name: files
  user: {client-certificate: tls.crt, client-key: /abs/tls.key, tokenFile: ../token, client-key-data: aGk=, token: t}
contexts:
- name: dev
  context: {cluster: zulu, user: dev, namespace: web, future: 1, extensions: [{name: x, extension: [1]}]}
extensions: [{name: top, extension: {nested: true}, future: 1}]
"#;

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn list(directory: &TempDir, names: &[&str]) -> KubeconfigFiles {
    KubeconfigFiles::list(names.iter().map(|name| directory.path().join(name)))
}

/// A file with one cluster, whose server identifies the file, and a current context.
fn small(cluster: &str, server: &str, context: &str) -> String {
    format!("current-context: {context}\nclusters: [{{name: {cluster}, cluster: {{server: {server}}}}}]\n")
}

#[test]
fn kubeconfig_keeps_unknown_fields_and_extensions() {
    let kubeconfig: Kubeconfig = FULL.parse().unwrap();
    let before: Value = serde_saphyr::from_str(FULL).unwrap();
    let after: Value = serde_saphyr::from_str(&kubeconfig.to_yaml().unwrap()).unwrap();
    assert_eq!(after, before);
    assert_eq!(serde_json::to_value(&kubeconfig).unwrap(), before);
    assert_eq!(serde_json::from_value::<Kubeconfig>(before).unwrap(), kubeconfig);
    assert_eq!(kubeconfig.to_yaml().unwrap().parse::<Kubeconfig>().unwrap(), kubeconfig);
}

#[test]
fn yaml_is_written_as_kubectl_writes_it() {
    let mut kubeconfig = Kubeconfig::default();
    kubeconfig.clusters.insert("no", Cluster::new("https://h"));
    kubeconfig.users.insert("me", AuthInfo::with_token("12345"));
    kubeconfig.contexts.insert("x", Context::new("no", "me"));
    let text = "\
apiVersion: v1
clusters:
- cluster:
    server: https://h
  name: \"no\"
contexts:
- context:
    cluster: \"no\"
    user: me
  name: x
current-context: \"\"
kind: Config
users:
- name: me
  user:
    token: \"12345\"
";
    assert_eq!(kubeconfig.to_yaml().unwrap(), text);
}

#[test]
fn parser_accepts_utf8_utf16_and_json() {
    let text = "current-context: \"ünï\"\n";
    let utf16 = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
    for bytes in [
        text.as_bytes().to_vec(),
        marked(b"\xef\xbb\xbf", text.as_bytes()),
        marked(b"\xff\xfe", &utf16(u16::to_le_bytes)),
        marked(b"\xfe\xff", &utf16(u16::to_be_bytes)),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        "{\n\t\"current-context\": \"ünï\"\n}".as_bytes().to_vec(),
    ] {
        assert_eq!(Kubeconfig::parse(&bytes).unwrap().current_context.as_deref(), Some("ünï"), "{bytes:?}");
    }
    for empty in ["", "\n", "---\n", "# nothing\n", "{}", "null"] {
        assert!(Kubeconfig::parse(empty).unwrap().is_empty(), "{empty:?}");
    }
}

#[test]
fn type_error_names_the_field_but_not_its_value() {
    for (text, expected) in [
        (
            "users: [{name: a, user: {token: 5317}}]",
            "users[\"a\"].user.token: expected a string, found a number, put it in quotes",
        ),
        ("users: [{name: a, user: s3cret}]", "users[\"a\"].user: expected an object, found a string"),
        ("users: {a: s3cret}", "users: expected a list, found an object"),
        ("users: [s3cret]", "users[0]: expected an object, found a string"),
        ("users: [{name: a, user: {exec: {args: [a, 5317]}}}]", "users[\"a\"].user.exec.args[1]: expected a string"),
        ("users: [{name: a, user: {exec: {env: [s3cret]}}}]", "users[\"a\"].user.exec.env[0]: expected an object"),
        ("users: [{name: a, user: {as-user-extra: {k: s3cret}}}]", "as-user-extra.k: expected a list"),
        ("users: [{name: a, user: {auth-provider: {config: {k: 5317}}}}]", "auth-provider.config.k: expected a string"),
        (
            "clusters: [{name: a, cluster: {insecure-skip-tls-verify: s3cret}}]",
            "expected true or false, found a string",
        ),
        ("clusters: [{name: a}, {name: a}]", "clusters[\"a\"]: is defined twice"),
        ("contexts: [{name: a, context: {extensions: [{name: x}, {name: x}]}}]", "extensions[\"x\"]: is defined twice"),
        ("kind: Pod", "kind: expected \"Config\", found \"Pod\""),
        ("apiVersion: v2", "apiVersion: expected \"v1\", found \"v2\""),
        ("users:\n- token: \"s3cret", "line 2, column 10: is neither YAML nor JSON"),
        ("- s3cret", "expected an object, found a list"),
        ("a: 1\n---\nb: s3cret", "line 3, column 1: is neither YAML nor JSON"),
    ] {
        let error = text.parse::<Kubeconfig>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(expected), "{text}\n{error}");
        assert!(!format!("{error:?}").contains("s3cret") && !format!("{error:?}").contains("5317"), "{error:?}");
    }
    let error = Kubeconfig::parse(b"\xff\xfe\x00").unwrap_err();
    assert_eq!(error.to_string(), "kubeconfig is neither UTF-8 nor UTF-16");
}

#[test]
fn merge_takes_entries_and_settings_of_the_first_file() {
    let directory = directory(&[
        ("a", "clusters: [{name: red, cluster: {server: a}}]\nfuture: a"),
        (
            "b",
            "current-context: b\nclusters: [{name: red, cluster: {server: b, proxy-url: b}}, {name: blue, cluster: {server: b}}]",
        ),
        ("c", "current-context: c\nfuture: c\npreferences: {x: c}\nusers: [{name: u, user: {token: c}}]"),
    ]);
    let merged = list(&directory, &["a", "missing", "b", "c"]).load().unwrap();
    assert_eq!(merged.current_context.as_deref(), Some("b"));
    assert_eq!(merged.clusters.get("red"), Some(&Cluster::new("a")));
    assert_eq!(merged.clusters.get("blue"), Some(&Cluster::new("b")));
    assert_eq!(merged.other["future"], json!("a"));
    assert_eq!(merged.preferences["x"], json!("c"));
    let path = |name: &str| directory.path().join(name);
    assert_eq!(merged.clusters.origin("red"), Some(path("a").as_path()));
    assert_eq!(merged.clusters.origin("blue"), Some(path("b").as_path()));
    assert_eq!(merged.users.origin("u"), Some(path("c").as_path()));
    assert_eq!(merged.current_context_origin().as_deref(), Some(path("b").as_path()));
}

#[test]
fn paths_are_resolved_against_their_file() {
    let directory = directory(&[]);
    for (name, ca) in [("one", "ca.crt"), ("two", "../ca.crt")] {
        fs::create_dir(directory.path().join(name)).unwrap();
        let text = format!(
            "clusters: [{{name: {name}, cluster: {{server: s, certificate-authority: {ca}}}}}]\nusers: [{{name: {name}, \
             user: {{client-certificate: c, client-key: /k, tokenFile: ./t, exec: {{command: ../bin/x}}}}}}]"
        );
        fs::write(directory.path().join(name).join("config"), text).unwrap();
    }
    let merged = list(&directory, &["one/config", "two/config"]).load().unwrap();
    let at = |path: &str| Some(directory.path().join(path));
    assert_eq!(merged.clusters.get("one").unwrap().certificate_authority, at("one/ca.crt"));
    assert_eq!(merged.clusters.get("two").unwrap().certificate_authority, at("ca.crt"));
    let user = merged.users.get("two").unwrap();
    assert_eq!(user.client_certificate, at("two/c"));
    assert_eq!(user.client_key, Some(PathBuf::from("/k")));
    assert_eq!(user.token_file, at("two/t"));
    assert_eq!(Some(&user.exec.as_ref().unwrap().command), at("bin/x").as_ref());
}

#[test]
fn command_without_separator_is_not_resolved() {
    let directory = directory(&[("a", "users: [{name: u, user: {exec: {command: aws}}}]")]);
    let merged = list(&directory, &["a"]).load().unwrap();
    assert_eq!(merged.users.get("u").unwrap().exec.as_ref().unwrap().command, PathBuf::from("aws"));
}

#[test]
fn files_are_found_as_in_client_go() {
    let root = Path::new("/nowhere");
    for (variables, expected) in [
        (&[("HOME", "/home/me")][..], &["/home/me/.kube/config"][..]),
        (&[("HOME", "/home/me"), ("KUBECONFIG", "")], &["/home/me/.kube/config"]),
        (&[("HOME", "/home/me"), ("KUBECONFIG", "/a:/b::/a:c")], &["/a", "/b", "c"]),
        (&[("KUBECONFIG", ":")], &[]),
        (&[], &[]),
    ] {
        let files = KubeconfigFiles::from_environment(&Environment::of_test(root, variables));
        assert_eq!(files.paths().iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn error_names_missing_explicit_and_all_invalid_files() {
    let directory = directory(&[("a", "kind: Pod"), ("b", ""), ("c", "a: [")]);
    let path = directory.path().join("missing");
    let error = Kubeconfig::from_file(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: does not exist", path.display()));
    assert!(list(&directory, &["missing"]).load().unwrap().is_empty());
    let error = list(&directory, &["a", "b", "c", "."]).load().unwrap_err().to_string();
    for part in ["/a: kind", "/c: line 1, column 4", "cannot read file"] {
        assert!(error.contains(part), "{error}");
    }
}

proptest! {
    #[test]
    fn parser_never_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Kubeconfig::parse(&bytes);
    }

    #[test]
    fn parser_never_panics_on_damaged_files(at in 0..FULL.len(), len in 0..20_usize, put in "[-:\\[\\]{}&*!|>'\"%@#, \n\ta1é]{0,8}") {
        let mut bytes = FULL.as_bytes().to_vec();
        bytes.splice(at..(at + len).min(FULL.len()), put.bytes());
        if let Ok(kubeconfig) = Kubeconfig::parse(&bytes) {
            let text = kubeconfig.to_yaml().unwrap();
            prop_assert_eq!(text.parse::<Kubeconfig>().unwrap(), kubeconfig);
        }
    }

    #[test]
    fn written_text_is_read_back_unchanged(name in "\\PC{0,12}", token in any::<String>(), context in ".{0,12}") {
        let context = Some(context).filter(|context| !context.is_empty());
        let mut kubeconfig = Kubeconfig { current_context: context, ..Kubeconfig::default() };
        kubeconfig.users.insert(name, AuthInfo::with_token(format!("x{token}")));
        prop_assert_eq!(kubeconfig.to_yaml().unwrap().parse::<Kubeconfig>().unwrap(), kubeconfig);
    }
}
