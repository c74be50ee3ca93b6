//! Webhooks of a derived type: defaults, validation, and conversion between two versions.
//!
//! Without arguments, the embedded API server calls the handlers in this process, which takes milliseconds. With `--cluster`, they
//! are served by TLS on this machine and registered by URL in the cluster of the kubeconfig, until Ctrl-C.

#![allow(clippy::print_stdout)]

use std::{error::Error, time::Instant};

use klient::{
    Api, BoxError, Client, CustomResource, Manager,
    custom::{Spoke, Versions},
    webhook::{Request, Verdict, WebhookServer, Webhooks, default, validate},
};
use klient_apiserver::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod v1 {
    use super::*;

    /// A shop. This version is stored.
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.klient.invalid", version = "v1", kind = "Shop", namespaced)]
    pub(crate) struct ShopSpec {
        pub(crate) square_meters: i64,
        pub(crate) color: Option<String>,
    }
}

mod v1beta1 {
    use super::*;

    /// The first version of a shop, which is still served.
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.klient.invalid", version = "v1beta1", kind = "Shop", namespaced)]
    pub(crate) struct ShopSpec {
        pub(crate) size: i64,
        pub(crate) color: Option<String>,
    }
}

impl Spoke for v1beta1::Shop {
    type Hub = v1::Shop;

    fn into_hub(self) -> Result<v1::Shop, BoxError> {
        let v1beta1::ShopSpec { size, color } = self.spec;
        Ok(v1::Shop { metadata: self.metadata, spec: v1::ShopSpec { square_meters: size, color } })
    }

    fn from_hub(hub: v1::Shop) -> Result<Self, BoxError> {
        let v1::ShopSpec { square_meters, color } = hub.spec;
        Ok(Self { metadata: hub.metadata, spec: v1beta1::ShopSpec { size: square_meters, color } })
    }
}

fn is_blue(shop: &mut v1::Shop) {
    shop.spec.color.get_or_insert_with(|| "blue".to_owned());
}

async fn fits(request: Request<v1::Shop>) -> Verdict {
    match request.object.map(|shop| shop.spec.square_meters) {
        Some(size @ ..1) => Verdict::deny(format!("a shop of {size} square meters cannot be entered")).code(422),
        Some(size @ 101..) => Verdict::allow().warn(format!("{size} square meters are a lot to clean")),
        _ => Verdict::allow(),
    }
}

fn webhooks() -> Webhooks {
    Webhooks::new("shops.example.klient.invalid")
        .service("shops", "webhooks")
        .convert(Versions::of::<v1::Shop>().and::<v1beta1::Shop>())
        .hook(default::<v1::Shop>(is_blue))
        .hook(validate::<v1::Shop>(fits))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--cluster") {
        let server = WebhookServer::new(Client::infer()?, webhooks().url("https://127.0.0.1:9443"));
        let server = server.listen(([127, 0, 0, 1], 9443));
        return Ok(Manager::builder().webhooks(server).build().await?.run().await?);
    }
    let start = Instant::now();
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    server.webhook_service("shops/webhooks", webhooks().into_service());
    webhooks().register(&client, None).await?;

    let old: Api<v1beta1::Shop> = Api::namespaced(client.clone(), "default");
    let new: Api<v1::Shop> = Api::namespaced(client, "default");
    let made = old.create(&v1beta1::Shop::new("corner", v1beta1::ShopSpec { size: 40, color: None })).await?;
    println!("created in v1beta1: {:?}", made.spec);
    println!("stored in v1: {:?}", new.get("corner").await?.spec);
    let refused = old.create(&v1beta1::Shop::new("crack", v1beta1::ShopSpec { size: 0, color: None })).await;
    println!("refused: {}", refused.err().map(|error| error.to_string()).ok_or("it was created")?);
    println!("all of it took {:?}", start.elapsed());
    println!("\nthe same as a manifest:\n{}", webhooks().to_yaml(None));
    Ok(())
}
