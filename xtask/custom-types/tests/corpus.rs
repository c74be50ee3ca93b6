//! The definitions of the corpus: klient's equal kube-derive's byte for byte, and pass klient's own check.

#![allow(clippy::unwrap_used)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use klient::{CustomResourceExt as _, ResourceExt as _, custom};
use klient_custom_types::{by_klient, by_kube};

#[test]
fn corpus_has_at_least_60_distinct_types() {
    let mut names: Vec<String> =
        by_klient::all().into_iter().filter_map(|entry| entry.definition.metadata.name).collect();
    names.sort();
    names.dedup();
    assert!(names.len() >= 60, "{}", names.len());
}

#[test]
fn definitions_equal_those_of_kube_derive_byte_for_byte() {
    let (ours, theirs) = (by_klient::all(), by_kube::all());
    assert_eq!(ours.len(), theirs.len());
    let mut differences = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.name, theirs.name);
        let json = |definition| serde_json::to_string_pretty(definition).unwrap();
        let yaml = |definition| serde_saphyr::to_string(definition).unwrap();
        let (ours_json, theirs_json) = (json(&ours.definition), json(&theirs.definition));
        if ours_json != theirs_json || yaml(&ours.definition) != yaml(&theirs.definition) {
            differences.push(format!("{}: klient\n{ours_json}\nkube-derive\n{theirs_json}", ours.name));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn check_passes_for_each_type_that_servers_take() {
    let mut wrong = Vec::new();
    for entry in by_klient::all() {
        let result = custom::check(&entry.definition);
        if result.is_ok() != entry.is_accepted {
            wrong.push(format!("{}: {result:?}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn objects_are_written_as_those_of_kube_derive() {
    use by_klient::definitions as ours;
    use by_kube::definitions as theirs;

    let text = r#"{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"name":"n","replicas":2},"status":{"replicas":1,"selector":"s"}}"#;
    let ours_read: ours::Everything = serde_json::from_str(text).unwrap();
    let theirs_read: theirs::Everything = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&ours_read).unwrap(), serde_json::to_string(&theirs_read).unwrap());
    let flat = r#"{"metadata":{"name":"a"},"fullSize":3}"#;
    let ours_read: ours::FlatStatus = serde_json::from_str(flat).unwrap();
    let theirs_read: theirs::FlatStatus = serde_json::from_str(flat).unwrap();
    assert_eq!(serde_json::to_string(&ours_read).unwrap(), serde_json::to_string(&theirs_read).unwrap());

    let spec = serde_json::from_str(r#"{"name":"n","replicas":2}"#).unwrap();
    let new = ours::Everything::new("web", spec);
    assert_eq!((new.name(), new.label("app")), ("web", Some("corpus")));
    assert_eq!(new.annotation("corpus.klient.invalid/note"), Some("a b"));
    assert_eq!(ours::Everything::default().metadata, ObjectMeta::default());
    assert_eq!(ours::Everything::crd_name(), "everythings.corpus.klient.invalid");
    assert_eq!(ours::Everything::shortnames(), ["ev", "evs"]);
    assert_eq!(ours::Everything::api_resource().gvr().to_string(), "corpus.klient.invalid/v1, Resource=everythings");
}

#[test]
fn types_implement_kubes_resource_through_k8s_openapi() {
    fn names<K: kube_core::Resource<DynamicType = ()>>() -> [String; 4] {
        [K::group(&()), K::version(&()), K::kind(&()), K::plural(&())].map(std::borrow::Cow::into_owned)
    }
    use by_klient::definitions::Everything;
    assert_eq!(names::<Everything>(), ["corpus.klient.invalid", "v1", "Everything", "everythings"]);
}
