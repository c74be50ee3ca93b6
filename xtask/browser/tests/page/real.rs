//! The page of a manager whose cluster is the real kube-apiserver: its tokens, its permissions, its objects. Skipped where there is none.

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use klient::{
    Api, Client,
    client::config::{Config, KubeconfigFiles, Overrides},
    manager::DebugPage,
};
use klient_harness::{Programs, Server};
use serde_json::json;

use crate::{
    access::{REFUSALS, permission},
    browser::browse,
    sample,
    world::World,
};

/// Creates a service account, and returns a token of it.
async fn token(client: &Client, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    accounts.create(&account).await.unwrap();
    let request = json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": 600}});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    accounts.create_token(name, &request).await.unwrap().status.unwrap().token.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_of_the_sample_controller_on_the_real_server() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        println!("skipped: the page of a manager on the real kube-apiserver, since there is none");
        return;
    };
    browse(|page| async move {
        let server = Server::start(&programs).unwrap();
        let files = KubeconfigFiles::explicit(server.kubeconfig());
        let config = Config::load(&files, &Overrides::default().context("token")).unwrap();
        let mut world = World::of(&Client::from_config(&config).unwrap());
        let subject = json!({"kind": "ServiceAccount", "name": "anna", "namespace": "default"});
        let (role, binding) = permission(&subject);
        Api::<ClusterRole>::cluster(world.client.clone()).create(&role).await.unwrap();
        Api::<ClusterRoleBinding>::cluster(world.client.clone()).create(&binding).await.unwrap();
        let (anna, eve) = (token(&world.client, "anna").await, token(&world.client, "eve").await);

        let guarded = DebugPage::authorized_by(world.client.clone());
        let address = sample::serve(&mut world, guarded).await;
        page.client.goto(&format!("http://localhost:{}/debug/klient", address.port())).await.unwrap();
        page.wait_for("#connection", |text| text == "not allowed").await;
        for ((_, message), token) in REFUSALS.into_iter().zip(["invented", &eve]) {
            page.log_in(token).await;
            page.wait_for("#login-problem", |text| text.contains(message)).await;
        }
        page.log_in(&anna).await;
        page.wait_for("#connection", |text| text.starts_with("live")).await;
        sample::check(&page, &world).await;
    })
    .await;
}
