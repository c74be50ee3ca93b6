//! CEL in the embedded server: policies with parameters and the authorizer, match conditions, and expressions that cost too much.

use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
            ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
        },
        core::v1::ConfigMap,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{
    Api, Client, Error, Resource,
    client::DynamicClient,
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

async fn start() -> (ApiServer, Client) {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    (server, client)
}

async fn create<K>(client: &Client, object: Value) -> Result<K, Error>
where
    K: Resource + k8s_openapi::Resource<Scope = k8s_openapi::ClusterResourceScope>,
{
    Api::<K>::cluster(client.clone()).create(&serde_json::from_value(object).unwrap()).await
}

fn map(name: &str, data: &Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

fn rules(resource: &str) -> Value {
    json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}]})
}

async fn bind(client: &Client, spec: Value) {
    let binding = json!({"metadata": {"name": "b"}, "spec": spec});
    create::<ValidatingAdmissionPolicyBinding>(client, binding).await.unwrap();
}

#[tokio::test]
async fn policy_reads_each_of_its_parameters() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for (name, max) in [("loose", "9"), ("strict", "3")] {
        let limit = json!({"metadata": {"name": name, "labels": {"limit": "yes"}}, "data": {"max": max}});
        maps.create(&serde_json::from_value(limit).unwrap()).await.unwrap();
    }
    let validation = json!({"expression": "int(object.data.size) <= int(params.data.max)", "messageExpression": "'at most ' + string(params.data.max)"});
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let spec = json!({"matchConstraints": rules("configmaps"), "paramKind": kind, "validations": [validation]});
    create::<ValidatingAdmissionPolicy>(&client, json!({"metadata": {"name": "p"}, "spec": spec})).await.unwrap();
    let reference = json!({"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Deny"});
    bind(&client, json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": reference})).await;
    maps.create(&map("small", &json!({"size": "3"}))).await.unwrap();
    let error = maps.create(&map("large", &json!({"size": "4"}))).await.unwrap_err();
    assert!(error.to_string().contains("denied request: at most 3"), "{error}");
    // A policy without bindings refuses nothing.
    Api::<ValidatingAdmissionPolicyBinding>::cluster(client.clone()).delete("b").await.unwrap();
    maps.create(&map("large", &json!({"size": "4"}))).await.unwrap();
}

#[tokio::test]
async fn policy_asks_the_authorizer() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let expression = "authorizer.group('').resource('pods').namespace(request.namespace).check('delete').allowed() \
                      && authorizer.requestResource.check('update').allowed() && object.data.a != 'x'";
    let validation = json!({"expression": expression, "message": "not allowed"});
    let spec = json!({"matchConstraints": rules("configmaps"), "validations": [validation]});
    create::<ValidatingAdmissionPolicy>(&client, json!({"metadata": {"name": "p"}, "spec": spec})).await.unwrap();
    bind(&client, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    maps.create(&map("a", &json!({"a": "y"}))).await.unwrap();
    let error = maps.create(&map("b", &json!({"a": "x"}))).await.unwrap_err();
    assert!(error.to_string().contains("denied request: not allowed"), "{error}");
}

#[tokio::test]
async fn policy_that_costs_too_much_is_stopped() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let many = "[0,1,2,3,4,5,6,7,8,9]";
    let bomb = (0..7).fold("true".to_owned(), |inner, level| format!("{many}.all(x{level}, {inner})"));
    let spec = json!({"matchConstraints": rules("configmaps"), "validations": [{"expression": bomb}]});
    create::<ValidatingAdmissionPolicy>(&client, json!({"metadata": {"name": "p"}, "spec": spec})).await.unwrap();
    bind(&client, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    let error = maps.create(&map("a", &json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("actual cost limit exceeded"), "{error}");
}

#[tokio::test]
async fn mutating_policy_changes_what_a_validating_one_sees() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let expression = "Object{data: {'size': '1'}}";
    let mutations = json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]);
    let spec = json!({"matchConstraints": rules("configmaps"), "mutations": mutations, "reinvocationPolicy": "Never"});
    create::<MutatingAdmissionPolicy>(&client, json!({"metadata": {"name": "p"}, "spec": spec})).await.unwrap();
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    create::<MutatingAdmissionPolicyBinding>(&client, binding).await.unwrap();
    let spec =
        json!({"matchConstraints": rules("configmaps"), "validations": [{"expression": "object.data.size == '1'"}]});
    create::<ValidatingAdmissionPolicy>(&client, json!({"metadata": {"name": "p"}, "spec": spec})).await.unwrap();
    bind(&client, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    let made = maps.create(&map("a", &json!({"size": "9"}))).await.unwrap();
    assert_eq!(made.data.unwrap()["size"], "1");
}

#[tokio::test]
async fn webhook_is_called_only_if_its_conditions_hold() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let hook = json!({
        "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        // Nothing listens there: a call fails.
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "matchConditions": [{"name": "called", "expression": "object.metadata.name != 'quiet' && object.metadata.name != 'broken' || object.data.nope == ''"}],
    });
    let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [hook]});
    create::<ValidatingWebhookConfiguration>(&client, configuration).await.unwrap();
    let error = maps.create(&map("loud", &json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("failed calling webhook"), "{error}");
    let error = maps.create(&map("broken", &json!({"a": "b"}))).await.unwrap_err();
    assert!(error.is_forbidden() && error.to_string().contains("resulted in error: no such key: nope"), "{error}");
    maps.create(&map("quiet", &json!({"nope": "x"}))).await.unwrap();
}

#[tokio::test]
async fn rule_that_costs_too_much_at_run_time_is_an_error() {
    let (_server, client) = start().await;
    let rule = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
    let list = json!({"type": "array", "maxItems": 180, "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
    let schema = json!({"type": "object", "properties": {"list": list}});
    let names = json!({"plural": "lists", "kind": "Lists"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "lists.example.com"}, "spec": spec});
    let refused = create::<CustomResourceDefinition>(&client, definition.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("estimated rule cost exceeds budget"), "{refused}");
    let mut definition = definition;
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["list"]["maxItems"] = json!(100);
    create::<CustomResourceDefinition>(&client, definition).await.unwrap();
    let kind = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Lists"), "lists", Scope::Namespaced);
    let lists = DynamicClient::new(client).in_namespace(&kind, "default");
    let object = |length: i64| {
        let items: Vec<i64> = (0..length).collect();
        DynamicObject::new("a", &kind).within("default").data(json!({"list": items}))
    };
    let error = lists.create(&object(100)).await.unwrap_err();
    assert!(error.to_string().contains("call cost exceeds limit for rule"), "{error}");
    lists.create(&object(10)).await.unwrap();
}
