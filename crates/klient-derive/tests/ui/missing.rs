//! Required attributes.

use klient_derive::CustomResource;

#[derive(CustomResource)]
struct ShopSpec {}

fn main() {}
