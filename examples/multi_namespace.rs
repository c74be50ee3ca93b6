//! One informer over the namespaces of tenants, and one of just the Secrets that objects refer to.
//!
//! On the embedded server. The program needs permissions in these namespaces only.

#![allow(clippy::print_stdout)]

use std::error::Error;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use klient::{
    Api, Client, InformerFactory, ObjectKey,
    informer::{CachedObject, HandlerFuncs, NamespaceSet, References},
};
use klient_apiserver::ApiServer;
use serde_json::json;

async fn create_tenant(client: &Client, name: &str) -> Result<(), Box<dyn Error>> {
    let namespace = json!({"metadata": {"name": name, "labels": {"tenant": "true"}}});
    Api::<Namespace>::cluster(client.clone()).create(&serde_json::from_value(namespace)?).await?;
    let website = json!({"metadata": {"name": "website"}, "data": {"password": "login"}});
    Api::<ConfigMap>::namespaced(client.clone(), name).create(&serde_json::from_value(website)?).await?;
    for secret in ["login", "unrelated"] {
        let secret = json!({"metadata": {"name": secret}});
        Api::<Secret>::namespaced(client.clone(), name).create(&serde_json::from_value(secret)?).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    create_tenant(&client, "north").await?;

    let tenants = NamespaceSet::selected(client.clone(), "tenant=true");
    let websites = InformerFactory::new(client.clone()).namespaces::<ConfigMap>(&tenants);
    let secrets: References<Secret> = References::new(client.clone());
    let referred = secrets.clone();
    let _websites = websites.add_handler(HandlerFuncs::new().on_add(move |website: &CachedObject<ConfigMap>, _| {
        println!("website {}", website.key());
        let Ok(map) = website.decode() else { return };
        let names = map.data.iter().filter_map(|data| data.get("password"));
        let namespace = website.key().namespace().unwrap_or_default();
        referred.set(website.key().clone(), names.map(|name| ObjectKey::namespaced(namespace, name)));
    }));
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let _secrets = secrets.informer().add_handler(HandlerFuncs::new().on_add(move |secret, _| {
        let _ = sender.send(secret.key().clone());
    }));
    websites.start();
    secrets.informer().start();
    println!("secret {}", seen.recv().await.ok_or("the informer stopped")?);

    // A namespace joins while the informers run.
    create_tenant(&client, "south").await?;
    println!("secret {}", seen.recv().await.ok_or("the informer stopped")?);
    println!("{} of 4 secrets are cached, tenants are {:?}", secrets.informer().lister().len(), tenants.names());
    Ok(())
}
