//! Compares settings with those of client-go for the same files, and tests additional checks.
//!
//! `testdata/clientcmd_golden.jsonl` has the results of `tools/clientcmd` v0.37.0. The first line has texts that the
//! cases refer to, each further line is a case.

use std::{collections::HashMap, fs, path::Path};

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::*;
use crate::client::config::kubeconfig::{AuthInfo, Cluster};

mod golden;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n";

/// Creates a directory with the files that the kubeconfigs refer to.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("pki")).unwrap();
    for (name, text) in [("ca.crt", CERTIFICATE), ("tls.crt", CERTIFICATE), ("tls.key", KEY), ("token", "from-file")] {
        fs::write(directory.path().join("pki").join(name), text).unwrap();
    }
    directory
}

fn write(directory: &Path, name: &str, text: &str) -> KubeconfigFiles {
    fs::write(directory.join(name), text).unwrap();
    KubeconfigFiles::explicit(directory.join(name))
}

/// Returns the error for one context with that cluster and user, without the directory's name.
fn error(cluster: &str, user: &str) -> String {
    let directory = directory();
    let text = format!(
        "current-context: x\nclusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]"
    );
    let kubeconfig = write(directory.path(), "config", &text).load().unwrap();
    let error = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string().replace(directory.path().to_str().unwrap(), "$DIR")
}

#[test]
fn error_names_file_and_field_of_every_problem() {
    let https = "{server: 'https://h'}";
    let v1 = "apiVersion: client.authentication.k8s.io/v1";
    for (cluster, user, expected) in [
        ("{}", "{}", "$DIR/config: cluster \"c\": server: is required"),
        ("{server: 'h/path'}", "{}", "cluster \"c\": server: has a path"),
        ("{server: 'https://h', proxy-url: 'ftp://u:s3cret@p'}", "{}", "cluster \"c\": proxy-url: must begin with"),
        (
            "{server: 'https://h', certificate-authority: pki/nope}",
            "{}",
            "cluster \"c\": certificate-authority: cannot read $DIR/pki/nope",
        ),
        (
            "{server: 'https://h', certificate-authority: pki/token}",
            "{}",
            "cluster \"c\": certificate-authority: contains no PEM certificate",
        ),
        (
            "{server: 'https://h', certificate-authority-data: '***'}",
            "{}",
            "cluster \"c\": certificate-authority-data: is not base64",
        ),
        (
            "{server: 'https://h', certificate-authority: pki/ca.crt, certificate-authority-data: aGk=}",
            "{}",
            "cluster \"c\": certificate-authority-data: cannot be set together",
        ),
        (
            "{server: 'https://h', certificate-authority: pki/ca.crt, insecure-skip-tls-verify: true}",
            "{}",
            "cluster \"c\": insecure-skip-tls-verify: cannot be set together",
        ),
        (https, "{client-certificate: pki/tls.crt}", "user \"u\": client-key: is required"),
        (
            https,
            "{client-certificate: pki/tls.crt, client-key: pki/tls.crt}",
            "client-key: contains no PEM private key",
        ),
        (
            https,
            "{client-certificate-data: aGk=, client-key: pki/tls.key}",
            "client-certificate-data: contains no PEM cert",
        ),
        (https, "{token: s3cret, username: u}", "user \"u\": token: cannot be set together"),
        (https, "{tokenFile: pki/nope}", "user \"u\": tokenFile: cannot read $DIR/pki/nope"),
        (https, "{as-uid: x}", "user \"u\": as-uid: requires a user"),
        (https, "{exec: {command: a}}", "user \"u\": exec.apiVersion: is required"),
        (https, "{exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}}", "v1alpha1\" is not supp"),
        (https, &format!("{{exec: {{command: a, {v1}}}}}"), "user \"u\": exec.interactiveMode: is required"),
        (https, &format!("{{exec: {{interactiveMode: Never, {v1}}}}}"), "user \"u\": exec.command: is required"),
        (
            https,
            &format!("{{exec: {{command: a, interactiveMode: Never, {v1}, env: [{{value: s3cret}}]}}}}"),
            "exec.env[0].name: is required",
        ),
        (
            https,
            "{auth-provider: {name: gcp}}",
            "user \"u\": auth-provider: gcp was removed from clients: use exec with gke-gcloud-auth-plugin",
        ),
        (
            https,
            "{auth-provider: {name: azure}}",
            "user \"u\": auth-provider: azure was removed from clients: use exec with kubelogin",
        ),
        (https, "{auth-provider: {name: other}}", "\"other\" is unknown"),
        (https, "{auth-provider: {name: oidc}}", "auth-provider.config.idp-issuer-url: is required"),
    ] {
        let error = error(cluster, user);
        assert!(error.contains(expected), "{cluster} {user}\n{error}\n{expected}");
        assert!(error.starts_with("$DIR/config: ") && !error.contains("s3cret"), "{error}");
    }
}

#[test]
fn error_names_all_problems_at_once() {
    let error = error("{server: 'https://h', proxy-url: x}", "{as-uid: x, tokenFile: nope}");
    for field in ["proxy-url", "as-uid", "tokenFile"] {
        assert!(error.contains(field), "{error}");
    }
}

#[test]
fn error_lists_defined_names_for_an_undefined_one() {
    let text = "
        current-context: a
        clusters: [{name: c, cluster: {server: 'https://h'}}]
        contexts: [{name: a, context: {cluster: nope, user: gone}}, {name: b, context: {cluster: c}}]";
    let directory = directory();
    let kubeconfig = write(directory.path(), "config", text).load().unwrap();
    let file = directory.path().join("config");
    for (overrides, expected) in [
        (
            Overrides::default(),
            format!(
                "{0}: context \"a\": cluster: cluster \"nope\" is not defined, known: c; \
                 {0}: context \"a\": user: user \"gone\" is not defined, there are none",
                file.display()
            ),
        ),
        (Overrides::default().context("x"), "context override: context \"x\" is not defined, known: a, b".to_owned()),
        (
            Overrides::default().context("b").user_name("x"),
            "user override: user \"x\" is not defined, there are none".to_owned(),
        ),
    ] {
        let error = Config::from_kubeconfig(&kubeconfig, &overrides).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    // A context without a user is valid.
    let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default().context("b")).unwrap();
    assert_eq!(config.credentials, Credentials::Anonymous);
}

#[test]
fn error_names_an_invalid_override() {
    let user = AuthInfo {
        client_certificate: Some("/nowhere/tls.crt".into()),
        client_key: Some("/nowhere/tls.key".into()),
        ..AuthInfo::default()
    };
    let overrides = Overrides::default().server("https://h").user(user).namespace("Bad");
    let error = Config::from_kubeconfig(&Kubeconfig::default(), &overrides).unwrap_err().to_string();
    assert!(error.starts_with("client-certificate override: cannot read /nowhere/tls.crt"), "{error}");
    assert!(error.contains("client-key override") && error.contains("namespace override: must be"), "{error}");
}

#[test]
fn scheme_defaults_to_https_with_trust_settings() {
    let mut cluster = Cluster::new("h:6443");
    cluster.insecure_skip_tls_verify = true;
    let overrides = Overrides::default().cluster(cluster).token("t");
    let config = Config::from_kubeconfig(&Kubeconfig::default(), &overrides).unwrap();
    assert_eq!(config.server, "https://h:6443/");
    assert_eq!(config.tls.trust, Trust::Anyone);
    assert!(matches!(config.credentials, Credentials::Token(_)));
}

#[test]
fn plugin_is_not_used_with_other_credentials() {
    let directory = directory();
    let exec = "exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1}";
    for (beside, is_exec) in [
        ("as: jane", true),
        ("client-key: pki/tls.key", true),
        ("client-certificate: pki/tls.crt, client-key: pki/tls.key", false),
        ("token: t", false),
        ("tokenFile: pki/token", false),
        ("username: u", false),
    ] {
        let text = format!(
            "clusters: [{{name: c, cluster: {{server: 'https://h'}}}}]\nusers: [{{name: u, user: {{{exec}, {beside}}}}}]"
        );
        let kubeconfig = write(directory.path(), "config", &text).load().unwrap();
        let overrides = Overrides::default().cluster_name("c").user_name("u");
        let config = Config::from_kubeconfig(&kubeconfig, &overrides).unwrap();
        assert_eq!(matches!(config.credentials, Credentials::Exec(_)), is_exec, "{beside}");
    }
}

#[test]
fn install_hint_is_safe_for_terminals() {
    let text = "current-context: x\nclusters: [{name: c, cluster: {server: 'https://h', extensions: [
        {name: client.authentication.k8s.io/exec, extension: {audience: a}}]}}]
users: [{name: u, user: {exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1,
    installHint: \"run \\e[1mbrew\\n\\u202e\"}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]";
    let config = Config::from_kubeconfig(&text.parse().unwrap(), &Overrides::default()).unwrap();
    let Credentials::Exec(plugin) = config.credentials else { panic!("{:?}", config.credentials) };
    assert_eq!(plugin.install_hint.as_deref(), Some("run U+001B[1mbrew\nU+202E"));
    assert_eq!(plugin.interactive_mode, InteractiveMode::IfAvailable);
    assert_eq!(plugin.cluster_extension, Some(serde_json::json!({"audience": "a"})));
}

#[test]
fn provider_tokens_are_written_back_to_their_file() {
    let directory = directory();
    let text = "current-context: x\nclusters: [{name: c, cluster: {server: 'https://h'}}]\n\
        users: [{name: u, user: {auth-provider: {name: oidc, config: {idp-issuer-url: i, client-id: c, id-token: old}}}}]\n\
        contexts: [{name: x, context: {cluster: c, user: u}}]";
    let files = write(directory.path(), "config", text);
    let config = Config::from_kubeconfig(&files.load().unwrap(), &Overrides::default()).unwrap();
    let Credentials::AuthProvider(provider) = config.credentials else { panic!("{:?}", config.credentials) };
    let mut settings = provider.config.config.clone();
    settings.insert("id-token".to_owned(), "new".to_owned());
    provider.persist(settings.clone()).unwrap();
    let user = files.load().unwrap().users.get("u").cloned().unwrap();
    assert_eq!(user.auth_provider.unwrap().config, settings);
}

#[test]
fn infer_prefers_files_to_the_service_account() {
    let directory = directory();
    let account = directory.path().join("serviceaccount");
    fs::create_dir(&account).unwrap();
    for (name, text) in [("token", "pod-token\n"), ("ca.crt", CERTIFICATE), ("namespace", "pod-ns\n")] {
        fs::write(account.join(name), text).unwrap();
    }
    let path = directory.path().join("config");
    let kubeconfig = path.to_str().unwrap();
    let pod = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443"), ("KUBECONFIG", kubeconfig)];
    let infer = |variables: &[(&str, &str)], overrides: &Overrides| {
        let environment = Environment::of_test(directory.path(), variables);
        Config::load_in(&environment, &KubeconfigFiles::from_environment(&environment), overrides)
    };
    let none = Overrides::default();
    let entries =
        "clusters: [{name: c, cluster: {server: 'https://file'}}]\ncontexts: [{name: x, context: {cluster: c}}]";

    // Without a file, the pod's service account is used.
    let config = infer(&pod, &none).unwrap();
    assert_eq!((config.server.to_string().as_str(), config.namespace.as_str()), ("https://10.0.0.1:443/", "pod-ns"));
    // A file that selects nothing is ignored.
    fs::write(&path, entries).unwrap();
    assert_eq!(infer(&pod, &none).unwrap().server, "https://10.0.0.1:443/");
    // A file that selects a context is used, in the pod's namespace.
    fs::write(&path, format!("current-context: x\n{entries}")).unwrap();
    let config = infer(&pod, &none).unwrap();
    assert_eq!((config.server.to_string().as_str(), config.namespace.as_str()), ("https://file/", "pod-ns"));
    // The file or an override may name another namespace.
    let overrides = Overrides::default().namespace("other");
    assert_eq!(infer(&pod, &overrides).unwrap().namespace, "other");
    // Outside of a pod, the default remains.
    assert_eq!(infer(&pod[2..], &none).unwrap().namespace, "default");
    // An invalid file is an error, even in a pod.
    fs::write(&path, "current-context: gone").unwrap();
    assert!(infer(&pod, &none).unwrap_err().to_string().contains("\"gone\" is not defined"));
    // Without any configuration, the message names the searched places.
    fs::remove_file(&path).unwrap();
    let error = infer(&pod[2..], &none).unwrap_err().to_string();
    for part in [kubeconfig, "(missing)", "KUBERNETES_SERVICE_HOST is not set"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn debug_shows_no_secrets() {
    let data = crate::client::config::EmbeddedData::from_bytes(KEY);
    for user in [
        "{token: s3cret}",
        "{username: joe, password: s3cret}",
        "{exec: {command: a, args: [s3cret], env: [{name: A, value: s3cret}], x: s3cret, apiVersion: client.authentication.k8s.io/v1beta1}}",
        "{auth-provider: {name: oidc, config: {idp-issuer-url: i, client-id: c, refresh-token: s3cret}}}",
        "{unknown: s3cret, extensions: [{name: x, extension: s3cret}]}",
        &format!(
            "{{client-certificate-data: {}, client-key-data: {}}}",
            crate::client::config::EmbeddedData::from_bytes(CERTIFICATE).as_base64(),
            data.as_base64()
        ),
    ] {
        let text = format!(
            "current-context: x\nclusters: [{{name: c, cluster: {{server: 'https://h', \
             proxy-url: 'http://joe:s3cret@p', extensions: [{{name: client.authentication.k8s.io/exec, \
             extension: s3cret}}]}}}}]\nusers: [{{name: u, user: {user}}}]\ncontexts: [{{name: x, context: \
             {{cluster: c, user: u, other: s3cret}}}}]\npreferences: {{a: s3cret}}\nother: s3cret\n"
        );
        let kubeconfig: Kubeconfig = text.parse().unwrap();
        let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap();
        let overrides = Overrides::default().user(kubeconfig.users.get("u").cloned().unwrap());
        for shown in [format!("{kubeconfig:?}"), format!("{config:#?}"), format!("{overrides:?}")] {
            for secret in ["s3cret", "PRIVATE KEY", data.as_base64(), &format!("{:?}", KEY.as_bytes())] {
                assert!(!shown.contains(secret), "{user}\n{shown}");
            }
        }
    }
}

#[test]
fn anonymous_config_has_no_credentials() {
    let overrides = Overrides::default().server("https://h").token("t").impersonate("jane");
    let config = Config::from_kubeconfig(&Kubeconfig::default(), &overrides).unwrap();
    assert!(config.impersonation.is_some());
    let config = config.anonymous();
    assert_eq!((config.credentials, config.impersonation), (Credentials::Anonymous, None));
}

#[test]
fn user_agent_names_program_system_and_crate() {
    let agent = default_user_agent();
    // The server uses this part as the field manager.
    let manager = agent.split('/').next().unwrap();
    let program = std::env::current_exe().unwrap();
    assert_eq!(manager, program.file_name().unwrap().to_str().unwrap());
    assert!(agent.ends_with(concat!(") klient/", env!("CARGO_PKG_VERSION"))), "{agent}");
    assert!(http::HeaderValue::from_str(&agent).is_ok(), "{agent}");
}
