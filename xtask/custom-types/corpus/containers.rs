//! Lists, sets, maps and options.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque};

use super::derives::*;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Item {
    name: String,
    size: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Level {
    Low,
    High,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Documented {
    /// Not much.
    Low,
    /// A lot.
    High,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Data {
    A(String),
    B { size: i32 },
}

specs! {
    Lists ListsSpec "Lists" { a: Vec<String>, b: Vec<i64>, c: VecDeque<bool>, d: LinkedList<f64> }
    Arrays ArraysSpec "Arrays" { a: [i32; 3], b: [Item; 1] }
    Sets SetsSpec "Sets" { a: BTreeSet<String>, b: HashSet<i32> }
    TextMaps TextMapsSpec "TextMaps" { a: BTreeMap<String, String>, b: HashMap<String, i32> }
    StructMaps StructMapsSpec "StructMaps" { a: BTreeMap<String, Item> }
    NestedMaps NestedMapsSpec "NestedMaps" { a: BTreeMap<String, BTreeMap<String, Vec<Item>>> }
    EnumMaps EnumMapsSpec "EnumMaps" { a: BTreeMap<String, Level>, b: BTreeMap<String, Data> }
    NestedLists NestedListsSpec "NestedLists" { a: Vec<Vec<u8>>, b: Vec<Vec<Item>> }
    StructLists StructListsSpec "StructLists" { a: Vec<Item>, b: Box<[Item]> }
    EnumLists EnumListsSpec "EnumLists" { a: Vec<Level>, b: Vec<Data>, c: Vec<Documented> }
    Boxed BoxedSpec "Boxed" { a: Box<Item>, b: Box<i32>, c: Box<Level> }
    OptionalScalars OptionalScalarsSpec "OptionalScalars" { a: Option<i32>, b: Option<String>, c: Option<bool>, d: Option<f32> }
    OptionalStructs OptionalStructsSpec "OptionalStructs" { a: Option<Item>, b: Option<Box<Item>> }
    OptionalOptions OptionalOptionsSpec "OptionalOptions" { a: Option<Option<i32>>, b: Option<Option<Item>> }
    OptionalLists OptionalListsSpec "OptionalLists" { a: Option<Vec<String>>, b: Option<Vec<Item>> }
    OptionalMaps OptionalMapsSpec "OptionalMaps" { a: Option<BTreeMap<String, String>>, b: Option<BTreeMap<String, Item>> }
    OptionalEnums OptionalEnumsSpec "OptionalEnums" { a: Option<Level>, b: Option<Documented> }
    OptionalData OptionalDataSpec "OptionalData" { a: Option<Data>, b: Option<Box<Data>> }
    ListsOfOptions ListsOfOptionsSpec "ListsOfOptions" { a: Vec<Option<String>>, b: Vec<Option<Level>>, c: Vec<Option<Item>> }
    MapsOfOptions MapsOfOptionsSpec "MapsOfOptions" { a: BTreeMap<String, Option<String>>, b: BTreeMap<String, Option<Item>> }
    AnyMaps AnyMapsSpec "AnyMaps" { a: serde_json::Map<String, serde_json::Value>, b: BTreeMap<String, serde_json::Value> }
}
