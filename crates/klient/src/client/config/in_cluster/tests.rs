//! Configuration from a pod's service account, complete and incomplete.

use std::path::Path;

use super::*;
use crate::client::config::kubeconfig::Cluster;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
const VARIABLES: [(&str, &str); 2] = [(HOST, "10.0.0.1"), (PORT, "443")];

fn account(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("serviceaccount")).unwrap();
    for (name, text) in files {
        fs::write(root.path().join("serviceaccount").join(name), text).unwrap();
    }
    root
}

fn config_in(root: &Path, variables: &[(&str, &str)]) -> Result<Config, Error> {
    config(&Environment::of_test(root, variables), &Overrides::default())
}

#[test]
fn config_has_server_token_and_authority_of_the_pod() {
    let root = account(&[("token", "pod-token\n"), ("ca.crt", CERTIFICATE), ("namespace", "web\n")]);
    let config = config_in(root.path(), &VARIABLES).unwrap();
    assert_eq!(config.server, "https://10.0.0.1:443/");
    assert_eq!(config.namespace, "web");
    let account = root.path().join("serviceaccount");
    assert_eq!(config.tls.trust, Trust::Authority(Pem::File(account.join("ca.crt"))));
    let initial = Secret::new("pod-token");
    assert_eq!(config.credentials, Credentials::TokenFile { path: account.join("token"), initial });
}

#[test]
fn server_address_has_brackets_around_ipv6() {
    let root = account(&[("token", "t")]);
    for host in ["fd00::1", "[fd00::1]"] {
        let config = config_in(root.path(), &[(HOST, host), (PORT, "6443")]).unwrap();
        assert_eq!(config.server, "https://[fd00::1]:6443/");
    }
}

#[test]
fn system_is_trusted_if_no_authority_is_mounted() {
    let root = account(&[("token", "t")]);
    assert_eq!(config_in(root.path(), &VARIABLES).unwrap().tls, Tls::default());
}

#[test]
fn error_names_the_missing_part() {
    let empty = account(&[]);
    let blank = account(&[("token", " \n")]);
    let bad = account(&[("token", "t"), ("ca.crt", "nothing")]);
    for (root, variables, expected) in [
        (&empty, &[][..], "not in a cluster: KUBERNETES_SERVICE_HOST is not set"),
        (&empty, &VARIABLES[..1], "not in a cluster: KUBERNETES_SERVICE_PORT is not set"),
        (&empty, &VARIABLES[..], "cannot read service account token"),
        (&blank, &VARIABLES[..], "serviceaccount/token is empty"),
        (&bad, &VARIABLES[..], "serviceaccount/ca.crt contains no PEM certificate"),
    ] {
        let error = config_in(root.path(), variables).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}

#[test]
fn in_cluster_requires_variables_and_a_token() {
    let (empty, full) = (account(&[]), account(&[("token", "t")]));
    for (root, variables, possible) in
        [(&empty, &VARIABLES[..], false), (&full, &VARIABLES[..1], false), (&full, &VARIABLES[..], true)]
    {
        assert_eq!(is_possible(&Environment::of_test(root.path(), variables)), possible);
    }
}

#[test]
fn namespace_variable_takes_precedence() {
    let (empty, full) = (account(&[]), account(&[("namespace", "web")]));
    let variable = [("POD_NAMESPACE", "pod")];
    for (root, variables, expected) in
        [(&full, &variable[..], "pod"), (&full, &[][..], "web"), (&empty, &[][..], "default")]
    {
        assert_eq!(namespace(&Environment::of_test(root.path(), variables)), expected);
    }
}

#[test]
fn overrides_replace_server_token_and_authority() {
    let root = account(&[("token", "t"), ("ca.crt", CERTIFICATE)]);
    let authority = root.path().join("other.crt");
    fs::write(&authority, CERTIFICATE).unwrap();
    let environment = Environment::of_test(root.path(), &VARIABLES);
    let mut cluster = Cluster::new("elsewhere:6443");
    cluster.certificate_authority = Some(authority.clone());
    let overrides = Overrides::default().cluster(cluster).token("mine").namespace("web");
    let config = config(&environment, &overrides).unwrap();
    assert_eq!(config.server, "https://elsewhere:6443/");
    assert_eq!(config.credentials, Credentials::Token(Secret::new("mine")));
    assert_eq!(config.tls.trust, Trust::Authority(Pem::File(authority)));
    assert_eq!(config.namespace, "web");
}

#[test]
fn token_is_dropped_without_tls() {
    let root = account(&[("token", "t")]);
    let environment = Environment::of_test(root.path(), &VARIABLES);
    let config = config(&environment, &Overrides::default().server("http://proxy:8001")).unwrap();
    assert_eq!(config.credentials, Credentials::Anonymous);
}
