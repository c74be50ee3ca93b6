//! Structs.

use super::derives::*;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Empty {}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmptyStrict {}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strict {
    a: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Newtype(String);

/// A name with a meaning.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct DocumentedNewtype(String);

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Transparent {
    inner: Vec<i32>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Pair<A, B> {
    first: A,
    second: Option<B>,
}

/// A struct that has documentation.
///
/// With a second paragraph.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Documented {
    /// A field that has documentation.
    a: String,
    /// Another one,
    /// on two lines.
    b: Option<i32>,
    c: Newtype,
    /// Its own words.
    d: DocumentedNewtype,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deep {
    first_level: Second,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Second {
    second_level: Third,
    also_here: Option<Third>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Third {
    the_end: Vec<Empty>,
}

specs! {
    NoFields NoFieldsSpec "NoFields" {}
    EmptyFields EmptyFieldsSpec "EmptyFields" { a: Empty, b: Option<Empty>, c: EmptyStrict }
    StrictFields StrictFieldsSpec "StrictFields" { a: Strict, b: Option<Strict> }
    #[serde(deny_unknown_fields)]
    StrictSpecs StrictSpecsSpec "StrictSpecs" { a: String }
    Newtypes NewtypesSpec "Newtypes" { a: Newtype, b: DocumentedNewtype, c: Transparent, d: Option<Newtype> }
    Generics GenericsSpec "Generics" { a: Pair<String, i32>, b: Pair<Vec<Newtype>, Strict> }
    Docs DocsSpec "Docs" {
        /// The words of the field hide those of the type.
        a: Documented,
        b: Documented,
        /// Optional words.
        c: Option<Documented>,
    }
    /// The specification has words as well.
    DocumentedSpecs DocumentedSpecsSpec "DocumentedSpecs" { a: String }
    #[serde(rename_all = "camelCase")]
    Camels CamelsSpec "Camels" { first_field: String, second_field: Option<i32> }
    #[serde(rename_all = "kebab-case")]
    Kebabs KebabsSpec "Kebabs" { first_field: String, second_field: Option<i32> }
    Renamed RenamedSpec "Renamed" {
        #[serde(rename = "other")]
        a: String,
        #[serde(alias = "second")]
        b: String,
        #[serde(rename(serialize = "c", deserialize = "c"))]
        d: String,
    }
    Keywords KeywordsSpec "Keywords" { r#type: String, r#match: Option<bool> }
    Nested NestedSpec "Nested" { deep: Deep }
}
