//! The page asks for a token, and shows nothing without one.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use klient::{Api, Client, Manager, manager::DebugPage};
use klient_apiserver::{ApiServer, User};
use serde_json::{Value, json};

use crate::browser::browse;

/// Users that may not see the page, and what the page tells them.
pub(crate) const REFUSALS: [(&str, &str); 2] =
    [("unknown", "does not accept the token"), ("eve", "may not get the non-resource URL")];

/// Returns a role that may see the page, and a binding of it.
pub(crate) fn permission(subject: &Value) -> (ClusterRole, ClusterRoleBinding) {
    let role =
        json!({"metadata": {"name": "debug"}, "rules": [{"nonResourceURLs": ["/debug/klient"], "verbs": ["get"]}]});
    let binding = json!({"metadata": {"name": "debug"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "debug"}});
    (serde_json::from_value(role).unwrap(), serde_json::from_value(binding).unwrap())
}

#[tokio::test]
async fn page_asks_for_a_token_and_shows_data_to_authorized_users() {
    browse(|page| async move {
        let server = ApiServer::builder()
            .rbac()
            .token("anna-token", User::new("anna"))
            .token("eve-token", User::new("eve"))
            .start()
            .await
            .unwrap();
        let admin = Client::from_service(server.service_as(User::new("root").group("system:masters")));
        let (role, binding) = permission(&json!({"kind": "User", "name": "anna"}));
        Api::<ClusterRole>::cluster(admin.clone()).create(&role).await.unwrap();
        Api::<ClusterRoleBinding>::cluster(admin.clone()).create(&binding).await.unwrap();
        let builder = Manager::builder().serve(([127, 0, 0, 1], 0)).debug(DebugPage::authorized_by(admin));
        let manager = builder.build().await.unwrap();
        let address = manager.address().unwrap();
        let task = tokio::spawn(manager.run_until(std::future::pending()));

        page.client.goto(&format!("http://localhost:{}/debug/klient", address.port())).await.unwrap();
        page.wait_for("#connection", |text| text == "not allowed").await;
        for (token, message) in REFUSALS.map(|(user, message)| (format!("{user}-token"), message)) {
            page.log_in(&token).await;
            page.wait_for("#login-problem", |text| text.contains(message)).await;
        }
        page.screenshot("login").await;
        page.log_in("anna-token").await;
        page.wait_for("#connection", |text| text.starts_with("live")).await;
        let source = page.script("return document.documentElement.outerHTML", json!(null)).await;
        assert!(!source.as_str().unwrap().contains("anna-token"), "the token is on the page");
        task.abort();
    })
    .await;
}
