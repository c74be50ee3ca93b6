//! Webhooks in process: the embedded API server calls klient's handlers.

mod bad_input;
mod certificates;

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::api::{
    authentication::v1::{TokenReviewSpec, TokenReviewStatus},
    core::v1::{ConfigMap, Pod},
};
use klient::{
    Api, BoxError, Client, CustomResource, Patch,
    custom::{Spoke, Versions},
    metrics::Registry,
    object::{DynamicObject, PartialObjectMeta},
    resource::ApiResource,
    webhook::{self, FailurePolicy, Mutated, Operation, Verdict, Webhooks, authenticate, default, mutate, validate},
};
use klient_apiserver::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Starts a server whose webhooks are those of `webhooks`, and returns a client.
pub(super) async fn started(webhooks: &Webhooks) -> (ApiServer, Client) {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    server.webhook_service("shop/webhooks", webhooks.clone().into_service());
    webhooks.register(&client, None).await.unwrap();
    (server, client)
}

pub(super) fn shop() -> Webhooks {
    Webhooks::new("shop").service("shop", "webhooks").registry(Registry::new())
}

/// Sends one request through a webhook with these metrics.
pub(super) async fn observe_one(registry: &Registry) {
    let hooks = Webhooks::new("shop").service("shop", "webhooks").registry(registry.clone());
    let (_server, client) = started(&hooks.hook(validate::<ConfigMap>(has_color))).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&map("a", json!({"color": "blue"}))).await.unwrap();
}

pub(super) fn map(name: &str, data: Value) -> ConfigMap {
    let mut map = json!({"metadata": {"name": name}});
    map["data"] = data;
    serde_json::from_value(map).unwrap()
}

async fn has_color(request: webhook::Request<ConfigMap>) -> Verdict {
    let color = request.object.and_then(|map| map.data?.remove("color"));
    match color.as_deref() {
        Some("blue") => Verdict::allow().warn("blue is out of fashion"),
        Some(color) => Verdict::deny(format!("{color} is not blue")).code(422).reason("Invalid"),
        None => Verdict::deny("no color"),
    }
}

#[tokio::test]
async fn validating_handler_decides_with_code_and_message() {
    let (_server, client) = started(&shop().hook(validate::<ConfigMap>(has_color))).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&map("a", json!({"color": "blue"}))).await.unwrap();
    let refused = maps.create(&map("b", json!({"color": "red"}))).await.unwrap_err();
    let status = refused.status().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.message, "admission webhook \"validate.configmaps.core\" denied the request: red is not blue");
    let refused = maps.create(&map("b", json!({}))).await.unwrap_err();
    assert!(refused.is_forbidden());
    // Deletes are not among the operations.
    maps.delete("a").await.unwrap();
}

#[tokio::test]
async fn request_has_user_operation_objects_and_dry_run() {
    async fn check(request: webhook::Request<ConfigMap>) -> Result<Verdict, BoxError> {
        let old = request.old_object.as_ref().and_then(|map| map.data.as_ref()?.get("n").cloned());
        let new = request.object.as_ref().and_then(|map| map.data.as_ref()?.get("n").cloned());
        let user = request.user.username.unwrap_or_default();
        let kind = request.options["kind"].as_str().unwrap_or_default();
        Ok(Verdict::deny(format!(
            "{:?} {}/{} {old:?} {new:?} {user} {kind} {}",
            request.operation, request.namespace, request.name, request.dry_run
        )))
    }
    let hooks = shop().hook(validate::<ConfigMap>(check).on([Operation::Update, Operation::Delete]));
    let (_server, client) = started(&hooks).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&map("a", json!({"n": "1"}))).await.unwrap();
    let message = |error: klient::Error| error.status().unwrap().message.split_once("request: ").unwrap().1.to_owned();
    let patch = Patch::merge(json!({"data": {"n": "2"}}));
    assert_eq!(
        message(maps.patch("a", patch).dry_run().await.unwrap_err()),
        "Update default/a Some(\"1\") Some(\"2\") kubernetes-admin UpdateOptions true"
    );
    assert_eq!(
        message(maps.delete("a").await.unwrap_err()),
        "Delete default/a Some(\"1\") None kubernetes-admin DeleteOptions false"
    );
}

#[tokio::test]
async fn mutation_keeps_fields_that_the_type_does_not_know() {
    let hooks = shop().hook(mutate::<PartialObjectMeta<ConfigMap>>(
        async |request: webhook::Request<PartialObjectMeta<ConfigMap>>| {
            let Some(mut object) = request.object else { return Ok(Mutated::unchanged()) };
            object.metadata.labels.get_or_insert_default().insert("seen".to_owned(), "yes".to_owned());
            Ok::<_, BoxError>(Mutated::new(object))
        },
    ));
    let (_server, client) = started(&hooks).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let made = maps.create(&map("a", json!({"k": "v"}))).await.unwrap();
    assert_eq!(made.metadata.labels.unwrap()["seen"], "yes");
    assert_eq!(made.data.unwrap()["k"], "v");
}

#[tokio::test]
async fn dynamic_object_is_mutated() {
    let resource = ApiResource::of::<ConfigMap>();
    let hook = mutate::<DynamicObject>(async |request: webhook::Request<DynamicObject>| {
        let mut object = request.object.ok_or("no object")?;
        object.data["data"]["added"] = json!("yes");
        Ok::<_, BoxError>(object)
    });
    let (_server, client) = started(&shop().hook(hook.resource(&resource))).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let made = maps.create(&map("a", json!({"k": "v"}))).await.unwrap();
    assert_eq!(
        made.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("added".to_owned(), "yes".to_owned()), ("k".to_owned(), "v".to_owned())]
    );
}

#[tokio::test]
async fn failed_handler_follows_the_failure_policy() {
    async fn broken(_: webhook::Request<ConfigMap>) -> Verdict {
        panic!("out of paint")
    }
    async fn failing(_: webhook::Request<ConfigMap>) -> Result<Verdict, BoxError> {
        Err("no database".into())
    }
    let maps = async |hooks: Webhooks| {
        let (_server, client) = started(&hooks).await;
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        maps.create(&map("a", json!({}))).await.map_err(|error| error.status().unwrap().message.clone())
    };
    let refused = maps(shop().hook(validate::<ConfigMap>(broken))).await.unwrap_err();
    assert!(refused.contains("the handler panicked: out of paint"), "{refused}");
    let refused = maps(shop().hook(validate::<ConfigMap>(failing))).await.unwrap_err();
    assert!(refused.contains("an error on the server (\"no database\")"), "{refused}");
    let ignored = validate::<ConfigMap>(broken).failure_policy(FailurePolicy::Ignore);
    maps(shop().hook(ignored)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn handler_that_hangs_responds_before_the_time_limit() {
    let hook = validate::<ConfigMap>(|_: webhook::Request<ConfigMap>| std::future::pending::<Verdict>());
    let (_server, client) = started(&shop().hook(hook.timeout(Duration::from_secs(2)))).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let refused = maps.create(&map("a", json!({}))).await.unwrap_err();
    let message = &refused.status().unwrap().message;
    assert!(message.contains("the handler did not respond within 1.9s"), "{message}");
}

mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "klient.invalid", version = "v1", kind = "Shop", namespaced)]
    pub(crate) struct ShopSpec {
        pub(crate) square_meters: i64,
        pub(crate) color: Option<String>,
    }
}

mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "klient.invalid", version = "v1beta1", kind = "Shop", namespaced)]
    pub(crate) struct ShopSpec {
        pub(crate) size: i64,
        pub(crate) color: Option<String>,
    }
}

impl Spoke for v1beta1::Shop {
    type Hub = v1::Shop;

    fn into_hub(self) -> Result<v1::Shop, BoxError> {
        let v1beta1::ShopSpec { size, color } = self.spec;
        if size < 0 {
            return Err("a shop cannot be that small".into());
        }
        Ok(v1::Shop { metadata: self.metadata, spec: v1::ShopSpec { square_meters: size, color } })
    }

    fn from_hub(hub: v1::Shop) -> Result<Self, BoxError> {
        let v1::ShopSpec { square_meters, color } = hub.spec;
        Ok(Self { metadata: hub.metadata, spec: v1beta1::ShopSpec { size: square_meters, color } })
    }
}

#[tokio::test]
async fn derived_type_is_defaulted_validated_and_converted() {
    let hooks = shop()
        .convert(Versions::of::<v1::Shop>().and::<v1beta1::Shop>())
        .hook(default::<v1::Shop>(|shop: &mut v1::Shop| {
            shop.spec.color.get_or_insert_with(|| "blue".to_owned());
        }))
        .hook(validate::<v1::Shop>(async |request: webhook::Request<v1::Shop>| {
            match request.object.is_some_and(|shop| shop.spec.square_meters > 100) {
                true => Verdict::deny("too large"),
                false => Verdict::allow(),
            }
        }));
    let (_server, client) = started(&hooks).await;
    let shops: Api<v1::Shop> = Api::namespaced(client.clone(), "default");
    let old: Api<v1beta1::Shop> = Api::namespaced(client, "default");
    let mut made = v1beta1::Shop::new("a", v1beta1::ShopSpec { size: 40, color: None });
    let stored = old.create(&made).await.unwrap();
    assert_eq!((stored.spec.size, stored.spec.color.as_deref()), (40, Some("blue")));
    assert_eq!(shops.get("a").await.unwrap().spec.square_meters, 40);
    assert_eq!(old.list().await.unwrap().items[0].spec.size, 40);
    made = v1beta1::Shop::new("b", v1beta1::ShopSpec { size: 400, color: None });
    let refused = old.create(&made).await.unwrap_err();
    assert!(refused.status().unwrap().message.ends_with("denied the request: too large"));
    made.spec.size = -1;
    let refused = old.create(&made).await.unwrap_err();
    assert!(refused.status().unwrap().message.contains("a shop cannot be that small"), "{refused:?}");
}

#[tokio::test]
async fn calls_with_borrowed_arguments_can_be_spawned() {
    fn sendable<T>(future: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
        future
    }
    let (hooks, server) = (shop(), ApiServer::start().await.unwrap());
    let client = Client::from_service(server.service());
    let (registered, handled) =
        (sendable(hooks.register(&client, None)), sendable(hooks.handle(Request::new(Bytes::new()))));
    registered.await.unwrap();
    assert_eq!(handled.await.status(), 404);
    let served = webhook::WebhookServer::new(client, hooks).listen(([127, 0, 0, 1], 0));
    sendable(served.run_until(std::future::ready(()))).await.unwrap();
}

#[tokio::test]
async fn registrations_are_printed_as_yaml() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
    let selector =
        LabelSelector { match_labels: Some([("a".to_owned(), "b".to_owned())].into()), match_expressions: None };
    let hook = validate::<Pod>(async |_: webhook::Request<Pod>| Verdict::allow());
    let hook = hook
        .on([Operation::Create])
        .subresource("status")
        .objects(selector)
        .when("named", "object.metadata.name != ''");
    let yaml = shop().hook(hook).convert(Versions::of::<v1::Shop>().and::<v1beta1::Shop>()).to_yaml(Some("PEM"));
    for expected in [
        "kind: ValidatingWebhookConfiguration",
        "name: validate.pods.core",
        "path: /validate--v1-pod",
        "pods/status",
        "expression: object.metadata.name != ''",
        "caBundle: UEVN",
        "kind: CustomResourceDefinition",
        "path: /convert",
        "failurePolicy: Fail",
        "timeoutSeconds: 10",
        "a: b",
    ] {
        assert!(yaml.contains(expected), "{expected} is not in\n{yaml}");
    }
}

#[tokio::test]
async fn token_review_is_answered() {
    let hooks = shop().access(
        "/login",
        authenticate(async |spec: TokenReviewSpec| {
            let authenticated = Some(spec.token == "secret");
            Ok::<_, BoxError>(TokenReviewStatus { authenticated, ..TokenReviewStatus::default() })
        }),
    );
    let ask = async |token: &str| {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let request = Request::post("/login").header("content-type", "application/json");
        let response: Response<Bytes> = hooks.handle(request.body(Bytes::from(review.to_string())).unwrap()).await;
        serde_json::from_slice::<Value>(response.body()).unwrap()
    };
    assert_eq!(ask("secret").await["status"]["authenticated"], true);
    assert_eq!(ask("other").await["status"]["authenticated"], false);
}
