//! Criteria 1 and 2: the program, its flags and its exit code.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    Api, Client,
    client::config::{Config, KubeconfigFiles, Overrides},
    wait::{Until, wait_for},
};
use klient_apiserver::{ApiServer, Fault};
use klient_cli::sample_controller::{Foo, FooSpec, install};

use crate::world::{LIMIT, real_kubeconfig};

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sample-controller"));
    command.args(arguments).env_remove("KUBECONFIG").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn terminate(child: &Child) {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
}

/// Waits for a program, and returns its exit code.
async fn end(child: &mut Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("the program does not exit");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn program_without_flags_runs_on_embedded_server() {
    let mut child = start(&[]);
    assert_eq!(end(&mut child).await, Some(0));
    let output = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert_eq!(output, "Foo example has its Deployment with 1 replica\n");
}

#[tokio::test]
async fn criterion_1_program_runs_on_cluster_until_signal() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let embedded = listening.write_kubeconfig(folder.path().join("kubeconfig"), None).unwrap();
    for kubeconfig in [Some(embedded), real_kubeconfig()].into_iter().flatten() {
        runs_until_terminated(&kubeconfig).await;
    }
}

async fn runs_until_terminated(kubeconfig: &Path) {
    let config = Config::load(&KubeconfigFiles::explicit(kubeconfig), &Overrides::default()).unwrap();
    let client = Client::from_config(&config).unwrap();
    install(&client).await.unwrap();
    let foos: Api<Foo> = Api::namespaced(client.clone(), "default");
    let mut child = start(&["--kubeconfig", kubeconfig.to_str().unwrap(), "--namespace", "default"]);
    foos.create(&Foo::new("program", FooSpec::new("program", Some(1)))).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    wait_for(&deployments, "program", &Until::exists(), LIMIT).await.unwrap();
    terminate(&child);
    assert_eq!(end(&mut child).await, Some(0));
}

#[tokio::test]
async fn criterion_1_second_signal_ends_program_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let kubeconfig = listening.write_kubeconfig(folder.path().join("kubeconfig"), None).unwrap();
    let client = crate::world::client_of(&server);
    install(&client).await.unwrap();
    // The controller's request never gets a response.
    server.inject(Fault::silence().on_method(http::Method::POST).on_path("/apis/apps/v1"));
    let foos: Api<Foo> = Api::namespaced(client, "default");
    foos.create(&Foo::new("a", FooSpec::new("web", Some(1)))).await.unwrap();
    let mut child = start(&["--kubeconfig", kubeconfig.to_str().unwrap()]);
    let asked = ("POST".to_owned(), "/apis/apps/v1/namespaces/default/deployments".to_owned());
    while !server.requests().contains_key(&asked) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    terminate(&child);
    // The second signal is sent after the first one was handled.
    let mut log = child.stderr.take().unwrap();
    let noticed = tokio::task::spawn_blocking(move || {
        use std::io::{BufRead as _, BufReader};
        BufReader::new(&mut log).lines().map_while(Result::ok).any(|line| line.contains("shutdown signal received"))
    });
    assert!(noticed.await.unwrap());
    assert!(child.try_wait().unwrap().is_none(), "it waits for what is under way");
    terminate(&child);
    assert_eq!(end(&mut child).await, Some(1));
}

#[tokio::test]
async fn criterion_1_master_selects_server() {
    let server = ApiServer::start().await.unwrap();
    // An address alone carries no credentials.
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let client = crate::world::client_of(&server);
    install(&client).await.unwrap();
    let mut child = start(&["--master", &listening.url(), "--kubeconfig", "/dev/null"]);
    let foos: Api<Foo> = Api::namespaced(client.clone(), "default");
    foos.create(&Foo::new("a", FooSpec::new("web", Some(1)))).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    wait_for(&deployments, "web", &Until::exists(), LIMIT).await.unwrap();
    terminate(&child);
    assert_eq!(end(&mut child).await, Some(0));
}

#[tokio::test]
async fn criterion_2_invalid_kubeconfig_exits_with_1() {
    let mut child = start(&["--kubeconfig", "/nowhere/at/all"]);
    assert_eq!(end(&mut child).await, Some(1));
    let log = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(log.contains("/nowhere/at/all"), "{log}");
}
