//! Attributes that do not fit together.

use klient_derive::CustomResource;

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Scaled")]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".spec.actual"))]
struct ScaledSpec {}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Unchecked", schema = "disabled")]
#[kube(validation = "self.spec.size > 0", selectable = ".spec.size")]
struct UncheckedSpec {}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Twice", version = "v2")]
#[kube(derive = "Clone", attr = "derive(Eq)", attr = "serde(default)")]
struct TwiceSpec {}

fn main() {}
