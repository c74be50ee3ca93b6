//! `#[derive(Resource)]`: a struct that represents an existing kind.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, LitStr, Path, Result, Type};

use crate::{
    arguments::{Argument, Errors, of_attributes, set},
    crates::Crates,
};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let mut kind = Kind::default();
    let mut crates = Crates::default();
    for argument in of_attributes(&input.attrs, &["resource"])? {
        match argument.name.as_str() {
            "crates" => {
                errors.keep(crates.read(&argument));
            }
            _ => kind.read(&argument, &mut errors),
        }
    }
    let ident = &input.ident;
    let metadata = metadata_field(&input.data);
    if metadata.is_none() {
        let message = "`#[derive(Resource)]` needs a struct with a field `metadata: ObjectMeta`, or with one unnamed field \
            that has it";
        errors.add(Error::new_spanned(ident, message));
    }
    errors.finish()?;
    let k8s_openapi = &crates.k8s_openapi;
    let constants = kind.constants(k8s_openapi).ok_or_else(|| {
        let message = "missing attribute `inherit`: add `#[resource(inherit = \"ConfigMap\")]`, or `group`, `version`, `kind` \
            and `plural`";
        Error::new_spanned(ident, message)
    })?;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let meta = quote!(#k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta);
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #k8s_openapi::Resource for #ident #type_generics #where_clause {
            #constants
        }

        #[automatically_derived]
        impl #impl_generics #k8s_openapi::Metadata for #ident #type_generics #where_clause {
            type Ty = #meta;

            fn metadata(&self) -> &#meta {
                &self.#metadata
            }

            fn metadata_mut(&mut self) -> &mut #meta {
                &mut self.#metadata
            }
        }
    })
}

/// The kind: that of another type, or the names of one.
#[derive(Default)]
struct Kind {
    inherit: Option<Type>,
    group: Option<LitStr>,
    version: Option<LitStr>,
    kind: Option<LitStr>,
    plural: Option<LitStr>,
    namespaced: Option<bool>,
}

impl Kind {
    fn read(&mut self, argument: &Argument, errors: &mut Errors) {
        match argument.name.as_str() {
            "inherit" => set(&mut self.inherit, argument, argument.parsed("a type"), errors),
            "group" => set(&mut self.group, argument, argument.text(), errors),
            "version" => set(&mut self.version, argument, argument.text(), errors),
            "kind" => set(&mut self.kind, argument, argument.text(), errors),
            "plural" => set(&mut self.plural, argument, argument.text(), errors),
            "namespaced" => set(&mut self.namespaced, argument, argument.flag(), errors),
            _ => {
                let known = ["inherit", "group", "version", "kind", "plural", "namespaced", "crates"];
                errors.add(argument.unknown(&known));
            }
        }
    }

    fn constants(&self, k8s_openapi: &Path) -> Option<TokenStream> {
        if let Some(inherit) = &self.inherit {
            let resource = quote!(<#inherit as #k8s_openapi::Resource>);
            return Some(quote! {
                const API_VERSION: &'static str = #resource::API_VERSION;
                const GROUP: &'static str = #resource::GROUP;
                const KIND: &'static str = #resource::KIND;
                const VERSION: &'static str = #resource::VERSION;
                const URL_PATH_SEGMENT: &'static str = #resource::URL_PATH_SEGMENT;
                type Scope = #resource::Scope;
            });
        }
        let (group, version, kind, plural) =
            (self.group.as_ref()?, self.version.as_ref()?, self.kind.as_ref()?, self.plural.as_ref()?);
        let api_version = format!("{}/{}", group.value(), version.value());
        let api_version = api_version.trim_start_matches('/');
        let scope =
            format_ident!("{}ResourceScope", if self.namespaced == Some(true) { "Namespace" } else { "Cluster" });
        Some(quote! {
            const API_VERSION: &'static str = #api_version;
            const GROUP: &'static str = #group;
            const KIND: &'static str = #kind;
            const VERSION: &'static str = #version;
            const URL_PATH_SEGMENT: &'static str = #plural;
            type Scope = #k8s_openapi::#scope;
        })
    }
}

/// Returns how the metadata is reached: its own field, or that of the only unnamed field.
fn metadata_field(data: &Data) -> Option<TokenStream> {
    let Data::Struct(data) = data else { return None };
    match &data.fields {
        Fields::Named(fields) => {
            let is_metadata = |field: &syn::Field| field.ident.as_ref().is_some_and(|ident| ident == "metadata");
            fields.named.iter().any(is_metadata).then(|| quote!(metadata))
        }
        Fields::Unnamed(fields) => (fields.unnamed.len() == 1).then(|| quote!(0.metadata)),
        Fields::Unit => None,
    }
}
