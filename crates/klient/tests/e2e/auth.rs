//! Who asks, as the server sees it.

use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    core::v1::{ConfigMap, Secret},
};
use klient::{
    ErrorKind, ListOptions,
    client::{
        Api, Client, Config,
        config::{Credentials, Impersonation},
    },
    media_type,
};

use crate::cluster::{config, context, or_skip};

async fn user_of(config: &Config) -> String {
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", media_type::PROTOBUF)
        .header("accept", media_type::PROTOBUF)
        .body(klient::wire::encode_body(&SelfSubjectReview::default()).unwrap())
        .unwrap();
    let response = Client::from_config(config).unwrap().send(request).await.unwrap();
    let body = response.into_body().collect(1 << 20).await.unwrap();
    let review: SelfSubjectReview = klient::wire::decode_body(&body).unwrap();
    review.status.unwrap().user_info.unwrap().username.unwrap()
}

#[tokio::test]
async fn the_server_knows_who_asks() {
    let config = or_skip!(config());
    assert_eq!(user_of(&config).await, "e2e-token-user");
    assert_eq!(user_of(&or_skip!(context("second-token"))).await, "e2e-second-user");
    assert_eq!(user_of(&or_skip!(context("certificate"))).await, "e2e-certificate");
    let jane = Impersonation::new("jane").groups(["system:authenticated"]);
    assert_eq!(user_of(&config.impersonation(jane)).await, "jane");
}

#[tokio::test]
async fn a_wrong_token_is_unauthorized_and_no_right_is_forbidden() {
    let config = or_skip!(config());
    let wrong = config.clone().credentials(Credentials::Token("wrong".into()));
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&wrong).unwrap(), "default");
    let error = maps.list(&ListOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);

    let jane = config.impersonation(Impersonation::new("jane"));
    let secrets: Api<Secret> = Api::namespaced(Client::from_config(&jane).unwrap(), "default");
    let error = secrets.list(&ListOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains(r#"User "jane" cannot list resource "secrets""#), "{error}");
}

#[tokio::test]
async fn a_token_file_is_used_and_read_again_when_it_is_rejected() {
    let config = or_skip!(config());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "stale").unwrap();
    let file = config.credentials(Credentials::TokenFile { path: path.clone(), initial: "".into() });
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&file).unwrap(), "default");
    assert_eq!(maps.list(&ListOptions::default()).await.unwrap_err().kind(), ErrorKind::Unauthorized);
    std::fs::write(&path, "e2e-token").unwrap();
    maps.list(&ListOptions::default()).await.unwrap();
}
