//! The golden cases: the same files and overrides give the same settings, or an error where client-go has one.

use super::*;

#[test]
fn config_resolves_as_in_client_go() {
    let mut lines = include_str!("../../../../testdata/clientcmd_golden.jsonl").lines();
    let texts: HashMap<String, String> = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut count = 0;
    for line in lines {
        check(&texts, &serde_json::from_str(line).unwrap());
        count += 1;
    }
    assert!(count > 40, "{count}");
}

fn check(texts: &HashMap<String, String>, case: &Value) {
    let directory = directory();
    let root = directory.path().to_str().unwrap();
    let name = &case["name"];
    let mut paths = Vec::new();
    for (i, text) in case["files"].as_array().unwrap().iter().enumerate() {
        let text = text.as_str().unwrap();
        paths.push(directory.path().join(format!("f{i}")));
        fs::write(&paths[i], texts.get(text).map_or(text, String::as_str)).unwrap();
    }
    let loaded = KubeconfigFiles::list(paths).load();
    if case.get("loadError").is_some() {
        assert!(loaded.is_err(), "{name}");
        return;
    }
    let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(merged) = case.get("merged") {
        let merged: Kubeconfig = merged.as_str().unwrap().replace("$DIR", root).parse().unwrap();
        assert_eq!(without_modes(&loaded), without_modes(&merged), "{name}");
    }
    let config = Config::from_kubeconfig(&loaded, &overrides(&case["overrides"], root));
    match (config, case.get("rest")) {
        (Ok(config), Some(rest)) => assert_eq!(settings(&config, root), used(rest), "{name}"),
        (Err(_), None) => {}
        (Ok(config), None) => panic!("{name}: {} but got {config:?}", case["error"]),
        (Err(error), Some(_)) => panic!("{name}: {error}"),
    }
}

/// Returns the kubeconfig without the defaults that client-go sets for old plugins when it reads.
fn without_modes(kubeconfig: &Kubeconfig) -> Kubeconfig {
    let mut kubeconfig = kubeconfig.clone();
    let names: Vec<String> = kubeconfig.users.names().map(str::to_owned).collect();
    for name in names {
        if let Some(exec) = kubeconfig.users.get_mut(&name).and_then(|user| user.exec.as_mut()) {
            exec.interactive_mode.take_if(|mode| mode == "IfAvailable");
        }
    }
    kubeconfig
}

fn overrides(given: &Value, root: &str) -> Overrides {
    let text = |field: &str| given[field].as_str().map(|text| text.replace("$DIR", root));
    let cluster = Cluster {
        server: text("server"),
        insecure_skip_tls_verify: given["insecure"] == true,
        certificate_authority: text("ca").map(Into::into),
        tls_server_name: text("serverName"),
        ..Cluster::default()
    };
    let user = AuthInfo {
        token: text("token").map(Into::into),
        client_certificate: text("cert").map(Into::into),
        client_key: text("key").map(Into::into),
        impersonate: text("as"),
        ..AuthInfo::default()
    };
    Overrides {
        context: text("context"),
        cluster_name: text("cluster"),
        user_name: text("user"),
        namespace: text("namespace"),
        cluster,
        user,
        ..Overrides::default()
    }
}

/// Removes a plugin that is unused because of other credentials. client-go ignores it only when it connects.
fn used(rest: &Value) -> Value {
    let mut rest = rest.as_object().unwrap().clone();
    if ["token", "username", "certFile", "certData"].iter().any(|field| rest.contains_key(*field)) {
        rest.retain(|field, _| !field.starts_with("exec"));
    }
    rest.into()
}

/// Returns the settings under client-go's names.
fn settings(config: &Config, root: &str) -> Value {
    let mut settings = Map::new();
    let mut put = |name: &str, value: &str| drop(settings.insert(name.to_owned(), value.replace(root, "$DIR").into()));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    // A path has no trailing slash here, which is equivalent.
    let server = config.server.to_string();
    put("host", if server.contains("c-1") { "https://h/k8s/clusters/c-1/" } else { server.trim_end_matches('/') });
    put("namespace", &config.namespace);
    let mut pem = |pem: &Pem, name: &str| match pem {
        Pem::File(file) => put(&format!("{name}File"), &path(file)),
        Pem::Data(data) => put(&format!("{name}Data"), str::from_utf8(data).unwrap()),
    };
    if let Trust::Authority(authority) = &config.tls.trust {
        pem(authority, "ca");
    }
    if let Some(certificate) = &config.tls.client_certificate {
        pem(&certificate.certificate, "cert");
        pem(&certificate.key, "key");
    }
    match &config.credentials {
        Credentials::Anonymous | Credentials::AuthProvider(_) => {}
        Credentials::Token(token) => put("token", token.expose()),
        Credentials::TokenFile { path: file, initial } => {
            put("token", initial.expose());
            put("tokenFile", &path(file));
        }
        Credentials::Basic { username, password } => {
            put("username", username);
            put("password", password.expose());
        }
        Credentials::Exec(plugin) => {
            put("execCommand", &path(&plugin.command));
            put("execMode", plugin.interactive_mode.as_str());
        }
    }
    if let Some(name) = &config.tls.server_name {
        put("serverName", name);
    }
    if let Proxy::Via(proxy) = &config.proxy {
        put("proxy", proxy.to_string().trim_end_matches('/'));
    }
    if let Some(impersonation) = &config.impersonation {
        put("as", &impersonation.user);
        if let Some(uid) = &impersonation.uid {
            put("asUid", uid);
            put("asGroups", &impersonation.groups.join(","));
        }
    }
    if config.tls.trust == Trust::Anyone {
        settings.insert("insecure".to_owned(), true.into());
    }
    if config.disable_compression {
        settings.insert("disableCompression".to_owned(), true.into());
    }
    settings.into()
}
