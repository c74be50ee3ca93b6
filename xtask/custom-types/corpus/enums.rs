//! Enums.

use super::derives::*;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Unit {
    A,
    B,
    C,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum OneUnit {
    A,
}

/// Words about the enum.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentedUnit {
    /// The first.
    FirstOne,
    /// The second.
    SecondOne,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum PartlyDocumented {
    A,
    /// Words.
    B,
    C,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum WithOther {
    A,
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum External {
    FirstOne(String),
    SecondOne { size: i32 },
    ThirdOne(Inner),
    FourthOne {},
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Inner {
    name: String,
}

/// Words about the enum.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum DocumentedExternal {
    /// A text.
    Text(String),
    /// A number.
    Number {
        /// The number itself.
        value: i32,
    },
    Plain(Inner),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum OneExternal {
    Only(Inner),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
pub enum OneInternal {
    Only { name: String },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", content = "value")]
pub enum OneAdjacent {
    Only(Inner),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Untagged {
    ByName { name: String },
    ByNumber { number: i32, exact: Option<bool> },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum UntaggedShared {
    Short { name: String },
    Long { name: String, number: i32 },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum UntaggedStructs {
    A(Inner),
    B { other: Unit },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Outer {
    Choice(External),
    Level(Unit),
    Either(Untagged),
    Many(Vec<DocumentedExternal>),
    Maybe(Option<Inner>),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub enum Strict {
    A { x: i32 },
    B { y: i32 },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ObjectOrScalar {
    Object { name: String },
    Scalar(String),
}

specs! {
    Units UnitsSpec "Units" { a: Unit, b: OneUnit, c: WithOther }
    DocumentedUnits DocumentedUnitsSpec "DocumentedUnits" {
        a: DocumentedUnit,
        /// Words about the field.
        b: DocumentedUnit,
        c: PartlyDocumented,
        d: Option<PartlyDocumented>,
    }
    Externals ExternalsSpec "Externals" { a: External, b: Option<External>, c: Vec<External> }
    DocumentedExternals DocumentedExternalsSpec "DocumentedExternals" {
        a: DocumentedExternal,
        /// Words about the field.
        b: Option<DocumentedExternal>,
    }
    OneVariant OneVariantSpec "OneVariant" { a: OneExternal, b: OneInternal, c: OneAdjacent }
    Untaggeds UntaggedsSpec "Untaggeds" { a: Untagged, b: Option<Untagged>, c: Vec<Untagged> }
    UntaggedSharing UntaggedSharingSpec "UntaggedSharing" { a: UntaggedShared, b: UntaggedStructs }
    NestedEnums NestedEnumsSpec "NestedEnums" { a: Outer, b: Vec<Option<Outer>> }
    StrictEnums StrictEnumsSpec "StrictEnums" { a: Strict }
    ObjectOrScalars ObjectOrScalarsSpec "ObjectOrScalars" { a: ObjectOrScalar }
    Results ResultsSpec "Results" { a: Result<String, i32> }
}
