//! The async functions and requests of the client.

use std::{pin::Pin, sync::Arc};

use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    autoscaling::v1::Scale,
    certificates::v1::CertificateSigningRequest,
    core::v1::{Binding, ConfigMap, Namespace, Pod, ServiceAccount},
};
use klient::{
    Api, Client, Error, Patch,
    client::{
        DynamicClient, ScaleClient,
        discovery::{CachedDiscovery, DiscoveryClient, OpenApiClient, RestMapper},
    },
    controller::{Outcome, Reconciler, Request},
    resource::{ApiResource, GroupKind, GroupVersion, GroupVersionKind},
    wire::SplitOptions,
};
use serde_json::{Value, json};

/// The values that the calls below borrow.
struct Borrowed {
    client: Client,
    maps: Api<ConfigMap>,
    map: ConfigMap,
    pods: Api<Pod>,
    pod: Pod,
    binding: Binding,
    deployments: Api<Deployment>,
    scale: Scale,
    accounts: Api<ServiceAccount>,
    token: TokenRequest,
    requests: Api<CertificateSigningRequest>,
    request: CertificateSigningRequest,
    namespaces: Api<Namespace>,
    namespace: Namespace,
    discovery: DiscoveryClient,
    cached: CachedDiscovery,
    mapper: RestMapper,
    openapi: OpenApiClient,
    resource: ApiResource,
    version: GroupVersion,
    name: String,
}

sendable! {
    reads(borrowed) {
        let name = borrowed.name.as_str();
        borrowed.maps.get(name).await?;
        borrowed.maps.get_opt(name).await?;
        borrowed.maps.list().labels(name).fields(name).await?;
        borrowed.maps.metadata().get(name).await?;
        borrowed.maps.metadata().list().await?;
        DynamicClient::new(borrowed.client.clone()).all(&borrowed.resource).get(name).await?;
    }
    list_streams(borrowed) {
        let mut stream = borrowed.maps.list().labels(&borrowed.name).stream().await?;
        while let Some(map) = stream.next().await {
            borrowed.maps.update(&map?).await?;
        }
        let mut stream = borrowed.maps.list().stream_with(SplitOptions::default()).await?;
        while stream.next_raw().await.is_some() {}
        let mut objects = 0;
        borrowed.maps.list().for_each_raw(SplitOptions::default(), |object| objects += u32::from(object.is_ok())).await?;
        assert!(objects > 0);
    }
    pages(borrowed) {
        let mut pages = borrowed.maps.list().labels(&borrowed.name).pages();
        while let Some(page) = pages.next_page().await? {
            for map in &page {
                borrowed.maps.update(map).await?;
            }
        }
        let mut objects = Vec::new();
        while pages.next_page_raw(SplitOptions::default(), |object| objects.push(object)).await?.is_some() {}
        borrowed.maps.list().pages().all().await?;
    }
    watches(borrowed) {
        let mut watch = borrowed.maps.watch().after("7").labels(&borrowed.name).await?;
        while let Some(event) = watch.next().await {
            event?;
            borrowed.maps.get(&borrowed.name).await?;
        }
        while watch.next_raw().await.is_some() {}
        let mut watch = borrowed.maps.watch().after("7").retrying()?;
        while watch.next().await.is_some() {}
        while watch.next_raw().await.is_some() {}
    }
    writes(borrowed) {
        let name = borrowed.name.as_str();
        borrowed.maps.create(&borrowed.map).manager(name).dry_run().await?;
        borrowed.maps.update(&borrowed.map).manager(name).await?;
        borrowed.maps.patch(name, Patch::merge(&borrowed.map)).await?;
        borrowed.maps.apply(&borrowed.map).manager(name).force().await?;
        borrowed.maps.delete(name).foreground().uid(name).await?;
        borrowed.maps.delete_collection().labels(name).await?;
        let futures = [borrowed.maps.create(&borrowed.map).into_future()];
        for future in futures {
            future.await?;
        }
    }
    subresources(borrowed) {
        let name = borrowed.name.as_str();
        borrowed.deployments.status().get(name).await?;
        borrowed.deployments.scale().update(name, &borrowed.scale).await?;
        borrowed.deployments.scale().patch(name, Patch::merge(json!({}))).await?;
        borrowed.deployments.status().apply(&json!({"metadata": {"name": name}})).manager(name).await?;
        borrowed.deployments.status().delete(name).await?;
        borrowed.pods.update_status(&borrowed.pod).await?;
        borrowed.pods.evict(name).await?;
        borrowed.pods.bind(&borrowed.binding).await?;
        borrowed.accounts.create_token(name, &borrowed.token).await?;
        borrowed.requests.update_approval(&borrowed.request).await?;
        borrowed.namespaces.finalize(&borrowed.namespace).await?;
        let scales = ScaleClient::new(borrowed.client.clone(), name);
        scales.get(&borrowed.resource, name).await?;
        scales.update(&borrowed.resource, &borrowed.scale).await?;
        scales.set_replicas(&borrowed.resource, name, 3).await?;
    }
    logs(borrowed) {
        borrowed.pods.logs(&borrowed.name).container(&borrowed.name).await?;
        let mut log = borrowed.pods.logs(&borrowed.name).follow().stream().await?;
        while let Some(line) = log.line().await? {
            borrowed.maps.get(&line).await?;
        }
    }
    rest_requests(borrowed) {
        let request = || borrowed.client.rest().get().resource(&borrowed.resource).name(&borrowed.name);
        request().object::<ConfigMap>().await?;
        request().value::<Value>().await?;
        request().list::<ConfigMap>().await?;
        request().list_stream::<ConfigMap>(SplitOptions::default()).await?;
        request().watch::<ConfigMap>().await?;
        request().status().await?;
        request().bytes().await?;
        request().stream().await?.collect(1).await?;
        let mut body = request().response().await?.into_body();
        while body.chunk().await?.is_some() {}
        borrowed.client.send(http::Request::new(Vec::new())).await?;
    }
    discovery(borrowed) {
        borrowed.discovery.apis().await?;
        borrowed.discovery.resources(&borrowed.version).await?;
        borrowed.discovery.server_version().await?;
        borrowed.cached.apis().await?;
        borrowed.cached.refresh().await?;
        borrowed.mapper.resource_for_kind(&GroupVersionKind::of::<Pod>()).await?;
        borrowed.mapper.resource_for_group_kind(&GroupKind::from(borrowed.name.as_str())).await?;
        borrowed.mapper.resolve(&borrowed.name).await?;
        borrowed.mapper.category(&borrowed.name).await?;
        borrowed.openapi.index().await?;
        borrowed.openapi.document(&borrowed.version).await?;
        borrowed.openapi.value(&borrowed.version).await?;
        borrowed.openapi.document_v2().await?;
    }
}

#[cfg(feature = "streams")]
sendable! {
    processes(borrowed) {
        use klient::client::streams::TerminalSize;
        let (name, size) = (borrowed.name.as_str(), TerminalSize { width: 80, height: 24 });
        let mut process = borrowed.pods.exec(name, [name, "-l"]).container(name).stdin(true).tty(true).await?;
        process.resize(size).await?;
        if let (Some(mut stdin), Some(mut stdout)) = (process.stdin(), process.stdout()) {
            let _ = tokio::io::copy(&mut stdout, &mut stdin).await;
            let _ = stdout.chunk().await;
        }
        if let Some(mut resizer) = process.resizer() {
            resizer.resize(size).await?;
            resizer.follow_terminal().await?;
        }
        process.wait().await?;
        process.close().await;
        borrowed.pods.attach(name).await?.output().await?;
    }
    forwarded_ports(borrowed) {
        let name = borrowed.name.as_str();
        let forward = borrowed.pods.port_forward(name, 80).await?;
        let mut connection = forward.connect().await?;
        let _ = tokio::io::AsyncWriteExt::write_all(&mut connection, name.as_bytes()).await;
        let listener = forward.listen("127.0.0.1:0").await?;
        listener.forward().pod().await;
        borrowed.deployments.port_forward(name, 80).await?;
    }
}
