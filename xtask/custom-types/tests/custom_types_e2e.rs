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
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use klient_apiserver::ApiServer;
use klient_custom_types::{Entry, by_klient, judged};
use klient_harness::{Programs, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Starts the real server, if there is one.
fn real_server() -> Option<(Server, Client)> {
    let Some(programs) = Programs::for_tests().unwrap() else {
        std::io::stderr().write_all(b"skipped: the corpus on the real kube-apiserver, since there is none\n").unwrap();
        return None;
    };
    let server = Server::start(&programs).unwrap();
    let overrides = Overrides::default().context("token");
    let config = Config::load(&KubeconfigFiles::explicit(server.kubeconfig()), &overrides).unwrap();
    let client = Client::from_config(&config).unwrap();
    Some((server, client))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_takes_and_serves_each_type() {
    let Some((_server, client)) = real_server() else { return };
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

/// The client's verdicts on the same objects are those of `rules_have_the_expected_verdicts` in `cel`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_judges_objects_as_the_client_does() {
    let Some((_server, client)) = real_server() else { return };
    for definition in judged::definitions() {
        // Servers store objects that violate rules only before the rules are there.
        install(&client, judged::without_rules(definition)).await.unwrap();
    }
    let resources: Vec<(String, ApiResource)> = judged::definitions()
        .into_iter()
        .map(|definition| {
            let kind = definition.spec.names.kind.clone();
            (kind, resources(&Entry { name: "", definition, is_accepted: true }).next().unwrap())
        })
        .collect();
    let resource = |kind: &str| &resources.iter().find(|(found, _)| found == kind).unwrap().1;
    let objects = |kind: &str| DynamicClient::new(client.clone()).all(resource(kind));
    let object = |kind: &str, value: &Value| {
        let resource = resource(kind);
        let name = value["metadata"]["name"].as_str().unwrap();
        DynamicObject::new(name, resource).data(json!({"spec": value["spec"]}))
    };
    for case in judged::cases() {
        if let Some(old) = &case.old {
            objects(case.kind).create(&object(case.kind, old)).await.unwrap();
        }
    }
    for definition in judged::definitions() {
        install(&client, definition).await.unwrap();
    }
    // Invalid objects first: a refusal shows that the rules of the kind are in effect.
    let mut cases = judged::cases();
    cases.sort_by_key(|case| case.violations.is_empty());
    for case in cases {
        let new = object(case.kind, &case.new);
        let is_valid = case.violations.is_empty();
        // A new schema is in effect some time after it was installed, which nothing announces.
        let mut answers = 0;
        let verdict = loop {
            let verdict = match &case.old {
                None => objects(case.kind).create(&new).dry_run().await.map(drop),
                Some(_) => {
                    let stored = objects(case.kind).get(new.metadata.name.as_deref().unwrap()).await.unwrap();
                    let mut new = new.clone();
                    new.metadata.resource_version = stored.metadata.resource_version;
                    objects(case.kind).update(&new).dry_run().await.map(drop)
                }
            };
            answers += 1;
            if verdict.is_ok() == is_valid || answers == 50 {
                break verdict;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(verdict.is_ok(), is_valid, "{case:?}: {verdict:?}");
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
