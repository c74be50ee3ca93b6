//! The definitions of the corpus on servers: the real kube-apiserver, where there is one, and the embedded server.

#![allow(clippy::unwrap_used)]

use std::{io::Write as _, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient::{
    Api, Client,
    client::{
        DynamicClient,
        config::{Config, KubeconfigFiles, Overrides},
    },
    custom::install,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use klient_apiserver::ApiServer;
use klient_custom_types::{Entry, by_klient};
use klient_harness::{Programs, Server};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_takes_and_serves_each_type() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        std::io::stderr().write_all(b"skipped: the corpus on the real kube-apiserver, since there is none\n").unwrap();
        return;
    };
    let server = Server::start(&programs).unwrap();
    let overrides = Overrides::default().context("token");
    let config = Config::load(&KubeconfigFiles::explicit(server.kubeconfig()), &overrides).unwrap();
    let client = Client::from_config(&config).unwrap();
    let mut installs = JoinSet::new();
    for entry in by_klient::all().into_iter().filter(|entry| entry.is_accepted) {
        let client = client.clone();
        installs.spawn(async move {
            let installed =
                install(&client, entry.definition.clone()).manager("corpus").timeout(Duration::from_secs(120));
            (entry.name, installed.await.map_err(|error| format!("{error:#}")))
        });
    }
    let results = installs.join_all().await;
    let refused: Vec<_> = results.iter().filter_map(|(name, result)| Some((name, result.as_ref().err()?))).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    for entry in by_klient::all().into_iter().filter(|entry| !entry.is_accepted) {
        assert!(definitions.create(&entry.definition).await.is_err(), "{} was taken", entry.name);
    }
}

#[tokio::test]
async fn embedded_server_takes_and_serves_each_type() {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    for entry in by_klient::all().into_iter().filter(|entry| entry.is_accepted) {
        install(&client, entry.definition.clone()).await.unwrap_or_else(|error| panic!("{}: {error:#}", entry.name));
        for resource in resources(&entry) {
            let objects = DynamicClient::new(client.clone()).all(&resource);
            let list = objects.list().await.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert!(list.items.is_empty());
        }
    }
}

fn resources(entry: &Entry) -> impl Iterator<Item = ApiResource> {
    let spec = &entry.definition.spec;
    let scope = if spec.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
    spec.versions.iter().filter(|version| version.served).map(move |version| {
        let gvk = GroupVersionKind::new(spec.group.clone(), version.name.clone(), spec.names.kind.clone());
        ApiResource::new(gvk, spec.names.plural.clone(), scope)
    })
}
