//! Derive macros for custom resources: `CustomResource`, `KubeSchema`, `Apply` and `Resource`.
//!
//! `klient` re-exports them, and has the code that the generated code calls (`klient::custom`). The attributes are those of
//! kube-derive 5. Invariant: whatever cannot work is an error at the span of the attribute that causes it, with a suggestion.

mod apply;
mod arguments;
mod crates;
mod custom_resource;
mod kube_schema;
mod resource;
mod suggestion;

use proc_macro::TokenStream;

/// Generates the root type of a custom resource from its specification.
///
/// The struct is the `spec`. The macro generates a struct named as `kind`, with `metadata`, `spec` and an optional `status`,
/// that implements `k8s_openapi`'s `Resource` and `Metadata`, serde's traits, `CustomResourceExt`, `HasSpec` and `HasStatus`.
///
/// ```text
/// use klient::{CustomResource, CustomResourceExt};
///
/// #[derive(CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// #[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
/// #[kube(printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"))]
/// pub struct ShopSpec {
///     size: u32,
/// }
/// ```
///
/// # Attributes
///
/// Each is written under `#[kube(...)]` or `#[klient(...)]`. Those with a star can be repeated.
///
/// | attribute | meaning |
/// |---|---|
/// | `group = "example.com"` | the API group; required |
/// | `version = "v1"` | the version; required |
/// | `kind = "Shop"` | the kind, and the name of the generated struct; required |
/// | `root = "ShopRoot"` | another name for the generated struct |
/// | `singular`, `plural` | the resource names; by default the kind in lower case, and its English plural |
/// | `shortname`\*, `category`\* | short names and categories, as in `kubectl get all` |
/// | `namespaced` | objects are in namespaces; without it, they are cluster-scoped |
/// | `no_spec` | the fields of the struct are at the root of the object instead of in `spec` |
/// | `status = "ShopStatus"` | the type of the status; adds the status subresource |
/// | `scale(spec_replicas_path = "...", status_replicas_path = "...", label_selector_path = "...")` | adds the scale subresource; needs `status` |
/// | `printcolumn(name = "...", type_ = "...", json_path = "...", description, format, priority)`\* | a column of `kubectl get` |
/// | `selectable = ".spec.size"`\* | a field that field selectors can name |
/// | `storage = false`, `served = false` | the version is not stored, or not served |
/// | `deprecated`, `deprecated = "warning"` | the version is deprecated |
/// | `annotation("key", "value")`\*, `label("key", "value")`\* | metadata of the definition and of objects created by `new` |
/// | `derive = "PartialEq"`\*, `attr = "..."`\* | derives and attributes of the generated struct |
/// | `doc = "..."` | documentation of the generated struct, and description of the schema |
/// | `schema = "derived"` | the schema comes from the types; `"manual"`: from a `JsonSchema` that you implement; `"disabled"`: there is none |
/// | `validation = "self.spec.size > 0"`\* | a CEL rule for the whole object; an expression of type `Rule` works too |
/// | `cel` | generates `validate_cel` and `validate_cel_update`, which evaluate the rules on the client; needs klient's feature `cel` |
/// | `crates(klient = "...", k8s_openapi = "...", schemars = "...", serde = "...", std = "...")` | other paths of crates; `kube`, `kube_core` and `serde_json` are accepted and not used |
#[proc_macro_derive(CustomResource, attributes(kube, klient))]
pub fn derive_custom_resource(input: TokenStream) -> TokenStream {
    expand(input, custom_resource::derive)
}

/// Implements `schemars::JsonSchema` with CEL rules and merge strategies, for a struct with named fields.
///
/// It replaces `#[derive(JsonSchema)]`. `#[x_kube(validation = ...)]` on the struct or a field adds a rule, and
/// `#[x_kube(merge_strategy = ...)]` on a field sets how server-side apply merges it. `#[x_kube(cel)]` on the struct generates
/// `validate_cel(value, old)`, which evaluates its rules on the client, with klient's feature `cel`.
///
/// ```text
/// #[derive(klient::KubeSchema, Clone, Debug, serde::Deserialize, serde::Serialize)]
/// #[x_kube(validation = ("self.min <= self.max", "min must not exceed max"))]
/// struct Limits {
///     min: i32,
///     #[x_kube(validation = Rule::new("self < 100").reason(Reason::FieldValueForbidden))]
///     max: i32,
///     #[x_kube(merge_strategy = ListMerge::Set)]
///     zones: Vec<String>,
/// }
/// ```
#[proc_macro_derive(KubeSchema, attributes(x_kube, schemars, validate))]
pub fn derive_kube_schema(input: TokenStream) -> TokenStream {
    expand(input, kube_schema::derive)
}

/// Generates the configuration of a struct for server-side apply, in which every field is optional.
///
/// For a struct `Counter` it generates `CounterApply`, with one method for each field. A struct that derives `CustomResource` as
/// well gets the configuration of its kind: `ShopApply` for `Shop`. Names are those of serde.
///
/// ```text
/// #[derive(CustomResource, Apply, KubeSchema, Clone, Debug, serde::Deserialize, serde::Serialize)]
/// #[kube(group = "example.com", version = "v1", kind = "Shop", namespaced)]
/// pub struct ShopSpec {
///     size: u32,
///     #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
///     counters: Vec<Counter>,
/// }
///
/// #[derive(Apply, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// pub struct Counter {
///     name: String,
///     clerk: Option<String>,
/// }
///
/// let shop = ShopApply::new("corner", "default").spec(|spec| spec.counter("left", |counter| counter.clerk("Ann")));
/// ```
///
/// | field | method |
/// |---|---|
/// | a number, boolean, string, time or quantity | `size(3)` sets it |
/// | a struct that derives `Apply` | `owner(\|owner\| owner.name("Ann"))` changes it |
/// | a list with merge keys | `counter("left", \|counter\| ...)` changes the item with this key, or adds it |
/// | a list that is a set | `tags(["a"])` adds items |
/// | another list | `tags(["a"])` sets all items |
/// | a map | `zones([("a", 1)])` adds entries; `zone("a", \|zone\| ...)` if its values derive `Apply`; with `MapMerge::Atomic` it sets all entries |
///
/// | attribute of a field | meaning |
/// |---|---|
/// | `#[apply(value)]` | the value is set whole: for enums, and types of other crates |
/// | `#[apply(with = "klient_apply::core::v1::PodTemplateSpecApply")]` | the type of the configuration |
/// | `#[apply(method = "...")]` | another name for the method |
/// | `#[apply(skip)]` | no method |
///
/// Types are known by their names: a derive does not see more. `Condition`, `IntOrString`, `Quantity`, `Time`, `Value` and similar types are set
/// whole. If a struct of yours has such a name, `with` names its configuration.
///
/// On the struct: `#[apply(name = "...")]` names the configuration, `#[apply(status = "value")]` sets the status of a kind whole, and
/// `#[apply(crates(...))]` has other paths of crates.
#[proc_macro_derive(Apply, attributes(apply, x_kube))]
pub fn derive_apply(input: TokenStream) -> TokenStream {
    expand(input, apply::derive)
}

/// Implements `k8s_openapi`'s `Resource` and `Metadata` for a struct that represents an existing kind.
///
/// The struct has a field `metadata: ObjectMeta` and those other fields of the kind that it needs.
///
/// ```text
/// #[derive(klient::Resource, Clone, Debug, serde::Deserialize, serde::Serialize)]
/// #[resource(inherit = "k8s_openapi::api::core::v1::ConfigMap")]
/// struct Settings {
///     metadata: ObjectMeta,
///     data: BTreeMap<String, String>,
/// }
/// ```
///
/// A struct with one unnamed field adapts a type of another crate, such as one that kube-derive generated:
///
/// ```text
/// #[derive(klient::Resource, Clone, Debug, serde::Deserialize, serde::Serialize)]
/// #[serde(transparent)]
/// #[resource(group = "example.com", version = "v1", kind = "Shop", plural = "shops", namespaced)]
/// struct Shop(other_crate::Shop);
/// ```
#[proc_macro_derive(Resource, attributes(resource))]
pub fn derive_resource(input: TokenStream) -> TokenStream {
    expand(input, resource::derive)
}

fn expand(input: TokenStream, derive: fn(&syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    let expanded = syn::parse(input).and_then(|input| derive(&input));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
