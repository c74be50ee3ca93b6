//! The number of connections, and trust.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ErrorKind,
    client::config::{Pem, Trust},
};

use crate::cluster::{client, config, namespace, or_skip};

#[tokio::test]
async fn hundreds_of_watches_do_not_block_requests() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "connections").await);
    let version = maps.list().await.unwrap().resource_version();
    let mut watches = Vec::new();
    // More than any server allows on one connection.
    for _ in 0..300 {
        watches.push(maps.watch().after(version.clone()).await.unwrap());
    }
    maps.list().await.unwrap();
    let mut map = ConfigMap::default();
    map.metadata.name = Some("seen-by-all".to_owned());
    maps.create(&map).await.unwrap();
    // All watches still receive events.
    for watch in &mut watches {
        let event = watch.next().await.expect("the watch continues").unwrap();
        assert_eq!(event.object().unwrap().metadata.name, map.metadata.name);
    }
}

#[tokio::test]
async fn concurrent_requests_all_get_responses() {
    let client = or_skip!(client());
    let requests = (0..200).map(|_| {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
        tokio::spawn(async move { maps.list().await.map(|list| list.items.len()) })
    });
    let requests: Vec<_> = requests.collect();
    for request in requests {
        request.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn server_of_another_authority_is_not_trusted() {
    let mut wrong = or_skip!(config());
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    wrong.tls = wrong.tls.trust(Trust::Authority(Pem::Data(other.cert.pem().into_bytes())));
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&wrong).unwrap(), "default");
    let error = maps.list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted);
    assert!(error.to_string().contains("signed by an unknown authority"), "{error}");

    wrong.tls = wrong.tls.trust(Trust::Anyone);
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&wrong).unwrap(), "default");
    maps.list().await.unwrap();
}
