//! Credential plugins: real programs, run against a real TLS server.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Error, ErrorKind,
    client::config::{Config, Credentials, ExecEnvVar, Kubeconfig, Overrides, PluginPolicy},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    support::scripted::{chain, map_json},
    support::served::{Asked, Authority, Served, json_response, unauthorized},
};

/// A script that returns credentials, and a server that requires them.
struct Setup {
    folder: TempDir,
    authority: Authority,
    server: Served,
}

impl Setup {
    /// Starts a server that accepts the requests for which `accept` returns true.
    async fn new(accept: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Self {
        let authority = Authority::new();
        let server = Served::start(Some(authority.acceptor(&["h2"])), move |asked| match accept(asked) {
            true => json_response(200, &map_json("web")),
            false => unauthorized(),
        })
        .await;
        Self { folder: tempfile::tempdir().unwrap(), authority, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns settings with a plugin of that script. The script finds the directory in `$DIR`, and each run is noted
    /// in `runs`.
    fn config(&self, script: &str, more: &str) -> Config {
        fs::write(self.path("plugin.sh"), format!("echo run >> \"$DIR/runs\"\n{script}\n")).unwrap();
        self.config_of("/bin/sh", more)
    }

    fn config_of(&self, command: &str, more: &str) -> Config {
        let more = if more.is_empty() { "interactiveMode: Never" } else { more };
        let kubeconfig = format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', tls-server-name: localhost, \
             certificate-authority-data: {}, extensions: [{{name: client.authentication.k8s.io/exec, \
             extension: {{audience: here}}}}]}}}}]\n\
             users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, \
             args: ['{}', s3cret-argument], env: [{{name: DIR, value: '{}'}}, {{name: EXTRA, value: s3cret-variable}}], \
             {more}}}}}}}]\n",
            self.server.port(),
            klient::client::config::EmbeddedData::from_bytes(self.authority.pem()).as_base64(),
            self.path("plugin.sh").display(),
            self.folder.path().display(),
        );
        let kubeconfig = Kubeconfig::parse(kubeconfig).unwrap();
        let mut config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap();
        let Credentials::Exec(plugin) = &mut config.credentials else { panic!("no plugin") };
        // Far longer than any of these scripts takes, also on a busy machine.
        plugin.timeout = Duration::from_secs(60);
        config
    }

    fn maps(&self, script: &str) -> Api<ConfigMap> {
        maps(&self.config(script, ""))
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).map_or(0, |text| text.lines().count())
    }
}

fn maps(config: &Config) -> Api<ConfigMap> {
    Api::namespaced(Client::builder_from_config(config).unwrap().json_only().build(), "default")
}

async fn get(maps: &Api<ConfigMap>) -> Result<ConfigMap, Error> {
    maps.get("web").await
}

/// Returns a line of a script that responds with that status.
fn response(status: &str) -> String {
    format!(
        "printf '%s' '{{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {status}}}'"
    )
}

fn token(token: &str) -> String {
    response(&format!("{{\"token\": \"{token}\"}}"))
}

#[tokio::test]
async fn plugin_runs_only_if_the_policy_allows_it() {
    let setup = Setup::new(|_| true).await;
    let config = setup.config(&token("one"), "");
    let by_name = setup.config_of("sh", "");
    // A program of the same name elsewhere.
    let copy = setup.path("sh");
    fs::copy("/bin/sh", &copy).unwrap();
    let elsewhere = setup.config_of(copy.to_str().unwrap(), "");
    let folders = std::env::var_os("PATH").unwrap();
    let sh = std::env::split_paths(&folders).map(|folder| folder.join("sh")).find(|path| path.exists()).unwrap();
    for (config, policy, expected) in [
        (&config, PluginPolicy::AllowAll, None),
        (&config, PluginPolicy::DenyAll, Some("denies all plugins")),
        (&config, PluginPolicy::allowlist(["aws", "/bin/sh"]), None),
        (&config, PluginPolicy::allowlist(["aws", "/bin/missing"]), Some("not in the allowlist")),
        (&by_name, PluginPolicy::allowlist(["sh"]), None),
        (&by_name, PluginPolicy::allowlist([sh]), None),
        (&elsewhere, PluginPolicy::allowlist(["sh"]), Some("not in the allowlist")),
        (&elsewhere, PluginPolicy::allowlist([copy.clone()]), None),
    ] {
        let before = setup.runs();
        let outcome = get(&maps(&config.clone().plugin_policy(policy.clone()))).await;
        match expected {
            None => assert!(outcome.is_ok() && setup.runs() == before + 1, "{policy:?}: {outcome:?}"),
            Some(why) => {
                let error = outcome.unwrap_err();
                assert_eq!((error.kind(), setup.runs()), (ErrorKind::Auth, before), "{policy:?}");
                assert!(error.to_string().contains(why), "{policy:?}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn plugin_cannot_escape_the_allowlist_with_its_own_path() {
    let setup = Setup::new(|_| true).await;
    let config = setup.config(&token("one"), "");
    // The variables of the plugin would make the system find this program first.
    let wrong = setup.path("sh");
    fs::write(&wrong, "#!/bin/sh\necho escaped > \"$DIR/escaped\"\nexit 1\n").unwrap();
    fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut config = config.plugin_policy(PluginPolicy::allowlist(["sh"]));
    let Credentials::Exec(plugin) = &mut config.credentials else { panic!("no plugin") };
    plugin.command = "sh".into();
    plugin.env.push(ExecEnvVar::new("PATH", setup.folder.path().to_str().unwrap()));
    get(&maps(&config)).await.unwrap();
    assert!(!setup.path("escaped").exists());
}

#[tokio::test]
async fn empty_allowlist_of_plugins_is_refused() {
    let setup = Setup::new(|_| true).await;
    for list in [vec![], vec![""]] {
        let config = setup.config(&token("one"), "").plugin_policy(PluginPolicy::allowlist(list));
        assert_eq!(Client::from_config(&config).unwrap_err().kind(), ErrorKind::Config);
    }
}

/// Waits for an effect of another process.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Returns whether a process exists, possibly as a zombie.
fn exists(pid_file: &Path) -> bool {
    // The process may have been stopped before it wrote its id.
    let Ok(pid) = fs::read_to_string(pid_file) else { return false };
    Path::new("/proc").join(pid.trim()).exists()
}

#[tokio::test]
async fn plugin_runs_once_for_concurrent_requests() {
    let setup = Setup::new(|asked| asked.authorization() == "Bearer one").await;
    let maps = setup.maps(&token("one"));
    assert_eq!(setup.runs(), 0, "creating a client runs no plugin");
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { get(&maps).await })
        })
        .collect();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert_eq!(setup.runs(), 1);
}

#[tokio::test]
async fn plugin_renews_a_rejected_token_once_for_all_requests() {
    let setup = Setup::new(|asked| asked.authorization() == "Bearer two").await;
    let script = format!("if [ $(wc -l < \"$DIR/runs\") = 1 ]; then {}; else {}; fi", token("one"), token("two"));
    let maps = setup.maps(&script);
    let requests: Vec<_> = (0..30)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { get(&maps).await })
        })
        .collect();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert_eq!(setup.runs(), 2);
}

#[tokio::test]
async fn plugin_is_run_twice_if_its_token_is_always_rejected() {
    let setup = Setup::new(|_| false).await;
    let maps = setup.maps(&token("one"));
    for _ in 0..5 {
        assert!(get(&maps).await.unwrap_err().is_unauthorized());
    }
    assert_eq!(setup.runs(), 2, "one run, and one retry");
}

#[tokio::test]
async fn plugin_credential_is_used_until_it_expires() {
    for (expires, runs) in [("2001-01-01T00:00:00Z", 3), ("9000-01-01T00:00:00Z", 1)] {
        let setup = Setup::new(|asked| asked.authorization() == "Bearer one").await;
        let maps = setup.maps(&response(&format!("{{\"token\": \"one\", \"expirationTimestamp\": \"{expires}\"}}")));
        for _ in 0..3 {
            get(&maps).await.unwrap();
        }
        assert_eq!(setup.runs(), runs, "{expires}");
    }
}

#[tokio::test]
async fn plugin_certificate_change_opens_a_new_connection() {
    let setup = Setup::new(|asked| asked.shown.is_some()).await;
    let pem = |text: &str| text.replace('\n', "\\n");
    let put = |name: &str| {
        let pair = setup.authority.sign(name);
        let status = format!(
            "{{\"clientCertificateData\": \"{}\", \"clientKeyData\": \"{}\", \"expirationTimestamp\": \"2001-01-01T00:00:00Z\"}}",
            pem(&pair.certificate),
            pem(&pair.key),
        );
        let kind = "\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\"";
        fs::write(setup.path("response"), format!("{{{kind}, \"status\": {status}}}")).unwrap();
        pair.der
    };
    let maps = setup.maps("cat \"$DIR/response\"");
    let first = put("first");
    get(&maps).await.unwrap();
    // The same certificate again keeps the connection.
    get(&maps).await.unwrap();
    let second = put("second");
    get(&maps).await.unwrap();
    let asked = setup.server.asked.lock().await;
    let seen: Vec<_> = asked.iter().map(|asked| (asked.connection, asked.shown.clone().unwrap())).collect();
    assert_eq!(seen, [(0, first.clone()), (0, first), (1, second)]);
}

#[tokio::test]
async fn plugin_receives_arguments_variables_and_cluster_info() {
    let setup = Setup::new(|asked| asked.authorization() == "Bearer one").await;
    let script = format!(
        "printf '%s' \"$KUBERNETES_EXEC_INFO\" > \"$DIR/info\"\necho \"$1 $EXTRA\" > \"$DIR/more\"\n{}",
        token("one")
    );
    let config = setup.config(&script, "interactiveMode: Never, provideClusterInfo: true");
    get(&maps(&config)).await.unwrap();
    assert_eq!(fs::read_to_string(setup.path("more")).unwrap(), "s3cret-argument s3cret-variable\n");
    let info: Value = serde_json::from_str(&fs::read_to_string(setup.path("info")).unwrap()).unwrap();
    let authority = klient::client::config::EmbeddedData::from_bytes(setup.authority.pem());
    assert_eq!(
        info,
        json!({
            "kind": "ExecCredential",
            "apiVersion": "client.authentication.k8s.io/v1",
            "spec": {"interactive": false, "cluster": {
                "server": format!("https://127.0.0.1:{}", setup.server.port()),
                "tls-server-name": "localhost",
                "certificate-authority-data": authority.as_base64(),
                "config": {"audience": "here"},
            }},
        })
    );
}

#[tokio::test]
async fn plugin_error_names_the_command_and_no_secrets() {
    let setup = Setup::new(|_| true).await;
    let beta = token("s3cret").replace("k8s.io/v1", "k8s.io/v1beta1");
    for (script, expected) in [
        ("exit 3".to_owned(), "credential plugin /bin/sh failed: exit status: 3"),
        ("kill -9 $$".to_owned(), "credential plugin /bin/sh failed: signal: 9"),
        ("echo s3cret".to_owned(), "neither a JSON nor a YAML object"),
        (String::new(), "credential plugin /bin/sh wrote no response"),
        (
            beta,
            "in \"client.authentication.k8s.io/v1beta1\", expected ExecCredential in client.authentication.k8s.io/v1",
        ),
        (response("{\"clientKeyData\": \"s3cret\"}"), "a key but no certificate"),
        ("head -c 3000000 /dev/zero".to_owned(), "wrote more than 1048576 bytes"),
    ] {
        let config = setup.config(&script, "");
        let error = get(&maps(&config)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth, "{script}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!format!("{error:?} {} {config:?}", chain(&error)).contains("s3cret"), "{error:?}");
    }
    assert_eq!(setup.server.accepted(), 0, "nothing is sent without credentials");
}

#[tokio::test]
async fn missing_plugin_is_an_error_with_its_install_hint() {
    let setup = Setup::new(|_| true).await;
    let config =
        setup.config_of("no-such-plugin", "interactiveMode: IfAvailable, installHint: 'Get it at example.org'");
    let error = get(&maps(&config)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert_eq!(error.to_string(), "credential plugin no-such-plugin is not installed. Get it at example.org");
}

#[tokio::test]
async fn hanging_plugin_is_stopped_and_leaves_no_zombie() {
    let setup = Setup::new(|_| true).await;
    let mut config = setup.config("echo $$ > \"$DIR/pid.new\" && mv \"$DIR/pid.new\" \"$DIR/pid\"\nexec sleep 600", "");
    let Credentials::Exec(plugin) = &mut config.credentials else { panic!("no plugin") };
    plugin.timeout = Duration::from_millis(500);
    let maps = maps(&config);
    let error = get(&maps).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().contains("did not finish within 500ms and was stopped"), "{error}");
    until("the process still exists", || !exists(&setup.path("pid"))).await;
}

#[tokio::test]
async fn plugin_may_leave_a_child_that_holds_its_output() {
    let setup = Setup::new(|asked| asked.authorization() == "Bearer one").await;
    let maps = setup.maps(&format!("sleep 20 &\n{}", token("one")));
    tokio::time::timeout(Duration::from_secs(15), get(&maps)).await.expect("the run waits for the child").unwrap();
}

#[tokio::test]
async fn canceled_request_does_not_stop_the_plugin_of_others() {
    let setup = Setup::new(|asked| asked.authorization() == "Bearer one").await;
    let script = format!("until [ -e \"$DIR/go\" ]; do sleep 0.01; done\n{}", token("one"));
    let maps = setup.maps(&script);
    let first = tokio::spawn({
        let maps = maps.clone();
        async move { get(&maps).await }
    });
    until("the plugin does not start", || setup.runs() == 1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let second = tokio::spawn(async move { get(&maps).await });
    fs::write(setup.path("go"), "").unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(setup.runs(), 1);
}

#[tokio::test]
async fn dropping_the_client_stops_the_plugin() {
    let setup = Setup::new(|_| true).await;
    let maps = setup.maps("echo $$ > \"$DIR/pid.new\" && mv \"$DIR/pid.new\" \"$DIR/pid\"\nexec sleep 600");
    let request = tokio::spawn(async move { get(&maps).await });
    until("the plugin does not start", || setup.path("pid").exists()).await;
    request.abort();
    let _ = request.await;
    until("the process still exists", || !exists(&setup.path("pid"))).await;
}

#[tokio::test]
async fn plugin_that_requires_a_terminal_fails_without_one() {
    // Test runners start programs without a terminal, but a developer may not.
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return;
    }
    let setup = Setup::new(|_| true).await;
    let error = get(&maps(&setup.config(&token("one"), "interactiveMode: Always"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().contains("requires a terminal"), "{error}");
    assert_eq!(setup.runs(), 0);
}

#[tokio::test]
async fn plugin_writes_to_the_standard_error_of_the_program() {
    const INSIDE: &str = "KLIENT_TEST_PLUGIN_STDERR";
    if std::env::var_os(INSIDE).is_some() {
        let setup = Setup::new(|_| true).await;
        let script = format!("echo 'please log in' >&2\n{}", token("one"));
        return drop(get(&setup.maps(&script)).await.unwrap());
    }
    let this = "exec_plugins::plugin_writes_to_the_standard_error_of_the_program";
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([this, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .await
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("please log in\n"));
}

#[tokio::test]
async fn clones_of_a_client_share_a_plugin_run() {
    let setup = Setup::new(|asked| asked.authorization() == "Bearer one").await;
    let client = Client::builder_from_config(&setup.config(&token("one"), "")).unwrap().json_only().build();
    for _ in 0..3 {
        get(&Api::namespaced(client.clone(), "default")).await.unwrap();
    }
    assert_eq!(setup.runs(), 1);
    let shared = Arc::new(client);
    assert!(!format!("{shared:?}").contains("one"));
}
