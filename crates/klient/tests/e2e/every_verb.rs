//! Every verb on every kind of the table and on a custom resource, in both encodings.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    Api, Client, Patch, Resource, WatchEvent,
    client::Watch,
    object::DynamicObject,
    options::{DeleteCollectionOptions, DeleteOptions, ListOptions, PropagationPolicy, WatchOptions},
    patch::{JsonPatchOperation, JsonPointer},
    request::Target,
    resource::ApiResource,
    wire::{ManagedFields, SplitOptions},
};
use serde_json::json;

use crate::{
    cluster::{both_clients, client, json_client, namespace, or_skip},
    custom::{Widget, widgets},
    kinds::{Sample, Visitor, annotation, visit_all},
};

/// A visitor that uses every verb on objects of a kind.
struct EveryVerb {
    client: Client,
    /// A label that separates the objects of this test from those of others.
    label: String,
    kinds: usize,
}

impl Visitor for EveryVerb {
    async fn visit<K: Resource + PartialEq>(&mut self, api: impl Fn(&Client) -> Api<K>, sample: Sample) {
        let life = Life { api: api(&self.client), sample, label: self.label.clone() };
        life.live().await;
        self.kinds += 1;
    }
}

/// The lifecycle of objects of one kind.
struct Life<K> {
    api: Api<K>,
    sample: Sample,
    label: String,
}

impl<K: Resource + PartialEq> Life<K> {
    async fn live(&self) {
        let made = self.make_and_read().await;
        let list = self.api.list().options(self.mine()).await.unwrap();
        assert_eq!(list.items, std::slice::from_ref(&made), "{self}");
        let options = WatchOptions::after(list.resource_version()).labels(format!("app={}", self.label));
        let mut watch = self.api.watch().options(options.clone()).await.unwrap();

        let mut states = vec![self.replace(&made).await];
        states.extend(self.patch_in_every_way().await);
        states.push(self.apply().await);
        states.extend(self.report().await);
        assert_eq!(states.last(), Some(&self.get().await), "{self}");
        for state in states {
            // Each change is reported once, in order, and equal to the response.
            assert_eq!(next(&mut watch).await, WatchEvent::Modified(state), "{self}");
        }
        self.delete_one(&mut watch).await;
        self.delete_many(&mut watch).await;
    }

    async fn make_and_read(&self) -> K {
        let object = self.sample.object(&self.name(), &self.label);
        let made = self.api.create(&object).await.unwrap_or_else(|e| panic!("{self}: {e}"));
        assert!(self.api.create(&object).await.unwrap_err().is_already_exists(), "{self}");
        assert_eq!(self.get().await, made, "{self}");
        let split = SplitOptions::default().managed_fields(ManagedFields::Keep);
        let mut stream = self.api.list().options(self.mine()).stream_with(split).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), made, "{self}");
        assert!(stream.next().await.is_none() && stream.end().is_some(), "{self}");
        made
    }

    async fn replace(&self, made: &K) -> K {
        let mut changed = made.clone();
        changed.metadata_mut().annotations.get_or_insert_default().insert("updated".to_owned(), "yes".to_owned());
        let updated = self.api.update(&changed).await.unwrap();
        assert_eq!(annotation(updated.metadata(), "updated"), Some("yes"), "{self}");
        let late = self.api.update(&changed).await.unwrap_err();
        assert!(late.is_conflict(), "{self}: {late}");
        updated
    }

    async fn patch_in_every_way(&self) -> Vec<K> {
        let at = JsonPointer::root().field("metadata");
        let annotated = |name: &str| json!({"metadata": {"annotations": {name: "yes"}}});
        let steps = vec![
            JsonPatchOperation::test(at.clone().field("name"), self.name()),
            JsonPatchOperation::add(at.field("annotations").field("klient.invalid/json"), "yes"),
        ];
        let mut states = Vec::new();
        for (name, patch) in [
            ("klient.invalid/json", Patch::json(steps)),
            ("merged", Patch::merge(annotated("merged"))),
            ("strategic", Patch::strategic(annotated("strategic"))),
        ] {
            let patched = self.api.patch(&self.name(), patch.clone()).await;
            if name == "strategic" && !self.sample.strategic {
                let status = patched.unwrap_err().status().cloned().unwrap();
                assert!(status.is_unsupported_media_type(), "{self}: {status}");
                continue;
            }
            let patched = patched.unwrap_or_else(|e| panic!("{self}: {e}"));
            assert_eq!(annotation(patched.metadata(), name), Some("yes"), "{self}");
            states.push(patched);
        }
        states
    }

    async fn apply(&self) -> K {
        let types = self.api.resource().types();
        let fields = json!({"apiVersion": types.api_version, "kind": types.kind, "metadata": {
            "name": self.name(), "annotations": {"applied": "yes"}}});
        let applied = self.api.apply(&fields).manager("applier").await.unwrap();
        assert_eq!(annotation(applied.metadata(), "applied"), Some("yes"), "{self}");
        let managers = applied.metadata().managed_fields.as_ref().unwrap();
        assert!(managers.iter().any(|entry| entry.manager.as_deref() == Some("applier")), "{self}");
        applied
    }

    /// Replaces the status, if there is one. Otherwise, the server responds with not found.
    async fn report(&self) -> Option<K> {
        let Some(status) = &self.sample.status else {
            let error = self.api.status().get(&self.name()).await.unwrap_err();
            assert!(error.is_not_found(), "{self}: {error}");
            return None;
        };
        let mut object = serde_json::to_value(self.get().await).unwrap();
        object["status"] = status.clone();
        let object = serde_json::from_value(object).unwrap();
        let updated = self.api.update_status(&object).await;
        let updated = updated.unwrap_or_else(|e| panic!("{self}: {e}"));
        assert_eq!(self.api.status().get(&self.name()).await.unwrap(), updated, "{self}");
        let value = serde_json::to_value(&updated).unwrap();
        for (name, expected) in status.as_object().unwrap() {
            assert_eq!(&value["status"][name], expected, "{self}");
        }
        Some(updated)
    }

    async fn delete_one(&self, watch: &mut Watch<K>) {
        self.api.delete(&self.name()).options(immediately()).await.unwrap();
        let deleted = next(watch).await;
        assert!(matches!(&deleted, WatchEvent::Deleted(_)), "{self}: {deleted:?}");
        assert_eq!(self.api.get_opt(&self.name()).await.unwrap(), None, "{self}");
        assert!(self.api.delete(&self.name()).options(immediately()).await.unwrap_err().is_not_found(), "{self}");
    }

    async fn delete_many(&self, watch: &mut Watch<K>) {
        for number in ["two", "three"] {
            let object = self.sample.object(&format!("{}-{number}", self.name()), &self.label);
            self.api.create(&object).await.unwrap();
        }
        let options = DeleteCollectionOptions::default().list(self.mine()).delete(immediately());
        self.api.delete_collection().options(options.clone()).await.unwrap();
        assert_eq!(self.api.list().options(self.mine()).await.unwrap().items, [], "{self}");
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(next(watch).await.type_name());
        }
        assert_eq!(seen, ["ADDED", "ADDED", "DELETED", "DELETED"], "{self}");
    }

    async fn get(&self) -> K {
        self.api.get(&self.name()).await.unwrap()
    }

    fn name(&self) -> String {
        format!("{}-one", self.label)
    }

    fn mine(&self) -> ListOptions {
        ListOptions::default().labels(format!("app={}", self.label))
    }
}

impl<K: Resource> std::fmt::Display for Life<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} as {}", self.api.resource().gvk(), self.label)
    }
}

/// Returns options that delete immediately, because neither controllers nor kubelets run here.
fn immediately() -> DeleteOptions {
    DeleteOptions::default().propagation_policy(PropagationPolicy::Background).grace_period(Duration::ZERO)
}

/// Returns the next event, except that of a pod which is about to be deleted.
async fn next<K: Resource>(watch: &mut Watch<K>) -> WatchEvent<K> {
    loop {
        match watch.next().await.expect("the watch continues").unwrap() {
            WatchEvent::Modified(object) if object.metadata().deletion_timestamp.is_some() => {}
            event => return event,
        }
    }
}

async fn check_built_in(client: Client, form: &str) {
    let label = format!("every-verb-{form}");
    let namespace = namespace(&client, &label).await;
    let mut visitor = EveryVerb { client, label, kinds: 0 };
    visit_all(&mut visitor, &namespace).await;
    assert!(visitor.kinds > 30, "only {} kinds", visitor.kinds);
}

/// Returns the client with managed fields, because the test checks them.
fn whole(client: &Client) -> Client {
    client.to_builder().managed_fields(ManagedFields::Keep).build()
}

#[tokio::test]
async fn every_verb_works_on_every_kind_in_protobuf() {
    check_built_in(whole(&or_skip!(client())), "protobuf").await;
}

#[tokio::test]
async fn every_verb_works_on_every_kind_in_json() {
    check_built_in(whole(&or_skip!(json_client())), "json").await;
}

#[tokio::test]
async fn every_verb_works_on_a_custom_resource_typed_and_dynamic() {
    for (form, client) in or_skip!(both_clients()) {
        let client = whole(&client);
        let resource = widgets(&client).await;
        let namespace = namespace(&client, &format!("every-verb-custom-{form}")).await;
        let mut sample = Sample::new(json!({
            "apiVersion": "e2e.klient.invalid/v1", "kind": "Widget", "spec": {"size": 3, "replicas": 1}}));
        sample.status = Some(json!({"replicas": 1}));
        sample.strategic = false;
        let typed = Life::<Widget> {
            api: Api::namespaced(client.clone(), &namespace),
            sample: sample.clone(),
            label: format!("typed-{form}"),
        };
        Box::pin(typed.live()).await;
        let target = Target::Namespace(namespace.clone());
        let dynamic = Life { api: Api::dynamic(client, resource, target), sample, label: format!("dynamic-{form}") };
        Box::pin(dynamic.live()).await;
    }
}

#[tokio::test]
async fn every_verb_works_on_a_dynamic_built_in_kind() {
    let client = whole(&or_skip!(client()));
    let namespace = namespace(&client, "every-verb-dynamic").await;
    let mut sample = Sample::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
    }}));
    sample.status = Some(json!({"observedGeneration": 1}));
    let api: Api<DynamicObject> = Api::dynamic(client, ApiResource::of::<Deployment>(), Target::Namespace(namespace));
    Life { api, sample, label: "built-in".to_owned() }.live().await;
}
