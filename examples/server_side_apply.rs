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
use klient::{Api, Client, status::Status, wire::ManagedFields};
use klient_apply::core::v1::ConfigMapApply;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // What a manager owns is in the managed fields of an object, which clients drop by default.
    let client = Client::infer()?.to_builder().managed_fields(ManagedFields::Keep).build();
    let namespace = client.default_namespace().to_owned();
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let room = || ConfigMapApply::new("demo-apply", &namespace);

    // The first apply creates the object. Neither manager needs to know the fields of the other.
    maps.apply(&room().data([("colour", "blue")])).manager("painter").await?;
    let both = maps.apply(&room().data([("wood", "oak")])).manager("carpenter").await?;
    println!("two managers, one object: {:?}", both.data.clone().unwrap_or_default());
    println!("the painter owns: {}", ConfigMapApply::extract(&both, "painter")?.to_value()["data"]);

    // Applying what one owns already sends nothing.
    let same = room().data([("wood", "oak")]);
    let sent = maps.apply(&same).manager("carpenter").if_changed(&both).await?;
    println!("sent again: {}", sent.is_some());

    let theirs = room().data([("wood", "oak"), ("colour", "red")]);
    match maps.apply(&theirs).manager("carpenter").await {
        Err(error) if error.is_conflict() => {
            for conflict in error.status().map(Status::field_conflicts).unwrap_or_default() {
                println!("refused: {} belongs to {}", conflict.field, conflict.manager);
            }
        }
        Err(error) => return Err(error.into()),
        Ok(_) => bail!("there should be a conflict"),
    }
    let forced = maps.apply(&theirs).manager("carpenter").force().await?;
    println!("by force: {:?}", forced.data.unwrap_or_default());

    // A field that its manager no longer applies is removed, unless another manager owns it, too.
    let less = maps.apply(&same).manager("carpenter").await?;
    println!("without the colour: {:?}", less.data.unwrap_or_default());

    maps.delete("demo-apply").await?;
    println!("deleted demo-apply");
    Ok(())
}
