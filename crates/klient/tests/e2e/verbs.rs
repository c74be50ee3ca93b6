//! Every verb, on objects of a kind with protobuf and of a kind without.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{
    ApiResource, ApplyOptions, CreateOptions, DeleteCollectionOptions, DeleteOptions, DynamicObject, GetOptions,
    GroupVersionKind, ListOptions, Patch, PatchOptions, Scope, Target, UpdateOptions, VersionMatch,
    client::{Api, Deleted},
};
use serde_json::json;

use crate::cluster::{client, namespace, or_skip};

fn config_map(name: &str) -> ConfigMap {
    let value = json!({"metadata": {"name": name, "labels": {"app": "e2e"}}, "data": {"key": "value"}});
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_config_map_lives_and_dies() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "verbs-life").await);
    let made = maps.create(&CreateOptions::default(), &config_map("a")).await.unwrap();
    assert_eq!(made.data, config_map("a").data);
    assert!(maps.create(&CreateOptions::default(), &config_map("a")).await.unwrap_err().is_already_exists());
    assert_eq!(maps.get("a", &GetOptions::default()).await.unwrap(), made);
    let list = maps.list(&ListOptions::default().label_selector("app=e2e")).await.unwrap();
    assert_eq!(list.items, std::slice::from_ref(&made));
    assert!(!list.resource_version().is_empty());

    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("key".into(), "other".into());
    let changed = maps.update(&UpdateOptions::default(), &changed).await.unwrap();
    let conflict = maps.update(&UpdateOptions::default(), &made).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");

    let patched =
        maps.patch("a", &PatchOptions::default(), &Patch::Merge(json!({"data": {"more": "1"}}))).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    assert_eq!(changed.data.unwrap()["key"], "other");

    let refused = maps.delete("a", &DeleteOptions::default().uid("another")).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let gone = maps.delete("a", &DeleteOptions::default()).await.unwrap();
    assert!(matches!(gone, Deleted::Status(status) if status.is_success()));
    assert_eq!(maps.get_opt("a", &GetOptions::default()).await.unwrap(), None);
    assert!(maps.delete("a", &DeleteOptions::default()).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn lists_come_in_pages_and_collections_are_deleted() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "verbs-pages").await);
    for index in 0..7 {
        maps.create(&CreateOptions::default(), &config_map(&format!("map-{index}"))).await.unwrap();
    }
    let mut names = Vec::new();
    let mut options = ListOptions::default().label_selector("app=e2e").limit(3);
    loop {
        let page = maps.list(&options).await.unwrap();
        names.extend(page.iter().map(|map| map.metadata.name.clone().unwrap()));
        match page.continue_token() {
            Some(token) => options = options.continue_token(token),
            None => break,
        }
    }
    assert_eq!(names, (0..7).map(|index| format!("map-{index}")).collect::<Vec<_>>());

    maps.delete_collection(&DeleteCollectionOptions::default().label_selector("app=e2e")).await.unwrap();
    assert_eq!(maps.list(&ListOptions::default().label_selector("app=e2e")).await.unwrap().items, []);
}

#[tokio::test]
async fn errors_say_what_the_server_said() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let error = maps.get("nothing-here", &GetOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "configmaps \"nothing-here\" not found");
    let error = maps.create(&CreateOptions::default(), &config_map("Not_A_Name")).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(error.status().unwrap().causes()[0].field, "metadata.name");
    let nowhere: Api<ConfigMap> = Api::namespaced(client.clone(), "no-such-namespace");
    let error = nowhere.create(&CreateOptions::default(), &config_map("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "namespaces \"no-such-namespace\" not found");
}

#[tokio::test]
async fn server_side_apply_owns_fields_and_conflicts() {
    let client = or_skip!(client());
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace(&client, "verbs-apply").await);
    let fields = |replicas: i32| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        }})
    };
    let made = deployments.apply("web", &ApplyOptions::new("one"), &fields(2)).await.unwrap();
    assert_eq!(made.spec.replicas, Some(2));
    let conflict = deployments.apply("web", &ApplyOptions::new("two"), &fields(3)).await.unwrap_err();
    assert!(conflict.is_conflict());
    assert_eq!(conflict.status().unwrap().causes()[0].field, ".spec.replicas");
    let forced = deployments.apply("web", &ApplyOptions::new("two").force(true), &fields(3)).await.unwrap();
    assert_eq!(forced.spec.replicas, Some(3));
    let mut status = deployments.get("web", &GetOptions::default()).await.unwrap();
    status.status.get_or_insert_default().observed_generation = Some(1);
    let updated = deployments.update_status(&UpdateOptions::default(), &status).await.unwrap();
    assert_eq!(updated.status.unwrap().observed_generation, Some(1));
}

#[tokio::test]
async fn a_custom_resource_goes_the_same_way_as_json() {
    let client = or_skip!(client());
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.e2e.klient.invalid"},
        "spec": {
            "group": "e2e.klient.invalid", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}}},
            }}}],
        },
    }))
    .unwrap();
    let made = definitions.create(&CreateOptions::default(), &definition).await.unwrap();
    let schema = made.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    assert_eq!(schema.properties.as_ref().unwrap()["spec"].type_.as_deref(), Some("object"));
    wait_until_served(&definitions).await;

    let gvk = GroupVersionKind::new("e2e.klient.invalid", "v1", "Widget");
    let widgets = ApiResource::new(gvk, "widgets", Scope::Namespaced);
    let namespace = namespace(&client, "verbs-custom").await;
    let api = Api::dynamic(client.clone(), widgets.clone(), Target::Namespace(namespace));
    let widget = DynamicObject::new("w", &widgets).data(json!({"spec": {"size": 3}}));
    let made = api.create(&CreateOptions::default(), &widget).await.unwrap();
    assert_eq!(api.get("w", &GetOptions::default()).await.unwrap(), made);
    assert_eq!(api.list(&ListOptions::default()).await.unwrap().items, [made]);
    let invalid = DynamicObject::new("x", &widgets).data(json!({"spec": {"size": 0}}));
    assert!(api.create(&CreateOptions::default(), &invalid).await.unwrap_err().is_invalid());
    api.delete("w", &DeleteOptions::default()).await.unwrap();
}

/// A definition is served once its `Established` condition holds, and a moment later by every handler.
async fn wait_until_served(definitions: &Api<CustomResourceDefinition>) {
    let options = klient::WatchOptions::initial_events().field_selector("metadata.name=widgets.e2e.klient.invalid");
    let mut watch = definitions.watch(&options).await.unwrap();
    while let Some(event) = watch.next().await {
        let established = event.unwrap().object().is_some_and(|definition: &CustomResourceDefinition| {
            let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"))
        });
        if established {
            return;
        }
    }
    panic!("the watch ended before the definition was established");
}
