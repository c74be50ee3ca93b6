//! `#[derive(KubeSchema)]`: a schema with CEL rules and merge strategies.
//!
//! A derive cannot add attributes to its type, so that schemars' derive runs on a hidden copy of the struct, without the
//! `x_kube` attributes. For each field with rules, a copy of the struct with that field alone gives the field's schema under the
//! name that serde has for it.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Result};

use crate::{
    arguments::{Errors, of_attributes, set},
    crates::Crates,
    custom_resource::checks::cel_problem,
};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let container = Container::read(input, &mut errors)?;
    let ident = &input.ident;
    let kept_attributes = kept(&input.attrs);
    let mut hidden = input.clone();
    hidden.attrs.clone_from(&kept_attributes);
    hidden.ident = format_ident!("{ident}Validated");
    let Data::Struct(data) = &mut hidden.data else { return Err(not_supported(ident)) };
    let Fields::Named(fields) = &mut data.fields else { return Err(not_supported(ident)) };
    let copy = Copy { crates: &container.crates, ident, container: &kept_attributes };
    let mut patches = Vec::new();
    for field in &mut fields.named {
        let rules = FieldRules::read(field, &mut errors);
        field.attrs = kept(&field.attrs);
        patches.extend(copy.patch(field, &rules));
    }
    errors.finish()?;

    let names: Vec<Ident> = fields.named.iter().filter_map(|field| field.ident.clone()).collect();
    let default = copy.default(&hidden.ident, &names);
    let (serde_crate, schemars_crate) = (copy.serde_attribute(), copy.schemars_attribute());
    let Crates { klient, schemars, serde, std, .. } = &container.crates;
    let (name, hidden_ident) = (ident.to_string(), &hidden.ident);
    let rules =
        container.validations.iter().map(|rule| quote!(#klient::custom::private::add_rule(&mut schema, #rule);));
    let validate = container.cel.then(|| {
        quote! {
            #[automatically_derived]
            impl #ident {
                /// Evaluates the CEL rules of this type for a value in JSON, which replaces `old`.
                ///
                /// # Errors
                ///
                /// Returns all rules that are violated, or that cannot be evaluated.
                #[allow(dead_code, unreachable_pub)]
                pub fn validate_cel(
                    value: &#klient::apply::Value,
                    old: #std::option::Option<&#klient::apply::Value>,
                ) -> #std::result::Result<(), #klient::custom::InvalidObject> {
                    static RULES: #std::sync::OnceLock<#klient::custom::Rules> = #std::sync::OnceLock::new();
                    let rules = || #klient::custom::Rules::new(#name, &#klient::custom::structural_schema::<Self>());
                    RULES.get_or_init(rules).validate(value, old)
                }
            }
        }
    });
    Ok(quote! {
        #validate

        #[automatically_derived]
        impl #klient::custom::private::KubeSchema for #ident {}

        #[automatically_derived]
        impl #schemars::JsonSchema for #ident {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> #std::borrow::Cow<'static, str> {
                #std::borrow::Cow::Borrowed(#name)
            }

            fn json_schema(generator: &mut #schemars::SchemaGenerator) -> #schemars::Schema {
                #[derive(#serde::Serialize, #schemars::JsonSchema)]
                #serde_crate
                #schemars_crate
                #[allow(missing_docs, dead_code)]
                #hidden

                #default

                #[allow(unused_imports)]
                use #klient::custom::{ListMerge, MapMerge, Message, Reason, Rule, StructMerge};
                let mut schema = <#hidden_ident as #schemars::JsonSchema>::json_schema(generator);
                #(#rules)*
                #(#patches)*
                schema
            }
        }
    })
}

/// The attributes of the struct.
struct Container {
    crates: Crates,
    validations: Vec<TokenStream>,
    cel: bool,
}

impl Container {
    fn read(input: &DeriveInput, errors: &mut Errors) -> Result<Self> {
        let mut container = Self { crates: Crates::default(), validations: Vec::new(), cel: false };
        for argument in of_attributes(&input.attrs, &["x_kube"])? {
            match argument.name.as_str() {
                "validation" => container.validations.extend(errors.keep(argument.expression())),
                "cel" => {
                    container.cel = errors.keep(argument.flag()).unwrap_or_default();
                    if let (true, Some(message)) = (container.cel, cel_problem(cfg!(feature = "cel"))) {
                        errors.add(argument.error(message));
                    }
                }
                "crates" => {
                    errors.keep(container.crates.read(&argument));
                }
                "merge_strategy" => {
                    errors
                        .add(argument.error("`merge_strategy` is for fields: move it to the field that has this type"));
                }
                _ => errors.add(argument.unknown(&["validation", "cel", "crates"])),
            }
        }
        if !input.generics.params.is_empty() {
            let message = "`#[derive(KubeSchema)]` does not support generics: derive `JsonSchema` for this type";
            errors.add(Error::new_spanned(&input.generics, message));
        }
        Ok(container)
    }
}

fn not_supported(ident: &Ident) -> Error {
    let message = "`#[derive(KubeSchema)]` supports structs with named fields: derive `JsonSchema` for this type";
    Error::new_spanned(ident, message)
}

/// The rules of one field.
#[derive(Default)]
struct FieldRules {
    validations: Vec<TokenStream>,
    merge_strategy: Option<TokenStream>,
}

impl FieldRules {
    fn read(field: &Field, errors: &mut Errors) -> Self {
        let mut rules = Self::default();
        for argument in errors.keep(of_attributes(&field.attrs, &["x_kube"])).unwrap_or_default() {
            match argument.name.as_str() {
                "validation" => rules.validations.extend(errors.keep(argument.expression())),
                "merge_strategy" => set(&mut rules.merge_strategy, &argument, argument.expression(), errors),
                _ => errors.add(argument.unknown(&["validation", "merge_strategy"])),
            }
        }
        rules
    }
}

/// The parts that all copies of a struct share.
struct Copy<'a> {
    crates: &'a Crates,
    ident: &'a Ident,
    container: &'a [Attribute],
}

impl Copy<'_> {
    /// Returns the code that replaces the schema of a field with one that has the field's rules.
    fn patch(&self, field: &Field, rules: &FieldRules) -> Option<TokenStream> {
        if rules.validations.is_empty() && rules.merge_strategy.is_none() {
            return None;
        }
        let Crates { klient, schemars, serde, .. } = self.crates;
        let private = quote!(#klient::custom::private);
        let container = self.container;
        let default = self.default(&format_ident!("Validated"), &field.ident.iter().cloned().collect::<Vec<_>>());
        let (serde_crate, schemars_crate) = (self.serde_attribute(), self.schemars_attribute());
        let validations = rules.validations.iter().map(|rule| quote!(#private::add_property_rule(&mut alone, #rule);));
        let merge = rules.merge_strategy.iter().map(|strategy| quote!(#private::set_merge(&mut alone, #strategy);));
        Some(quote! {
            {
                #[derive(#serde::Serialize, #schemars::JsonSchema)]
                #serde_crate
                #schemars_crate
                #(#container)*
                #[allow(missing_docs, dead_code)]
                struct Validated {
                    #field
                }

                #default

                let mut alone = <Validated as #schemars::JsonSchema>::json_schema(generator);
                #(#validations)*
                #(#merge)*
                #private::replace_properties(&mut schema, &alone);
            }
        })
    }

    /// Returns the `Default` that `#[serde(default)]` on the struct needs: the values of the original's.
    fn default(&self, name: &Ident, fields: &[Ident]) -> Option<TokenStream> {
        let arguments = of_attributes(self.container, &["serde"]).unwrap_or_default();
        arguments.iter().find(|argument| argument.name == "default" && matches!(argument.flag(), Ok(true)))?;
        let (ident, std) = (self.ident, &self.crates.std);
        Some(quote! {
            impl #std::default::Default for #name {
                fn default() -> Self {
                    let value = <#ident as #std::default::Default>::default();
                    Self { #(#fields: value.#fields),* }
                }
            }
        })
    }

    /// Returns the attribute with serde's path, unless the struct has one.
    fn serde_attribute(&self) -> Option<TokenStream> {
        (!self.names_crate("serde")).then(|| self.crates.serde_attribute())
    }

    fn schemars_attribute(&self) -> Option<TokenStream> {
        (!self.names_crate("schemars")).then(|| self.crates.schemars_attribute())
    }

    fn names_crate(&self, attribute: &str) -> bool {
        let arguments = of_attributes(self.container, &[attribute]).unwrap_or_default();
        arguments.iter().any(|argument| argument.name == "crate")
    }
}

/// Returns the attributes that schemars' derive reads.
fn kept(attributes: &[Attribute]) -> Vec<Attribute> {
    let is_kept = |attribute: &&Attribute| {
        ["serde", "schemars", "doc", "validate"].iter().any(|name| attribute.path().is_ident(name))
    };
    attributes.iter().filter(is_kept).cloned().collect()
}
