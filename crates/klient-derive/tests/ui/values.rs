//! Values that the server would refuse.

use klient_derive::CustomResource;

#[derive(CustomResource)]
#[kube(group = "Example", version = "V1", kind = "shop", plural = "Shops", shortname = "s h")]
struct ShopSpec {}

#[derive(CustomResource)]
#[kube(group = "example.com", version = 1, kind)]
#[kube(namespaced = "yes", label("key"), status = "not a type", scale)]
struct TypesSpec {}

fn main() {}
