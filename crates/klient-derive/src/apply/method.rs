//! The methods of a configuration, one for each field.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, LitStr, Path, Type, spanned::Spanned as _};

use super::{
    field::{Argument, Field, Form, Part},
    types::{Shape, shape},
};
use crate::crates::Crates;

/// Generates the method of a field.
pub(super) fn generate(field: &Field, crates: &Crates) -> TokenStream {
    let Field { visibility, docs, name, method, flatten, .. } = field;
    let Method { arguments, body, doc } = Method::of(field, crates);
    let separator = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
    let doc = if *flatten { doc.replace(&format!("`{name}`"), &format!("the fields of `{method}`")) } else { doc };
    quote! {
        #(#docs)*
        #separator
        #[doc = #doc]
        #visibility fn #method(mut self, #arguments) -> Self {
            #body
            self
        }
    }
}

/// Generates the implementation by which the field can be a merge key, if it is a value.
pub(super) fn key(field: &Field, configuration: &Ident, crates: &Crates) -> Option<TokenStream> {
    let Form::Value(Argument::Exact(ty) | Argument::Into(ty)) = &field.form else { return None };
    let value = match shape(ty.clone()) {
        Shape::Text(_) => quote!(&'a str),
        Shape::Scalar(ty) | Shape::Value(ty) | Shape::Nested(ty) => quote!(#ty),
        _ => return None,
    };
    let (klient, hash) = (&crates.klient, hash(&field.name));
    Some(quote! {
        #[automatically_derived]
        impl #klient::apply::KeyField<#hash> for #configuration {
            type Value<'a> = #value;
        }
    })
}

/// The parts of a method.
struct Method {
    arguments: TokenStream,
    body: TokenStream,
    doc: String,
}

impl Method {
    fn of(field: &Field, crates: &Crates) -> Self {
        let Crates { klient, std, .. } = crates;
        let (name, flatten) = (&field.name, field.flatten);
        let text = |argument: &Argument| matches!(argument, Argument::Into(_));
        let new = |arguments, body, doc| Self { arguments, body, doc };
        match &field.form {
            Form::Value(argument) => {
                let (ty, value) = (argument.ty(std), argument.value(std, quote!(value)));
                let set = if flatten { format_ident!("set_flattened") } else { format_ident!("set_value") };
                new(quote!(value: #ty), quote!(self.0.#set(#name, &#value);), format!(" Sets `{name}`."))
            }
            Form::Wrapped(ty, attributes) => {
                let serde = &crates.serde;
                let serde_attribute = crates.serde_attribute();
                let body = quote! {
                    #[derive(#serde::Serialize)]
                    #serde_attribute
                    struct Wrapper {
                        #(#attributes)*
                        value: #ty,
                    }
                    self.0.set_wrapped(#name, &Wrapper { value });
                };
                new(quote!(value: #ty), body, format!(" Sets `{name}`."))
            }
            Form::Object(part) => {
                let part = part.configuration(klient);
                let body =
                    if flatten { quote!(self.0.flattened(change);) } else { quote!(self.0.object(#name, change);) };
                new(change(std, &part), body, format!(" Changes `{name}`."))
            }
            Form::Item(keys, part) => Self::item(name, keys, part, crates),
            Form::Items(keys, ty) => {
                let arguments = quote!(items: impl #std::iter::IntoIterator<Item = #ty>);
                let body = quote!(self.0.put_items(#name, &[#(#keys),*], items););
                let keys = keys.iter().map(LitStr::value).collect::<Vec<_>>().join(" and ");
                new(arguments, body, format!(" Adds items to `{name}`. Those with the same {keys} are replaced."))
            }
            Form::List(item) | Form::Set(item) => {
                let is_set = matches!(field.form, Form::Set(_));
                let ty = item.ty(std);
                let items = if text(item) {
                    let ty = item.inner();
                    quote!(items.into_iter().map(#std::convert::Into::<#ty>::into))
                } else {
                    quote!(items)
                };
                let set = if is_set { format_ident!("extend_set") } else { format_ident!("set_list") };
                let doc =
                    if is_set { format!(" Adds items to `{name}`.") } else { format!(" Sets all items of `{name}`.") };
                new(quote!(items: impl #std::iter::IntoIterator<Item = #ty>), quote!(self.0.#set(#name, #items);), doc)
            }
            Form::Entry(key, part) => {
                let part = part.configuration(klient);
                let (ty, change) = (argument_of_key(key), change(std, &part));
                let doc = format!(" Changes the entry of `{name}` with this key.");
                new(quote!(key: #ty, #change), quote!(self.0.entry(#name, &key, change);), doc)
            }
            Form::Map { key, value, whole } => {
                let (key_ty, value_ty) = (key.ty(std), value.ty(std));
                let (key, value) = (key.value(std, quote!(key)), value.value(std, quote!(value)));
                let entries = quote!(entries.into_iter().map(|(key, value)| (#key, #value)));
                let set = match (flatten, whole) {
                    (true, _) => format_ident!("extend"),
                    (false, true) => format_ident!("set_map"),
                    (false, false) => format_ident!("extend_map"),
                };
                let verb = if *whole && !flatten { "Sets all entries of" } else { "Adds entries to" };
                let arguments = quote!(entries: impl #std::iter::IntoIterator<Item = (#key_ty, #value_ty)>);
                new(arguments, quote!(self.0.#set(#name, #entries);), format!(" {verb} `{name}`."))
            }
        }
    }

    fn item(name: &str, keys: &[LitStr], part: &Part, crates: &Crates) -> Self {
        let Crates { klient, std, .. } = crates;
        let configuration = part.configuration(klient);
        let arguments: Vec<Ident> = keys.iter().map(argument_name).collect();
        let types = keys.iter().map(|key| match part {
            // The configurations of other crates do not say which types their fields have.
            Part::Named(_) => {
                let serde = &crates.serde;
                quote!(impl #serde::Serialize)
            }
            Part::Of(_) => {
                let hash = hash(&key.value());
                quote_spanned!(key.span()=> <#configuration as #klient::apply::KeyField<#hash>>::Value<'_>)
            }
        });
        let change = change(std, &configuration);
        Self {
            arguments: quote!(#(#arguments: #types,)* #change),
            body: quote!(self.0.item(#name, [#((#keys, #klient::apply::to_value(&#arguments))),*], change);),
            doc: format!(" Changes the item of `{name}` with this key. It is added if it is not there."),
        }
    }
}

impl Argument {
    fn inner(&self) -> &Type {
        match self {
            Self::Exact(ty) | Self::Into(ty) => ty,
        }
    }

    fn ty(&self, std: &Path) -> TokenStream {
        match self {
            Self::Exact(ty) => quote!(#ty),
            Self::Into(ty) => quote!(impl #std::convert::Into<#ty>),
        }
    }

    fn value(&self, std: &Path, name: TokenStream) -> TokenStream {
        match self {
            Self::Exact(_) => name,
            Self::Into(ty) => quote!(#std::convert::Into::<#ty>::into(#name)),
        }
    }
}

impl Part {
    fn configuration(&self, klient: &Path) -> TokenStream {
        match self {
            // The span makes a missing implementation an error at the type of the field.
            Self::Of(ty) => quote_spanned!(ty.span()=> <#ty as #klient::apply::Apply>::Configuration),
            Self::Named(ty) => quote!(#ty),
        }
    }
}

/// Generates the argument that changes a part.
pub(super) fn change(std: &Path, part: &TokenStream) -> TokenStream {
    quote!(change: impl #std::ops::FnOnce(#part) -> #part)
}

fn argument_of_key(key: &Type) -> TokenStream {
    match shape(key.clone()) {
        Shape::Text(_) => quote!(&str),
        _ => quote!(#key),
    }
}

/// Returns the name of the argument for a key, in snake case.
fn argument_name(key: &LitStr) -> Ident {
    let mut name = String::new();
    for letter in key.value().chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    if name == "change" || name == "self" {
        name.push('_');
    }
    syn::parse_str(&name).unwrap_or_else(|_| format_ident!("r#{name}", span = Span::call_site()))
}

/// Returns the FNV-1a hash of a name: the compiler has no strings as parameters of types.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
