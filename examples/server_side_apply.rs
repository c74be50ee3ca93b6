//! Two field managers of one object: each owns the fields that it applies, they conflict, and one takes over.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example server_side_apply
//! ```

#![allow(clippy::print_stdout)]

use anyhow::bail;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{Api, Client, status::Status};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::infer()?);

    // The first apply creates the object. Neither manager needs to know the fields of the other.
    maps.apply(NAME, &fields(&json!({"colour": "blue"}))).manager("painter").await?;
    let both = maps.apply(NAME, &fields(&json!({"wood": "oak"}))).manager("carpenter").await?;
    println!("two managers, one object: {:?}", both.data.unwrap_or_default());

    let theirs = fields(&json!({"wood": "oak", "colour": "red"}));
    match maps.apply(NAME, &theirs).manager("carpenter").await {
        Err(error) if error.is_conflict() => {
            for cause in error.status().map(Status::causes).unwrap_or_default() {
                println!("refused: {} at {}", cause.message, cause.field);
            }
        }
        Err(error) => return Err(error.into()),
        Ok(_) => bail!("there should be a conflict"),
    }
    let forced = maps.apply(NAME, &theirs).manager("carpenter").force().await?;
    println!("by force: {:?}", forced.data.unwrap_or_default());

    // A field that its manager no longer applies is removed, unless another manager owns it, too.
    let less = maps.apply(NAME, &fields(&json!({"wood": "oak"}))).manager("carpenter").await?;
    println!("without the colour: {:?}", less.data.unwrap_or_default());

    maps.delete(NAME).await?;
    println!("deleted {NAME}");
    Ok(())
}

fn fields(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data})
}

const NAME: &str = "demo-apply";
