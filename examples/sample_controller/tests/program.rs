//! Criteria 1 and 2: the program, its flags and its end.

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
use klient_cli::sample_controller::{Foo, install};

use crate::world::{LIMIT, real_kubeconfig};

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sample-controller"));
    command.args(arguments).env_remove("KUBECONFIG").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn terminate(child: &Child) {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
}

/// The code that a program ends with.
async fn end(child: &mut Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it does not end");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn without_flags_it_shows_itself_on_an_embedded_server() {
    let mut child = start(&[]);
    assert_eq!(end(&mut child).await, Some(0));
    let output = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert_eq!(output, "Foo example has its Deployment: Some(1) replicas are wanted\n");
}

#[tokio::test]
async fn criterion_1_it_runs_on_the_cluster_of_a_kubeconfig_until_a_signal_comes() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen_tls(0).await.unwrap();
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
    foos.create(&Foo::new("program", "program", Some(1))).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    wait_for(&deployments, "program", &Until::exists(), LIMIT).await.unwrap();
    terminate(&child);
    assert_eq!(end(&mut child).await, Some(0));
}

#[tokio::test]
async fn criterion_1_a_second_signal_ends_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let kubeconfig = listening.write_kubeconfig(folder.path().join("kubeconfig"), None).unwrap();
    let client = crate::world::client_of(&server);
    install(&client).await.unwrap();
    // What the controller begins does not end.
    server.inject(Fault::silence().on_method(http::Method::POST).on_path("/apis/apps/v1"));
    let foos: Api<Foo> = Api::namespaced(client, "default");
    foos.create(&Foo::new("a", "web", Some(1))).await.unwrap();
    let mut child = start(&["--kubeconfig", kubeconfig.to_str().unwrap()]);
    let asked = ("POST".to_owned(), "/apis/apps/v1/namespaces/default/deployments".to_owned());
    while !server.requests().contains_key(&asked) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    terminate(&child);
    // Until the first one is noticed, a second one would be the first.
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
async fn criterion_1_master_names_the_server() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let client = crate::world::client_of(&server);
    install(&client).await.unwrap();
    let mut child = start(&["--master", &listening.url(), "--kubeconfig", "/dev/null"]);
    let foos: Api<Foo> = Api::namespaced(client.clone(), "default");
    foos.create(&Foo::new("a", "web", Some(1))).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    wait_for(&deployments, "web", &Until::exists(), LIMIT).await.unwrap();
    terminate(&child);
    assert_eq!(end(&mut child).await, Some(0));
}

#[tokio::test]
async fn criterion_2_what_cannot_work_ends_with_code_1_and_says_why() {
    let mut child = start(&["--kubeconfig", "/nowhere/at/all"]);
    assert_eq!(end(&mut child).await, Some(1));
    let log = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(log.contains("/nowhere/at/all"), "{log}");
}
