//! Names that are nearly right.

use klient_derive::{CustomResource, KubeSchema, Resource};

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Shop", shortnames = "sh", namespace, colour = "red")]
#[klient(schema = "derive", printcolumn(name = "Size", type_ = "int", jsonpath = ".spec.size"))]
struct ShopSpec {}

#[derive(CustomResource)]
#[kube(group = "example.com", version = "v1", kind = "Column")]
#[kube(printcolumn(name = "Size", type_ = "int", json_path = "spec.size"))]
struct ColumnSpec {}

#[derive(KubeSchema)]
#[x_kube(validate = "self.size > 0")]
struct Rules {
    #[x_kube(merge = ListMerge::Set)]
    size: u32,
}

#[derive(Resource)]
#[resource(inherits = "ConfigMap")]
struct Settings {
    metadata: (),
}

fn main() {}
