//! The generated code: the root struct, its traits, and its definition.
//!
//! The code is short: whatever does not depend on the type is in `klient::custom`, where it is compiled once.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Ident, Path};

use super::settings::{SchemaMode, Settings};

pub(super) fn generate(settings: &Settings, input: &DeriveInput) -> TokenStream {
    let names =
        Names { settings, spec: &input.ident, root: Ident::new(&settings.root().value(), settings.root().span()) };
    let root = names.root_struct(input);
    let serialize = if settings.no_spec.is_some() { names.serialize_flat() } else { names.serialize() };
    let traits = names.traits();
    let definition = names.definition();
    let rules = settings.cel.map(|_| names.rules());
    quote! {
        #root
        #serialize
        #traits
        #definition
        #rules
    }
}

struct Names<'a> {
    settings: &'a Settings,
    spec: &'a Ident,
    root: Ident,
}

impl Names<'_> {
    fn object_meta(&self) -> TokenStream {
        let k8s_openapi = &self.settings.crates.k8s_openapi;
        quote!(#k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta)
    }

    fn root_struct(&self, input: &DeriveInput) -> TokenStream {
        let Self { settings, spec, root } = self;
        let crates = &settings.crates;
        let (klient, schemars, serde, std) = (&crates.klient, &crates.schemars, &crates.serde, &crates.std);
        let visibility = &input.vis;
        let meta = self.object_meta();
        let is_derived = settings.schema == SchemaMode::Derived;

        let default_doc = || format!(" Auto-generated derived type for {spec} via `CustomResource`");
        let doc = settings.doc.as_ref().map_or_else(default_doc, syn::LitStr::value);
        let has_default = settings.derives.iter().any(|(text, _)| text.value() == "Default");
        let derives: Vec<&Path> =
            settings.derives.iter().filter(|(text, _)| text.value() != "Default").map(|(_, path)| path).collect();
        let has_rules = !settings.validations.is_empty();
        let schema_derive = match (is_derived, has_rules) {
            (false, _) => quote!(),
            (true, true) => quote!(#klient::KubeSchema),
            (true, false) => quote!(#schemars::JsonSchema),
        };
        let rules = (is_derived && has_rules).then(|| {
            let rules = settings.validations.iter().map(|(_, rule)| quote!(validation = #rule));
            let crates = crates.for_kube_schema();
            quote!(#[x_kube(#(#rules,)* #crates)])
        });
        let attributes = &settings.attributes;
        let serde_attribute = crates.serde_attribute();
        let schemars_attribute = is_derived.then(|| crates.schemars_attribute());
        let skip_in_schema = is_derived.then(|| quote!(#[schemars(skip)]));
        let flatten = settings.no_spec.map(|_| quote!(#[serde(flatten)]));
        let status_field = settings.status.as_ref().map(|status| {
            quote! {
                #[serde(skip_serializing_if = "Option::is_none")]
                #visibility status: #std::option::Option<#status>,
            }
        });
        let no_status = settings.status.as_ref().map(|_| quote!(status: #std::option::Option::None,));
        let default = has_default.then(|| {
            quote! {
                #[automatically_derived]
                impl #std::default::Default for #root {
                    fn default() -> Self {
                        Self {
                            metadata: #std::default::Default::default(),
                            spec: #std::default::Default::default(),
                            #no_status
                        }
                    }
                }
            }
        });
        let (annotations, labels) = (pairs(&settings.annotations), pairs(&settings.labels));
        quote! {
            #[doc = #doc]
            #[allow(missing_docs)]
            #[derive(#serde::Deserialize, Clone, Debug, #(#derives,)* #schema_derive)]
            #(#[#attributes])*
            #[serde(rename_all = "camelCase")]
            #serde_attribute
            #schemars_attribute
            #rules
            #visibility struct #root {
                #skip_in_schema
                #visibility metadata: #meta,
                #flatten
                #visibility spec: #spec,
                #status_field
            }

            #[automatically_derived]
            impl #root {
                /// Creates an object with this name and specification, which has not been sent to a server.
                #[allow(dead_code, unreachable_pub)]
                pub fn new(name: &str, spec: #spec) -> Self {
                    Self { metadata: #klient::custom::private::metadata(name, #annotations, #labels), spec, #no_status }
                }
            }

            #default
        }
    }

    fn serialize(&self) -> TokenStream {
        let Self { settings, root, .. } = self;
        let (serde, std) = (&settings.crates.serde, &settings.crates.std);
        let k8s_openapi = &settings.crates.k8s_openapi;
        let name = root.to_string();
        let (count, status) = match &settings.status {
            Some(_) => (
                quote!(4 + usize::from(self.status.is_some())),
                quote! {
                    if let #std::option::Option::Some(status) = &self.status {
                        #serde::ser::SerializeStruct::serialize_field(&mut object, "status", status)?;
                    }
                },
            ),
            None => (quote!(4), quote!()),
        };
        quote! {
            #[automatically_derived]
            impl #serde::Serialize for #root {
                fn serialize<S: #serde::Serializer>(&self, serializer: S) -> #std::result::Result<S::Ok, S::Error> {
                    use #serde::ser::SerializeStruct as _;
                    let mut object = #serde::Serializer::serialize_struct(serializer, #name, #count)?;
                    object.serialize_field("apiVersion", <Self as #k8s_openapi::Resource>::API_VERSION)?;
                    object.serialize_field("kind", <Self as #k8s_openapi::Resource>::KIND)?;
                    object.serialize_field("metadata", &self.metadata)?;
                    object.serialize_field("spec", &self.spec)?;
                    #status
                    object.end()
                }
            }
        }
    }

    /// Only serde's own derive can flatten, so that a private struct is serialized.
    fn serialize_flat(&self) -> TokenStream {
        let Self { settings, spec, root } = self;
        let (serde, std) = (&settings.crates.serde, &settings.crates.std);
        let k8s_openapi = &settings.crates.k8s_openapi;
        let serde_attribute = settings.crates.serde_attribute();
        let meta = self.object_meta();
        let (field, value) = match &settings.status {
            Some(status) => (
                quote! {
                    #[serde(skip_serializing_if = "Option::is_none")]
                    status: #std::option::Option<&'a #status>,
                },
                quote!(status: self.status.as_ref(),),
            ),
            None => (quote!(), quote!()),
        };
        quote! {
            #[automatically_derived]
            impl #serde::Serialize for #root {
                fn serialize<S: #serde::Serializer>(&self, serializer: S) -> #std::result::Result<S::Ok, S::Error> {
                    #[derive(#serde::Serialize)]
                    #[serde(rename_all = "camelCase")]
                    #serde_attribute
                    struct Flat<'a> {
                        api_version: &'a str,
                        kind: &'a str,
                        metadata: &'a #meta,
                        #[serde(flatten)]
                        spec: &'a #spec,
                        #field
                    }
                    let flat = Flat {
                        api_version: <Self as #k8s_openapi::Resource>::API_VERSION,
                        kind: <Self as #k8s_openapi::Resource>::KIND,
                        metadata: &self.metadata,
                        spec: &self.spec,
                        #value
                    };
                    #serde::Serialize::serialize(&flat, serializer)
                }
            }
        }
    }

    fn traits(&self) -> TokenStream {
        let Self { settings, spec, root } = self;
        let crates = &settings.crates;
        let (klient, k8s_openapi, std) = (&crates.klient, &crates.k8s_openapi, &crates.std);
        let meta = self.object_meta();
        let (group, version, kind) = (&settings.group, &settings.version, &settings.kind);
        let api_version = format!("{}/{}", group.value(), version.value());
        let plural = settings.plural();
        let scope = format_ident!("{}ResourceScope", if settings.namespaced { "Namespace" } else { "Cluster" });
        let has_status = settings.status.as_ref().map(|status| {
            quote! {
                #[automatically_derived]
                impl #klient::custom::HasStatus for #root {
                    type Status = #status;

                    fn status(&self) -> #std::option::Option<&#status> {
                        self.status.as_ref()
                    }

                    fn status_mut(&mut self) -> &mut #std::option::Option<#status> {
                        &mut self.status
                    }
                }
            }
        });
        quote! {
            #[automatically_derived]
            impl #k8s_openapi::Resource for #root {
                const API_VERSION: &'static str = #api_version;
                const GROUP: &'static str = #group;
                const KIND: &'static str = #kind;
                const VERSION: &'static str = #version;
                const URL_PATH_SEGMENT: &'static str = #plural;
                type Scope = #k8s_openapi::#scope;
            }

            #[automatically_derived]
            impl #k8s_openapi::Metadata for #root {
                type Ty = #meta;

                fn metadata(&self) -> &#meta {
                    &self.metadata
                }

                fn metadata_mut(&mut self) -> &mut #meta {
                    &mut self.metadata
                }
            }

            #[automatically_derived]
            impl #klient::custom::HasSpec for #root {
                type Spec = #spec;

                fn spec(&self) -> &#spec {
                    &self.spec
                }

                fn spec_mut(&mut self) -> &mut #spec {
                    &mut self.spec
                }
            }

            #has_status
        }
    }

    /// Generates the methods that evaluate CEL rules.
    fn rules(&self) -> TokenStream {
        let Self { settings, root, .. } = self;
        let (klient, std) = (&settings.crates.klient, &settings.crates.std);
        let kind = &settings.kind;
        let result = quote!(#std::result::Result<(), #klient::custom::InvalidObject>);
        quote! {
            #[allow(dead_code, unreachable_pub)]
            #[automatically_derived]
            impl #root {
                /// Evaluates the CEL rules of this kind, as the server does when the object is created.
                ///
                /// # Errors
                ///
                /// Returns all rules that are violated, or that cannot be evaluated.
                pub fn validate_cel(&self) -> #result {
                    Self::cel_rules().validate_typed(self, #std::option::Option::<&Self>::None)
                }

                /// Evaluates the CEL rules of this kind, as the server does when this object replaces `old`.
                ///
                /// # Errors
                ///
                /// Returns all rules that are violated, or that cannot be evaluated.
                pub fn validate_cel_update(&self, old: &Self) -> #result {
                    Self::cel_rules().validate_typed(self, #std::option::Option::Some(old))
                }

                fn cel_rules() -> &'static #klient::custom::Rules {
                    static RULES: #std::sync::OnceLock<#klient::custom::Rules> = #std::sync::OnceLock::new();
                    let rules = || #klient::custom::Rules::new(#kind, &#klient::custom::structural_schema::<#root>());
                    RULES.get_or_init(rules)
                }
            }
        }
    }

    fn definition(&self) -> TokenStream {
        let Self { settings, root, .. } = self;
        let crates = &settings.crates;
        let (klient, k8s_openapi, std) = (&crates.klient, &crates.k8s_openapi, &crates.std);
        let private = quote!(#klient::custom::private);
        let option = |value: Option<TokenStream>| match value {
            Some(value) => quote!(#std::option::Option::Some(#value)),
            None => quote!(#std::option::Option::None),
        };
        let text = |value: &Option<syn::LitStr>| option(value.as_ref().map(|value| quote!(#value)));
        let columns = settings.columns.iter().map(|column| {
            let (name, kind, json_path) = (&column.name, &column.kind, &column.json_path);
            let (description, format) = (text(&column.description), text(&column.format));
            let priority = option(column.priority.map(|priority| quote!(#priority)));
            quote! {
                #private::Column {
                    name: #name,
                    kind: #kind,
                    json_path: #json_path,
                    description: #description,
                    format: #format,
                    priority: #priority,
                }
            }
        });
        let scale = option(settings.scale.as_ref().map(|(_, scale)| {
            let (spec, status) = (&scale.spec_replicas_path, &scale.status_replicas_path);
            let selector = text(&scale.label_selector_path);
            quote!(#private::Scale { spec: #spec, status: #status, selector: #selector })
        }));
        let schema = option(
            (settings.schema != SchemaMode::Disabled).then(|| quote!(#klient::custom::structural_schema::<Self>())),
        );
        let deprecated = option(settings.deprecated.as_ref().map(&text));
        let (group, version, kind) = (&settings.group, &settings.version, &settings.kind);
        let (singular, plural) = (settings.singular(), settings.plural());
        let crd_name = format!("{plural}.{}", group.value());
        let (categories, shortnames) = (&settings.categories, &settings.shortnames);
        let selectable = &settings.selectable;
        let (annotations, labels) = (pairs(&settings.annotations), pairs(&settings.labels));
        let (namespaced, status) = (settings.namespaced, settings.status.is_some());
        let (served, storage) = (settings.served, settings.storage);
        quote! {
            #[automatically_derived]
            impl #klient::custom::CustomResourceExt for #root {
                fn crd() -> #k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition {
                    #private::Definition {
                        group: #group,
                        version: #version,
                        kind: #kind,
                        plural: #plural,
                        singular: #singular,
                        namespaced: #namespaced,
                        categories: &[#(#categories),*],
                        shortnames: &[#(#shortnames),*],
                        annotations: #annotations,
                        labels: #labels,
                        columns: &[#(#columns),*],
                        selectable: &[#(#selectable),*],
                        status: #status,
                        scale: #scale,
                        served: #served,
                        storage: #storage,
                        deprecated: #deprecated,
                    }
                    .build(#schema)
                }

                fn crd_name() -> &'static str {
                    #crd_name
                }

                fn api_resource() -> #klient::resource::ApiResource {
                    #klient::resource::ApiResource::of::<Self>()
                }

                fn shortnames() -> &'static [&'static str] {
                    &[#(#shortnames),*]
                }
            }
        }
    }
}

fn pairs(pairs: &[(syn::LitStr, syn::LitStr)]) -> TokenStream {
    let pairs = pairs.iter().map(|(key, value)| quote!((#key, #value)));
    quote!(&[#(#pairs),*])
}
