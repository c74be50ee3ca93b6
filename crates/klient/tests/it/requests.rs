//! The paths and headers of requests, and secrets that are never shown.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ErrorKind, Patch,
    client::{
        auth::{StaticAuth, TokenFileAuth},
        config::{Config, Credentials, Impersonation, Pem, Secret, Tls},
    },
    request::media_type,
};
use serde_json::json;

use crate::support::scripted::{Script, map, map_response, response};

#[tokio::test]
async fn requests_have_authorization_and_accept_headers() {
    let watch = response(200, media_type::JSON, "");
    let script = Script::new([map_response("web"), map_response("web"), map_response("web"), watch]);
    let client = script.builder().auth(StaticAuth::bearer("s3cret").unwrap()).build();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.get("web").await.unwrap();
    maps.create(&map("web")).await.unwrap();
    maps.patch("web", Patch::merge(json!({}))).await.unwrap();
    maps.watch().await.unwrap();
    let seen = script.played();
    let header = |index: usize, name: &str| {
        seen[index].request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(seen.len(), 4);
    for (index, request) in seen.iter().map(|seen| &seen.request).enumerate() {
        assert_eq!(header(index, "user-agent"), Some(format!("klient/{}", env!("CARGO_PKG_VERSION"))));
        assert_eq!(header(index, "accept-encoding").as_deref(), Some("gzip"));
        assert_eq!(header(index, "authorization").as_deref(), Some("Bearer s3cret"));
        assert!(request.headers()["authorization"].is_sensitive());
    }
    assert_eq!(header(0, "accept").as_deref(), Some(media_type::ACCEPT_PROTOBUF_OR_JSON));
    assert_eq!(header(0, "content-type"), None);
    assert_eq!(header(1, "content-type").as_deref(), Some(media_type::PROTOBUF));
    assert_eq!(header(2, "content-type").as_deref(), Some(media_type::MERGE_PATCH));
    let watch = "application/vnd.kubernetes.protobuf;stream=watch,application/json";
    assert_eq!(header(3, "accept").as_deref(), Some(watch));
    assert_eq!(seen[0].request.uri(), "/api/v1/namespaces/default/configmaps/web");
}

#[tokio::test]
async fn server_path_is_a_prefix_of_every_path() {
    for prefix in ["/clusters/a", "/clusters/a/"] {
        let script = Script::new([map_response("web"), response(200, media_type::JSON, "")]);
        let maps: Api<ConfigMap> = Api::namespaced(script.builder().path_prefix(prefix).build(), "default");
        maps.get("web").await.unwrap();
        maps.watch().await.unwrap();
        let seen = script.played();
        assert_eq!(seen[0].request.uri(), "/clusters/a/api/v1/namespaces/default/configmaps/web");
        assert_eq!(seen[1].request.uri().path(), "/clusters/a/api/v1/namespaces/default/configmaps");
        assert!(seen[1].request.uri().query().unwrap().contains("watch=true"));
    }
}

#[tokio::test]
async fn disabled_compression_is_sent_in_a_header() {
    let script = Script::new([map_response("web")]);
    let maps: Api<ConfigMap> = Api::namespaced(script.builder().compression(false).build(), "default");
    maps.get("web").await.unwrap();
    assert_eq!(script.played()[0].request.headers()["accept-encoding"], "identity");
}

#[tokio::test]
async fn name_that_would_change_the_path_is_not_sent() {
    // A script without steps panics if a request is sent.
    let script = Script::new(Vec::<http::Response<_>>::new());
    let maps = script.maps();
    for name in ["", "a/b", ".", "..", "a%2fb", "%"] {
        let error = maps.get(name).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
        maps.delete(name).await.unwrap_err();
        maps.patch(name, Patch::merge(json!({}))).await.unwrap_err();
        let mut object = map("web");
        object.metadata.name = Some(name.to_owned());
        maps.update(&object).await.unwrap_err();
        let elsewhere: Api<ConfigMap> = Api::namespaced(script.client(), name);
        elsewhere.get("web").await.unwrap_err();
    }
    script.played();
}

#[test]
fn debug_shows_no_secrets() {
    let secret = "s3cret";
    let mut config = Config::new("https://host:6443").unwrap();
    config.tls = Tls::default()
        .client_certificate(Pem::Data(b"certificate".to_vec()), Pem::Data(format!("key {secret}").into_bytes()));
    for credentials in [
        Credentials::Token(Secret::from(secret)),
        Credentials::TokenFile { path: "/run/token".into(), initial: Secret::from(secret) },
        Credentials::Basic { username: "me".to_owned(), password: Secret::from(secret) },
    ] {
        assert!(!format!("{credentials:?}").contains(secret));
        config.credentials = credentials;
        assert!(!format!("{config:?} {config:#?}").contains(secret));
    }
    let auth = StaticAuth::basic("me", secret).unwrap();
    assert!(!format!("{auth:?}").contains(secret) && !format!("{auth:?}").contains("bWU6"));
    assert!(!format!("{:?}", TokenFileAuth::new("/run/token", Some(secret)).unwrap()).contains(secret));
    let script = Script::new(Vec::<http::Response<_>>::new());
    let client = script
        .builder()
        .auth(StaticAuth::bearer(secret).unwrap())
        .header(http::header::COOKIE, secret.parse().unwrap())
        .build();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    assert!(!format!("{client:?} {maps:?}").contains(secret));
}

#[test]
fn invalid_token_is_an_error_without_the_token() {
    let mut config = Config::new("http://localhost:1").unwrap();
    config.credentials = Credentials::Token(Secret::from("s3cret\nmore"));
    let error = Client::from_config(&config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[test]
fn invalid_impersonated_name_is_an_error() {
    let mut config = Config::new("http://localhost:1").unwrap();
    config.impersonation = Some(Impersonation::new("me\r\nx: y").extra(BTreeMap::new()));
    assert_eq!(Client::from_config(&config).unwrap_err().kind(), ErrorKind::Config);
}
