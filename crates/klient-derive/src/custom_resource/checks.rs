//! Errors for values and combinations that the server would refuse, or that would have no effect.

use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, Meta, Result};

use super::settings::{SchemaMode, Settings};
use crate::{
    arguments::{Errors, of_attributes},
    suggestion::did_you_mean,
};

pub(super) fn check(settings: &Settings, input: &DeriveInput) -> Result<()> {
    let mut errors = Errors::default();
    check_input(settings, input, &mut errors);
    check_names(settings, &mut errors);
    check_combinations(settings, &mut errors);
    check_paths(settings, &mut errors);
    check_derives(settings, &mut errors);
    errors.finish()
}

fn check_input(settings: &Settings, input: &DeriveInput, errors: &mut Errors) {
    if matches!(input.data, Data::Union(_)) {
        errors.add(Error::new_spanned(&input.ident, "a union cannot be a custom resource: use a struct or an enum"));
    }
    if !input.generics.params.is_empty() {
        let message =
            "a custom resource cannot be generic: its schema needs one concrete type; use a type alias or a newtype";
        errors.add(Error::new_spanned(&input.generics, message));
    }
    if input.ident == settings.root().value() {
        let message = format!(
            "`{0}` is the name of the struct that is generated: rename this struct to `{0}Spec`, or set `root`",
            input.ident
        );
        errors.add(Error::new_spanned(settings.root(), message));
    }
    let Some(no_spec) = settings.no_spec else { return };
    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Some(&fields.named),
            _ => None,
        },
        _ => None,
    };
    let Some(fields) = named else {
        let message = "`no_spec` needs a struct with named fields, which become fields of the object: remove `no_spec`";
        errors.add(Error::new(no_spec, message));
        return;
    };
    for field in fields {
        if let Some(name) = reserved_name(field) {
            let message =
                format!("`no_spec` makes this a field of the object, which has its own `{name}`: rename the field");
            errors.add(Error::new_spanned(&field.ident, message));
        }
    }
}

/// Returns the name of a field on the wire if every object has a field of that name.
fn reserved_name(field: &Field) -> Option<String> {
    let ident = field.ident.as_ref()?.to_string();
    let mut names = vec![ident.strip_prefix("r#").unwrap_or(&ident).to_owned()];
    // Whatever serde does not understand is reported by serde.
    for argument in of_attributes(&field.attrs, &["serde"]).unwrap_or_default() {
        match (argument.name.as_str(), argument.nested()) {
            ("rename", Some(Ok(nested))) => {
                names = nested.iter().filter_map(|one| one.text().ok()).map(|text| text.value()).collect();
            }
            ("rename", _) => names = argument.text().into_iter().map(|text| text.value()).collect(),
            _ => {}
        }
    }
    names.into_iter().find(|name| ["apiVersion", "api_version", "kind", "metadata", "status"].contains(&&**name))
}

fn check_names(settings: &Settings, errors: &mut Errors) {
    let group = settings.group.value();
    if !group.contains('.') || !group.split('.').all(is_label) {
        let message =
            format!("`{group}` is not an API group: use a domain with a dot in lower case, such as `example.com`");
        errors.add(Error::new_spanned(&settings.group, message));
    }
    if !is_label(&settings.version.value()) {
        let message = format!("`{}` is not a version: use `v1`, `v1beta1` or `v1alpha1`", settings.version.value());
        errors.add(Error::new_spanned(&settings.version, message));
    }
    let kind = settings.kind.value();
    if !is_label(&kind.to_ascii_lowercase()) || !kind.starts_with(|first: char| first.is_ascii_uppercase()) {
        let message = format!("`{kind}` is not a kind: use a name in camel case, such as `CronTab`");
        errors.add(Error::new_spanned(&settings.kind, message));
    }
    if let Some(root) = &settings.root
        && syn::parse_str::<syn::Ident>(&root.value()).is_err()
    {
        errors.add(Error::new_spanned(root, format!("`{}` is not the name of a struct", root.value())));
    }
    let names =
        settings.singular.iter().chain(&settings.plural).chain(&settings.shortnames).chain(&settings.categories);
    for name in names.filter(|name| !is_label(&name.value())) {
        let message = format!("`{}` is not a resource name: use lower-case letters, digits and `-`", name.value());
        errors.add(Error::new_spanned(name, message));
    }
}

fn check_combinations(settings: &Settings, errors: &mut Errors) {
    if let (Some((span, _)), None) = (&settings.scale, &settings.status) {
        let message = "`scale` needs `status`, where the number of replicas is read: add `status = \"...\"`";
        errors.add(Error::new(*span, message));
    }
    if settings.schema != SchemaMode::Derived {
        for (span, _) in &settings.validations {
            let message = "`validation` needs a derived schema: remove `schema`, or add the rules to your own schema";
            errors.add(Error::new(*span, message));
        }
    }
    check_cel(settings, cfg!(feature = "cel"), errors);
    if settings.schema == SchemaMode::Disabled
        && let Some(selectable) = settings.selectable.first()
    {
        let message = "`selectable` needs a schema, which has the type of the field: remove `schema = \"disabled\"`";
        errors.add(Error::new_spanned(selectable, message));
    }
    if let Some(ninth) = settings.selectable.get(8) {
        errors.add(Error::new_spanned(ninth, "a version has at most 8 `selectable` fields: remove the others"));
    }
}

fn check_cel(settings: &Settings, is_enabled: bool, errors: &mut Errors) {
    let Some(span) = settings.cel else { return };
    if let Some(message) = cel_problem(is_enabled) {
        errors.add(Error::new(span, message));
    }
    if settings.schema != SchemaMode::Derived {
        errors.add(Error::new(span, "`cel` needs a derived schema, which has the rules: remove `schema`"));
    }
}

fn check_paths(settings: &Settings, errors: &mut Errors) {
    for column in &settings.columns {
        check_path(&column.json_path, errors);
        let types = ["integer", "number", "string", "boolean", "date"];
        let kind = column.kind.value();
        if !types.contains(&&*kind) {
            let message = format!("`{kind}` is not a type of columns{}", did_you_mean(&kind, &types));
            errors.add(Error::new_spanned(&column.kind, message));
        }
    }
    for path in &settings.selectable {
        check_path(path, errors);
        if path.value().starts_with(".metadata") {
            let message =
                "fields of `metadata` cannot be `selectable`: `metadata.name` and `metadata.namespace` always are";
            errors.add(Error::new_spanned(path, message));
        }
    }
    if let Some((_, scale)) = &settings.scale {
        let paths = [(&scale.spec_replicas_path, ".spec."), (&scale.status_replicas_path, ".status.")];
        for (path, prefix) in paths {
            check_path(path, errors);
            if !path.value().starts_with(prefix) {
                let message = format!("`{}` must be a path under `{}`", path.value(), prefix.trim_end_matches('.'));
                errors.add(Error::new_spanned(path, message));
            }
        }
        if let Some(path) = &scale.label_selector_path {
            check_path(path, errors);
            if !path.value().starts_with(".spec.") && !path.value().starts_with(".status.") {
                let message = format!("`{}` must be a path under `.spec` or `.status`", path.value());
                errors.add(Error::new_spanned(path, message));
            }
        }
    }
}

fn check_path(path: &LitStr, errors: &mut Errors) {
    let value = path.value();
    if !value.starts_with('.') {
        let path_with_dot = format!(".{}", value.trim_start_matches(['$', '{']).trim_end_matches('}'));
        let message = format!("a JSON path begins with a dot: did you mean `{path_with_dot}`?");
        errors.add(Error::new_spanned(path, message));
    }
}

fn check_derives(settings: &Settings, errors: &mut Errors) {
    for (text, path) in &settings.derives {
        let Some(last) = path.segments.last() else { continue };
        let always = ["Serialize", "Deserialize", "Clone", "Debug"].iter().any(|name| last.ident == name);
        let schema =
            settings.schema == SchemaMode::Derived && (last.ident == "JsonSchema" || last.ident == "KubeSchema");
        if always || schema {
            let message = format!("the generated struct implements `{}` already: remove this `derive`", last.ident);
            errors.add(Error::new_spanned(text, message));
        }
    }
    for meta in &settings.attributes {
        if let Meta::NameValue(pair) = meta
            && pair.path.is_ident("doc")
        {
            errors.add(Error::new_spanned(pair, "use `doc = \"...\"` for the documentation of the generated struct"));
        }
    }
}

/// Returns whether a text is a DNS label: lower-case letters, digits and inner hyphens.
fn is_label(text: &str) -> bool {
    let is_edge = |character: Option<char>| character.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= 63
        && is_edge(text.chars().next())
        && is_edge(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Returns why `cel` cannot be used, if klient's feature is not enabled.
pub(crate) fn cel_problem(is_enabled: bool) -> Option<&'static str> {
    let message = "`cel` needs the feature `cel` of klient, which evaluates rules on the client: \
        `klient = { version = \"...\", features = [\"cel\"] }`";
    (!is_enabled).then_some(message)
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn cel_needs_the_feature_and_a_derived_schema() {
        let messages = |input: DeriveInput, is_enabled| {
            let mut errors = Errors::default();
            check_cel(&Settings::read(&input).unwrap(), is_enabled, &mut errors);
            let error = errors.finish().err();
            error.into_iter().flatten().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let derived: DeriveInput = parse_quote! {
            #[kube(group = "example.com", version = "v1", kind = "Shop", cel)]
            struct ShopSpec {}
        };
        assert_eq!(messages(derived.clone(), true), [""; 0]);
        assert!(messages(derived, false)[0].starts_with("`cel` needs the feature `cel` of klient"));
        let manual: DeriveInput = parse_quote! {
            #[kube(group = "example.com", version = "v1", kind = "Shop", cel, schema = "manual")]
            struct ShopSpec {}
        };
        assert_eq!(messages(manual, true), ["`cel` needs a derived schema, which has the rules: remove `schema`"]);
    }

    #[test]
    fn reserved_names_are_those_on_the_wire() {
        let name = |input: DeriveInput| match input.data {
            Data::Struct(data) => data.fields.iter().find_map(reserved_name),
            _ => None,
        };
        assert_eq!(
            name(parse_quote!(
                struct A {
                    metadata: u8,
                }
            ))
            .as_deref(),
            Some("metadata")
        );
        assert_eq!(
            name(parse_quote!(
                struct A {
                    r#kind: u8,
                }
            ))
            .as_deref(),
            Some("kind")
        );
        assert_eq!(
            name(parse_quote!(
                struct A {
                    #[serde(rename = "status")]
                    a: u8,
                }
            ))
            .as_deref(),
            Some("status")
        );
        assert_eq!(
            name(parse_quote!(
                struct A {
                    #[serde(rename(serialize = "kind"))]
                    a: u8,
                }
            ))
            .as_deref(),
            Some("kind")
        );
        assert_eq!(
            name(parse_quote!(
                struct A {
                    #[serde(rename = "type", default)]
                    kind: u8,
                }
            )),
            None
        );
    }

    #[test]
    fn labels_are_lower_case_with_inner_hyphens() {
        assert!(["a", "v1", "a-b", &"a".repeat(63)].iter().all(|text| is_label(text)));
        assert!(!["", "A", "-a", "a-", "a.b", &"a".repeat(64)].iter().any(|text| is_label(text)));
    }
}
