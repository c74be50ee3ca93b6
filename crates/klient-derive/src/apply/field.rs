//! The fields of a configuration: their names in JSON, and the form of their methods.

use proc_macro2::Span;
use syn::{Attribute, Error, Ident, LitStr, Type, Visibility};

use super::{
    merge::{self, Merge},
    names::{self, Case},
    types::{Shape, shape},
};
use crate::arguments::{Errors, of_attributes, set};

/// A field that has a method.
pub(super) struct Field {
    pub(super) ident: Ident,
    pub(super) visibility: Visibility,
    /// The documentation of the field.
    pub(super) docs: Vec<Attribute>,
    /// The name in JSON.
    pub(super) name: String,
    pub(super) method: Ident,
    pub(super) form: Form,
    /// Whether the fields of the value stand among those of the struct.
    pub(super) flatten: bool,
    /// Whether the field has attributes that `KubeSchema` reads.
    pub(super) has_rules: bool,
}

/// The form of a method.
pub(super) enum Form {
    /// Takes a value.
    Value(Argument),
    /// Takes a value that serde writes with a function of the user.
    Wrapped(Type, Vec<Attribute>),
    /// Changes an object.
    Object(Part),
    /// Changes an item of a list, which the keys identify.
    Item(Vec<LitStr>, Part),
    /// Adds whole items to a list, which the keys identify.
    Items(Vec<LitStr>, Type),
    /// Sets all items of a list.
    List(Argument),
    /// Adds items to a set.
    Set(Argument),
    /// Changes an entry of a map.
    Entry(Type, Part),
    /// Adds entries to a map, or sets all of them.
    Map { key: Argument, value: Argument, whole: bool },
}

/// The type of an argument.
pub(super) enum Argument {
    /// Exactly this type.
    Exact(Type),
    /// Whatever converts into this type.
    Into(Type),
}

/// The configuration of a part.
pub(super) enum Part {
    /// That of a type that derives `Apply`.
    Of(Type),
    /// A type that the user names.
    Named(Type),
}

impl Field {
    /// Reads a field. Returns `None` for one that has no method.
    pub(super) fn read(field: &syn::Field, case: Case, errors: &mut Errors) -> Option<Self> {
        let ident = field.ident.clone()?;
        let serde = Serde::read(field);
        let own = Own::read(field, errors);
        let rules = of_attributes(&field.attrs, &["x_kube"]).unwrap_or_default();
        if serde.skip || own.skip {
            return None;
        }
        let strategy = rules.iter().find(|rule| rule.name == "merge_strategy").and_then(|rule| rule.expression().ok());
        let merge = match strategy {
            Some(strategy) => errors.keep(merge::read(&strategy))?,
            None => Merge::Default,
        };
        let form = match own.form(field, merge, serde.wrapped) {
            Ok(form) => form,
            Err(message) => {
                errors.add(Error::new(ident.span(), message));
                return None;
            }
        };
        if serde.flatten && !matches!(form, Form::Value(_) | Form::Object(_) | Form::Map { .. }) {
            errors.add(Error::new(ident.span(), "only structs, enums and maps of values can be flattened"));
            return None;
        }
        let is_one = matches!(form, Form::Item(..) | Form::Entry(..));
        let method = own.method.unwrap_or_else(|| {
            let name = names::ident(field);
            let name = if is_one { names::singular(&name) } else { name };
            syn::parse_str(&name).unwrap_or_else(|_| Ident::new_raw(&name, ident.span()))
        });
        Some(Self {
            visibility: field.vis.clone(),
            docs: field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect(),
            name: names::of_field(field, case),
            method,
            form,
            flatten: serde.flatten,
            has_rules: !rules.is_empty(),
            ident,
        })
    }
}

/// The attributes of serde that change the form of a field.
struct Serde {
    skip: bool,
    flatten: bool,
    /// The attribute for the function that writes the value.
    wrapped: Option<Vec<Attribute>>,
}

impl Serde {
    fn read(field: &syn::Field) -> Self {
        let arguments = of_attributes(&field.attrs, &["serde"]).unwrap_or_default();
        let has = |names: &[&str]| arguments.iter().any(|argument| names.contains(&argument.name.as_str()));
        let writer = arguments.iter().find(|argument| ["with", "serialize_with"].contains(&argument.name.as_str()));
        let wrapped = writer.and_then(|writer| {
            let (name, path) = (Ident::new(&writer.name, Span::call_site()), writer.text().ok()?);
            // `with` names a module with both directions; the wrapper only writes.
            let path =
                if name == "with" { LitStr::new(&format!("{}::serialize", path.value()), path.span()) } else { path };
            Some(vec![syn::parse_quote!(#[serde(serialize_with = #path)])])
        });
        Self { skip: has(&["skip", "skip_deserializing"]), flatten: has(&["flatten"]), wrapped }
    }
}

/// The arguments of `#[apply(...)]`.
#[derive(Default)]
struct Own {
    skip: bool,
    value: bool,
    with: Option<Type>,
    method: Option<Ident>,
}

impl Own {
    fn read(field: &syn::Field, errors: &mut Errors) -> Self {
        let mut own = Self::default();
        for argument in errors.keep(of_attributes(&field.attrs, &["apply"])).unwrap_or_default() {
            match argument.name.as_str() {
                "skip" => own.skip = errors.keep(argument.flag()).unwrap_or_default(),
                "value" => own.value = errors.keep(argument.flag()).unwrap_or_default(),
                "with" => set(&mut own.with, &argument, argument.parsed("a type"), errors),
                "method" => {
                    let method = argument.text().and_then(|text| text.parse::<Ident>());
                    set(&mut own.method, &argument, method, errors);
                }
                _ => errors.add(argument.unknown(&["value", "with", "method", "skip"])),
            }
            if own.value && own.with.is_some() {
                errors.add(
                    argument.error("`value` sets the field whole, and `with` changes it part by part: remove one"),
                );
            }
        }
        own
    }

    fn form(&self, field: &syn::Field, merge: Merge, wrapped: Option<Vec<Attribute>>) -> Result<Form, &'static str> {
        let only_lists = "`ListMerge` is for lists: use `MapMerge` for maps and structs";
        let shape = shape(field.ty.clone());
        if let Some(attributes) = wrapped {
            return match merge {
                Merge::Default | Merge::Atomic => Ok(Form::Wrapped(field.ty.clone(), attributes)),
                _ => Err(
                    "serde writes this list with a function, so that it can only be set whole: remove `merge_strategy`, or add `#[apply(skip)]`",
                ),
            };
        }
        match (shape, merge) {
            (Shape::List(item), Merge::Keys(keys)) => Ok(match self.part(&item) {
                Some(part) => Form::Item(keys, part),
                None => Form::Items(keys, item),
            }),
            (Shape::List(item), Merge::Set) => Ok(Form::Set(argument(item))),
            (Shape::List(item), _) => Ok(Form::List(argument(item))),
            (_, Merge::Keys(_) | Merge::Set) => Err(only_lists),
            (Shape::Map(key, value), Merge::Atomic) => {
                Ok(Form::Map { key: argument(*key), value: argument(*value), whole: true })
            }
            (Shape::Map(key, value), Merge::Default) => Ok(match self.part(&value) {
                Some(part) => Form::Entry(*key, part),
                None => Form::Map { key: argument(*key), value: argument(*value), whole: false },
            }),
            (Shape::Nested(ty), Merge::Atomic) => Ok(Form::Value(Argument::Into(ty))),
            (Shape::Scalar(ty) | Shape::Text(ty) | Shape::Value(ty) | Shape::Nested(ty), _) => {
                Ok(match self.part(&ty) {
                    Some(part) => Form::Object(part),
                    None => Form::Value(argument(ty)),
                })
            }
        }
    }

    /// Returns the configuration of a type; `None` if it is set by value.
    fn part(&self, ty: &Type) -> Option<Part> {
        if let Some(with) = &self.with {
            return Some(Part::Named(with.clone()));
        }
        match shape(ty.clone()) {
            Shape::Nested(nested) if !self.value => Some(Part::Of(nested)),
            _ => None,
        }
    }
}

fn argument(ty: Type) -> Argument {
    match shape(ty.clone()) {
        Shape::Scalar(_) | Shape::List(_) | Shape::Map(..) => Argument::Exact(ty),
        Shape::Text(_) | Shape::Value(_) | Shape::Nested(_) => Argument::Into(ty),
    }
}
