//! Types that cannot be custom resources.

use klient_derive::{CustomResource, KubeSchema, Resource};

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Shop")]
struct Shop {}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Generic")]
struct GenericSpec<T> {
    value: T,
}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Either")]
union EitherSpec {
    a: u8,
}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Flat", no_spec)]
struct FlatSpec {
    kind: String,
}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "FlatEnum", no_spec)]
enum FlatEnumSpec {
    A,
}

#[derive(KubeSchema)]
enum Rules {
    A,
}

#[derive(Resource)]
#[resource(inherit = "ConfigMap")]
struct Settings {
    data: (),
}

fn main() {}
