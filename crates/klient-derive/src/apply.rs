//! `#[derive(Apply)]`: the configuration of a struct for server-side apply, in which every field is optional.
//!
//! The configuration is a name for `klient::apply::Fields`, with one method for each field. A struct that derives `CustomResource`
//! as well gets the configuration of its root type. A derive sees names only, so that the type of a field decides by its name
//! whether the field is set by value or changed by a closure; `#[apply(...)]` overrides that.

mod field;
mod merge;
mod method;
mod names;
mod root;
mod types;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Result};

use self::{field::Field, names::Case, root::Root};
use crate::{
    arguments::{Argument, Errors, of_attributes, set},
    crates::Crates,
};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let container = Container::read(input)?;
    let fields = container.fields(input)?;
    let part = container.part(input, &fields);
    let root = Root::read(input).map(|root| root.generate(&container, input, &fields)).transpose()?;
    Ok(quote!(#part #root))
}

/// The attributes of the struct.
struct Container {
    crates: Crates,
    /// The name of the configuration.
    name: Ident,
    case: Case,
    /// Whether the status is set whole.
    status_value: bool,
}

impl Container {
    fn read(input: &DeriveInput) -> Result<Self> {
        let mut errors = Errors::default();
        let ident = &input.ident;
        let mut name = None;
        let mut status = None;
        let mut crates = Crates::default();
        for argument in of_attributes(&input.attrs, &["apply"])? {
            match argument.name.as_str() {
                "name" => {
                    set(&mut name, &argument, argument.text().and_then(|text| text.parse::<Ident>()), &mut errors);
                }
                "status" => set(&mut status, &argument, is_value(&argument), &mut errors),
                "crates" => {
                    errors.keep(crates.read(&argument));
                }
                "value" | "with" | "method" | "skip" => {
                    let message = format!("`{}` is for fields: move it to a field", argument.name);
                    errors.add(argument.error(message));
                }
                _ => errors.add(argument.unknown(&["name", "status", "crates"])),
            }
        }
        // Whatever the other derives do not understand is reported by them.
        for argument in of_attributes(&input.attrs, &["kube", "klient", "x_kube"]).unwrap_or_default() {
            if argument.name == "crates" {
                let _reported = crates.read(&argument);
            }
        }
        if !input.generics.params.is_empty() {
            let message = "`#[derive(Apply)]` does not support generics: remove it here, and mark the fields of this type with \
                `#[apply(value)]`, which sets them whole";
            errors.add(Error::new_spanned(&input.generics, message));
        }
        let case = Self::read_serde(input, &mut errors);
        errors.finish()?;
        let name = name.unwrap_or_else(|| format_ident!("{ident}Apply"));
        Ok(Self { crates, name, case, status_value: status.is_some() })
    }

    /// Returns the case of fields, and adds errors for forms whose JSON is not an object with the fields of the struct.
    fn read_serde(input: &DeriveInput, errors: &mut Errors) -> Case {
        let mut case = Case::default();
        for argument in of_attributes(&input.attrs, &["serde"]).unwrap_or_default() {
            match argument.name.as_str() {
                "rename_all" => case = names::case(&argument).unwrap_or_default(),
                other @ ("transparent" | "into" | "from" | "try_from" | "remote" | "tag" | "untagged") => {
                    let message = format!(
                        "`serde({other})` gives this type another form in JSON: remove `Apply`, and mark the fields of this type \
                        with `#[apply(value)]`, which sets them whole"
                    );
                    errors.add(argument.error(message));
                }
                _ => {}
            }
        }
        case
    }

    fn fields(&self, input: &DeriveInput) -> Result<Vec<Field>> {
        let named = match &input.data {
            Data::Struct(data) => match &data.fields {
                Fields::Named(fields) => &fields.named,
                _ => return Err(not_supported(&input.ident)),
            },
            _ => return Err(not_supported(&input.ident)),
        };
        let mut errors = Errors::default();
        let read = named.iter().filter_map(|field| Field::read(field, self.case, &mut errors));
        let fields: Vec<Field> = read.collect();
        let own = ["new", "to_value"].map(|name| Ident::new(name, Span::call_site()));
        let mut taken: Vec<&Ident> = own.iter().collect();
        for field in &fields {
            if taken.contains(&&field.method) {
                let message = format!(
                    "the configuration has two methods `{}`: rename this one with `#[apply(method = \"...\")]`",
                    field.method
                );
                errors.add(Error::new(field.ident.span(), message));
            }
            taken.push(&field.method);
        }
        errors.finish()?;
        Ok(fields)
    }

    /// Generates the configuration of the struct itself.
    fn part(&self, input: &DeriveInput, fields: &[Field]) -> TokenStream {
        let (ident, name) = (&input.ident, &self.name);
        let Crates { klient, .. } = &self.crates;
        let doc =
            format!(" A configuration of [`{ident}`] for server-side apply. Only the fields that are set are applied.");
        let definition = self.definition(input, name, &doc);
        let methods = fields.iter().map(|field| method::generate(field, &self.crates));
        let keys = fields.iter().filter_map(|field| method::key(field, name, &self.crates));
        // `x_kube` has no effect on the schema unless `KubeSchema` reads it.
        let rules = fields.iter().any(|field| field.has_rules).then(|| {
            quote! {
                const _: fn() = || {
                    fn reads_x_kube<T: #klient::custom::private::KubeSchema>() {}
                    reads_x_kube::<#ident>();
                };
            }
        });
        quote! {
            #definition

            #[automatically_derived]
            impl #klient::apply::Apply for #ident {
                type Configuration = #name;
            }

            #[allow(dead_code, unreachable_pub, clippy::new_without_default, clippy::should_implement_trait)]
            #[automatically_derived]
            impl #name {
                /// Creates a configuration without fields.
                pub fn new() -> Self {
                    Self(#klient::apply::Fields::default())
                }

                #(#methods)*
            }

            #(#keys)*
            #rules
        }
    }

    /// Generates the type of a configuration and its traits.
    fn definition(&self, input: &DeriveInput, name: &Ident, doc: &str) -> TokenStream {
        let visibility = &input.vis;
        let Crates { klient, serde, std, .. } = &self.crates;
        quote! {
            #[doc = #doc]
            #[allow(dead_code)]
            #[derive(Clone, Debug, PartialEq)]
            #[must_use]
            #visibility struct #name(#klient::apply::Fields);

            #[automatically_derived]
            impl #serde::Serialize for #name {
                fn serialize<S: #serde::Serializer>(&self, serializer: S) -> #std::result::Result<S::Ok, S::Error> {
                    #serde::Serialize::serialize(&self.0, serializer)
                }
            }

            #[automatically_derived]
            impl #klient::apply::Configuration for #name {
                fn from_fields(fields: #klient::apply::Fields) -> Self {
                    Self(fields)
                }

                fn into_fields(self) -> #klient::apply::Fields {
                    self.0
                }
            }

            #[allow(dead_code, unreachable_pub)]
            #[automatically_derived]
            impl #name {
                /// Returns the fields as JSON.
                #[must_use]
                pub fn to_value(&self) -> #klient::apply::Value {
                    #klient::apply::Configuration::to_value(self)
                }
            }
        }
    }
}

/// Reads `status = "value"`.
fn is_value(argument: &Argument) -> Result<()> {
    let text = argument.text()?;
    if text.value() == "value" {
        return Ok(());
    }
    Err(Error::new_spanned(text, "`status` can only be `\"value\"`: the status is then set whole"))
}

fn not_supported(ident: &Ident) -> Error {
    let message = "`#[derive(Apply)]` supports structs with named fields: remove it here, and mark the fields of this type with \
        `#[apply(value)]`, which sets them whole";
    Error::new_spanned(ident, message)
}
