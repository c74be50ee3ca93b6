//! Two managers of one object: each owns the fields that it applies, they conflict, and one takes over.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example server_side_apply
//! ```

#![allow(clippy::print_stdout)]

use anyhow::bail;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{Api, Client, options::ApplyOptions, status::Status};
use serde_json::{Value, json};

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::infer()?);
    let (painter, carpenter) = (ApplyOptions::new("painter"), ApplyOptions::new("carpenter"));

    // The first apply makes the object. Neither manager needs to know what the other has put there.
    maps.apply(NAME, &fields(&json!({"colour": "blue"}))).options(painter.clone()).await?;
    let both = maps.apply(NAME, &fields(&json!({"wood": "oak"}))).options(carpenter.clone()).await?;
    println!("two managers, one object: {:?}", both.data.unwrap_or_default());

    let theirs = fields(&json!({"wood": "oak", "colour": "red"}));
    match maps.apply(NAME, &theirs).options(carpenter.clone()).await {
        Err(error) if error.is_conflict() => {
            for cause in error.status().map(Status::causes).unwrap_or_default() {
                println!("refused: {} at {}", cause.message, cause.field);
            }
        }
        Err(error) => return Err(error.into()),
        Ok(_) => bail!("there should be a conflict"),
    }
    let forced = maps.apply(NAME, &theirs).options(carpenter.clone().force().clone()).await?;
    println!("by force: {:?}", forced.data.unwrap_or_default());

    // A field that its manager no longer applies is removed, unless another manager owns it, too.
    let less = maps.apply(NAME, &fields(&json!({"wood": "oak"}))).options(carpenter.clone()).await?;
    println!("without the colour: {:?}", less.data.unwrap_or_default());

    maps.delete(NAME).await?;
    println!("deleted {NAME}");
    Ok(())
}

fn fields(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data})
}

const NAME: &str = "demo-apply";
