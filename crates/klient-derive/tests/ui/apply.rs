//! Types and fields that cannot have configurations.

use klient_derive::Apply;

#[derive(Apply)]
enum Source {
    Farm,
}

#[derive(Apply)]
struct Name(String);

#[derive(Apply)]
struct Generic<T> {
    value: T,
}

#[derive(Apply)]
#[serde(into = "String")]
struct Text {
    text: String,
}

#[derive(Apply)]
#[apply(nam = "Other", value)]
struct Misspelt {}

#[derive(Apply)]
struct MisspeltFields {
    #[apply(valeu)]
    size: u32,
    #[apply(value, with = "Other")]
    both: Source,
}

#[derive(Apply)]
struct Merged {
    #[x_kube(merge_strategy = ListMerge::Map(KEYS))]
    keys: Vec<Merged>,
    #[x_kube(merge_strategy = ListMerge::Set)]
    set: String,
}

#[derive(Apply)]
struct Clash {
    port: u16,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    ports: Vec<Clash>,
    new: bool,
}

#[derive(Apply)]
#[kube(group = "example.com", version = "v1", kind = "Flat", no_spec)]
struct FlatFields {
    labels: Vec<String>,
}

fn main() {}
