//! Configurations of a derived kind on the real server.

use crate::cluster::{self, or_skip};

#[path = "../shared/typed_apply.rs"]
mod scenario;

#[tokio::test]
async fn derived_configurations_share_an_object() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "typed-apply").await;
    scenario::two_managers_share_an_object(&client, &namespace).await;
}

#[tokio::test]
async fn conflicts_of_derived_configurations_are_values() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "typed-apply-conflicts").await;
    scenario::conflicts_are_values(&client, &namespace).await;
}

#[tokio::test]
async fn status_of_derived_kind_is_applied_by_condition() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "typed-apply-status").await;
    scenario::status_is_applied_by_condition(&client, &namespace).await;
}
