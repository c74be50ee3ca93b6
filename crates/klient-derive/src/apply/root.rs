//! The configuration of the root type of a custom resource.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Ident, Result};

use super::{Container, field::Field, method};
use crate::{arguments::Errors, crates::Crates, custom_resource::settings::Settings};

/// The settings of the root type.
pub(super) struct Root(Settings);

impl Root {
    /// Returns the settings of a struct that derives `CustomResource`. That derive reports their errors.
    pub(super) fn read(input: &DeriveInput) -> Option<Self> {
        let is_root =
            |attribute: &syn::Attribute| ["kube", "klient"].iter().any(|name| attribute.path().is_ident(name));
        input.attrs.iter().any(is_root).then(|| Settings::read(input).ok()).flatten().map(Self)
    }

    pub(super) fn generate(&self, container: &Container, input: &DeriveInput, fields: &[Field]) -> Result<TokenStream> {
        let Crates { klient, k8s_openapi, serde, std, .. } = &container.crates;
        let root = Ident::new(&self.0.root().value(), self.0.root().span());
        let name = format_ident!("{root}Apply");
        let api_version = format!("{}/{}", self.0.group.value(), self.0.version.value());
        let kind = &self.0.kind;
        let doc =
            format!(" A configuration of [`{root}`] for server-side apply. Only the fields that are set are applied.");
        let definition = container.definition(input, &name, &doc);
        let text = quote!(impl #std::convert::Into<#std::string::String>);
        let (arguments, namespace) = match self.0.namespaced {
            true => (quote!(name: #text, namespace: #text), quote!(#std::option::Option::Some(namespace.into()))),
            false => (quote!(name: #text), quote!(#std::option::Option::None)),
        };
        let new_doc = match self.0.namespaced {
            true => " Creates a configuration of the object with this name and namespace.",
            false => " Creates a configuration of the object with this name.",
        };
        let methods = self.methods(container, input, fields)?;
        let entries = quote!(impl #std::iter::IntoIterator<Item = (#text, #text)>);
        let extract = quote!(#std::result::Result<Self, #klient::apply::ExtractError>);
        let owner = quote!(#k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference);
        Ok(quote! {
            #definition

            #[automatically_derived]
            impl #klient::apply::Apply for #root {
                type Configuration = #name;
            }

            #[allow(dead_code, unreachable_pub, clippy::should_implement_trait)]
            #[automatically_derived]
            impl #name {
                #[doc = #new_doc]
                pub fn new(#arguments) -> Self {
                    Self(#klient::apply::identity(#api_version, #kind, name.into(), #namespace))
                }

                /// Returns what a manager last applied to an object: the fields that it still owns, and the object's identity.
                ///
                /// # Errors
                ///
                /// Returns an error if the object has no managed fields, or if they are malformed.
                pub fn extract(live: &impl #serde::Serialize, manager: &str) -> #extract {
                    #klient::apply::extract(live, manager, "")
                }

                /// Returns what a manager last applied to the status of an object.
                ///
                /// # Errors
                ///
                /// Returns an error if the object has no managed fields, or if they are malformed.
                pub fn extract_status(live: &impl #serde::Serialize, manager: &str) -> #extract {
                    #klient::apply::extract(live, manager, "status")
                }

                /// Adds labels.
                pub fn labels(mut self, labels: #entries) -> Self {
                    #klient::apply::labels(&mut self.0, labels);
                    self
                }

                /// Adds annotations.
                pub fn annotations(mut self, annotations: #entries) -> Self {
                    #klient::apply::annotations(&mut self.0, annotations);
                    self
                }

                /// Adds finalizers.
                pub fn finalizers(mut self, finalizers: impl #std::iter::IntoIterator<Item = #text>) -> Self {
                    #klient::apply::finalizers(&mut self.0, finalizers);
                    self
                }

                /// Adds an owner. One with the same UID is replaced.
                pub fn owner(mut self, owner: &#owner) -> Self {
                    #klient::apply::owner(&mut self.0, owner);
                    self
                }

                #methods
            }
        })
    }

    /// Generates the methods for the specification and the status.
    fn methods(&self, container: &Container, input: &DeriveInput, fields: &[Field]) -> Result<TokenStream> {
        let Crates { klient, std, .. } = &container.crates;
        let visibility = &input.vis;
        let spec = if self.0.no_spec.is_some() {
            let mut errors = Errors::default();
            for field in fields.iter().filter(|field| OWN.iter().any(|own| field.method == own)) {
                let message = format!(
                    "the configuration of an object has a method `{}`: rename this one with `#[apply(method = \"...\")]`",
                    field.method
                );
                errors.add(Error::new(field.ident.span(), message));
            }
            errors.finish()?;
            let methods = fields.iter().map(|field| method::generate(field, &container.crates));
            quote!(#(#methods)*)
        } else {
            let spec = &container.name;
            let change = method::change(std, &quote!(#spec));
            quote! {
                /// Changes `spec`.
                #visibility fn spec(mut self, #change) -> Self {
                    self.0.object("spec", change);
                    self
                }
            }
        };
        let status = self.0.status.as_ref().map(|status| {
            if container.status_value {
                return quote! {
                    /// Sets `status`.
                    #visibility fn status(mut self, status: impl #std::convert::Into<#status>) -> Self {
                        self.0.set_value("status", &#std::convert::Into::<#status>::into(status));
                        self
                    }
                };
            }
            let change = method::change(std, &quote!(<#status as #klient::apply::Apply>::Configuration));
            quote! {
                /// Changes `status`. Only `api.status(...)` requests apply it.
                #visibility fn status(mut self, #change) -> Self {
                    self.0.object("status", change);
                    self
                }
            }
        });
        Ok(quote!(#spec #status))
    }
}

/// The methods that each root configuration has.
const OWN: [&str; 8] = ["new", "to_value", "extract", "extract_status", "labels", "annotations", "finalizers", "owner"];
