//! Configurations of a derived kind, applied by two managers. The tests run it on the embedded server and on the real one.

use std::collections::BTreeMap;

use klient::{
    Api, Apply, Client, CustomResource, CustomResourceExt as _, KubeSchema, custom::install, status::Status,
    wire::ManagedFields,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, Apply, KubeSchema, Clone, Debug, Default, Deserialize, Serialize)]
#[kube(group = "apply.klient.invalid", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ShopSpec {
    /// The number of counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opening_hours: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Box<Person>>,
    #[apply(value)]
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into(), "floorNumber".into()]))]
    doors: Vec<Door>,
    #[x_kube(merge_strategy = ListMerge::Set)]
    tags: Vec<String>,
    aisles: Vec<i32>,
    prices: BTreeMap<String, i64>,
    zones: BTreeMap<String, Zone>,
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    #[serde(skip_serializing_if = "Option::is_none")]
    sign: Option<Sign>,
    #[serde(flatten)]
    address: Address,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind_of_shop: Option<String>,
    #[serde(skip)]
    opened_before: bool,
}

#[derive(Apply, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Person {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Source {
    Farm { name: String },
    Market { stall: u32 },
}

#[derive(Apply, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Door {
    name: String,
    floor_number: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    color: Option<String>,
}

#[derive(Apply, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Zone {
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Sign {
    text: String,
}

#[derive(Apply, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Address {
    #[serde(skip_serializing_if = "Option::is_none")]
    street: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<String>,
}

#[derive(Apply, KubeSchema, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ShopStatus {
    open: bool,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[apply(value)]
    conditions: Vec<ShopCondition>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ShopCondition {
    r#type: String,
    status: String,
}

fn named(namespace: &str) -> ShopApply {
    ShopApply::new("corner", namespace)
}

/// The fields of the first manager, and of the second.
fn both(namespace: &str) -> (ShopApply, ShopApply) {
    let first = named(namespace).labels([("app", "shop")]).spec(|spec| {
        spec.size(3)
            .opening_hours("9-17")
            .owner(|owner| owner.name("Ann"))
            .source(Source::Market { stall: 7 })
            .door("front", 0, |door| door.width(2))
            .tags(["fruit"])
            .aisles([1, 2])
            .prices([("apple", 3)])
            .zone("north", |zone| zone.weight(1))
            .sign(Sign { text: "Open".to_owned() })
            .address(|address| address.street("Main"))
            .kind_of_shop("market")
    });
    let second = named(namespace).annotations([("note", "x")]).spec(|spec| {
        spec.door("front", 0, |door| door.color("red"))
            .door("front", 1, |door| door.width(1))
            .owner(|owner| owner.phone("1"))
            .tags(["bread"])
            .prices([("bread", 2)])
            .zone("north", |zone| zone.note("cold"))
            .address(|address| address.city("Bern"))
    });
    (first, second)
}

/// Installs the kind, and has two managers apply parts of one object.
pub(crate) async fn two_managers_share_an_object(client: &Client, namespace: &str) {
    let shops = shops(client, namespace).await;
    let (first, second) = both(namespace);
    shops.apply(&first).manager("first").await.unwrap();
    let live = shops.apply(&second).manager("second").await.unwrap();
    let spec = serde_json::to_value(&live.spec).unwrap();
    let doors = json!([{"name": "front", "floorNumber": 0, "width": 2, "color": "red"}, {"name": "front", "floorNumber": 1, "width": 1}]);
    let expected = json!({"size": 3, "openingHours": "9-17", "owner": {"name": "Ann", "phone": "1"},
        "source": {"type": "market", "stall": 7}, "doors": doors, "tags": ["fruit", "bread"], "aisles": [1, 2],
        "prices": {"apple": 3, "bread": 2}, "zones": {"north": {"weight": 1, "note": "cold"}}, "sign": {"text": "Open"},
        "street": "Main", "city": "Bern", "type": "market"});
    assert_eq!(spec, expected);

    // What a manager applied is what it gets back, and can be applied again.
    for (manager, applied) in [("first", &first), ("second", &second)] {
        let extracted = ShopApply::extract(&live, manager).unwrap();
        assert_eq!(extracted.to_value(), applied.to_value(), "{manager}");
        assert!(shops.apply(&extracted).manager(manager).if_changed(&live).await.unwrap().is_none());
    }

    // A field that a manager no longer applies is removed. Those of the other manager stay.
    let less = named(namespace).spec(|spec| {
        spec.opening_hours("9-17").owner(|owner| owner.name("Ann")).prices([("pear", 4)]).door("side", 0, |door| door)
    });
    let live = shops.apply(&less).manager("first").if_changed(&live).await.unwrap().expect("the configuration differs");
    let spec = serde_json::to_value(&live.spec).unwrap();
    let doors = [
        json!({"name": "front", "floorNumber": 0, "color": "red"}),
        json!({"name": "front", "floorNumber": 1, "width": 1}),
        json!({"name": "side", "floorNumber": 0}),
    ];
    for door in &doors {
        assert!(spec["doors"].as_array().unwrap().contains(door), "{spec}");
    }
    assert_eq!(spec["doors"].as_array().unwrap().len(), 3);
    assert_eq!((&spec["size"], &spec["tags"], &spec["street"]), (&Value::Null, &json!(["bread"]), &Value::Null));
    assert_eq!(spec["prices"], json!({"pear": 4, "bread": 2}));
    assert_eq!(spec["zones"], json!({"north": {"note": "cold"}}));
    assert_eq!(live.metadata.labels, None);

    shops.delete("corner").await.unwrap();
}

/// Another manager's field is a conflict, which has the field and the manager, and can be forced.
pub(crate) async fn conflicts_are_values(client: &Client, namespace: &str) {
    let shops = shops(client, namespace).await;
    let hours = |hours: &str| ShopApply::new("disputed", namespace).spec(|spec| spec.opening_hours(hours).tags(["a"]));
    shops.apply(&hours("9-17")).manager("first").await.unwrap();
    let error = shops.apply(&hours("8-16")).manager("second").await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let conflicts = error.status().map(Status::field_conflicts).unwrap();
    let found: Vec<(&str, &str)> = conflicts.iter().map(|conflict| (&*conflict.field, &*conflict.manager)).collect();
    assert_eq!(found, [(".spec.openingHours", "first")]);
    let live = shops.apply(&hours("8-16")).manager("second").force().await.unwrap();
    assert_eq!(live.spec.opening_hours.as_deref(), Some("8-16"));
    // The field is no longer the first manager's.
    let rest = ShopApply::new("disputed", namespace).spec(|spec| spec.tags(["a"]));
    assert_eq!(ShopApply::extract(&live, "first").unwrap(), rest);
    shops.delete("disputed").await.unwrap();
}

/// The status has owners of its own.
pub(crate) async fn status_is_applied_by_condition(client: &Client, namespace: &str) {
    let shops = shops(client, namespace).await;
    let named = || ShopApply::new("status", namespace);
    shops.apply(&named().spec(|spec| spec.size(1))).manager("first").await.unwrap();
    let condition = |name: &str| ShopCondition { r#type: name.to_owned(), status: "True".to_owned() };
    let ready = named().status(|status| status.open(true).conditions([condition("Ready")]));
    shops.status().apply(&ready).manager("first").await.unwrap();
    let stocked = named().status(|status| status.conditions([condition("Stocked"), condition("Stocked")]));
    let live = shops.status().apply(&stocked).manager("second").await.unwrap();
    let status = live.status.clone().unwrap();
    let types: Vec<&str> = status.conditions.iter().map(|condition| &*condition.r#type).collect();
    assert_eq!((status.open, types), (true, vec!["Ready", "Stocked"]));
    assert_eq!(ShopApply::extract_status(&live, "first").unwrap().to_value(), ready.to_value());
    assert_eq!(ShopApply::extract(&live, "first").unwrap(), named().spec(|spec| spec.size(1)));
    shops.delete("status").await.unwrap();
}

/// Returns the API of an installed kind, whose responses keep managed fields.
async fn shops(client: &Client, namespace: &str) -> Api<Shop> {
    install(client, Shop::crd()).await.unwrap();
    Api::namespaced(client.to_builder().managed_fields(ManagedFields::Keep).build(), namespace)
}
