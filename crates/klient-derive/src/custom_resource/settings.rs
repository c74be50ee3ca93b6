//! The attributes of `#[derive(CustomResource)]`, as values.

use proc_macro2::{Span, TokenStream};
use syn::{DeriveInput, Error, LitStr, Meta, Path, Result, Type};

use super::columns::{Column, Scale};
use crate::{
    arguments::{Argument, Errors, of_attributes, set},
    crates::Crates,
    suggestion::did_you_mean,
};

/// The values of the attributes.
pub(crate) struct Settings {
    pub(crate) group: LitStr,
    pub(crate) version: LitStr,
    pub(crate) kind: LitStr,
    pub(crate) root: Option<LitStr>,
    pub(crate) singular: Option<LitStr>,
    pub(crate) plural: Option<LitStr>,
    pub(crate) doc: Option<LitStr>,
    pub(crate) namespaced: bool,
    pub(crate) no_spec: Option<Span>,
    pub(crate) status: Option<Type>,
    pub(crate) scale: Option<(Span, Scale)>,
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable: Vec<LitStr>,
    pub(crate) categories: Vec<LitStr>,
    pub(crate) shortnames: Vec<LitStr>,
    pub(crate) annotations: Vec<(LitStr, LitStr)>,
    pub(crate) labels: Vec<(LitStr, LitStr)>,
    pub(crate) derives: Vec<(LitStr, Path)>,
    pub(crate) attributes: Vec<Meta>,
    pub(crate) schema: SchemaMode,
    pub(crate) validations: Vec<(Span, TokenStream)>,
    pub(crate) cel: Option<Span>,
    pub(crate) storage: bool,
    pub(crate) served: bool,
    pub(crate) deprecated: Option<Option<LitStr>>,
    pub(crate) crates: Crates,
}

/// Where the schema comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaMode {
    /// From the types.
    Derived,
    /// From an implementation of `JsonSchema` by the user.
    Manual,
    /// There is none.
    Disabled,
}

impl Settings {
    /// Reads the attributes. All errors are reported together.
    pub(crate) fn read(input: &DeriveInput) -> Result<Self> {
        let mut errors = Errors::default();
        let mut raw = Raw::default();
        let arguments = of_attributes(&input.attrs, &["kube", "klient"])?;
        for argument in &arguments {
            raw.read(argument, &mut errors);
        }
        for (name, example) in [("group", "example.com"), ("version", "v1"), ("kind", "Shop")] {
            if !arguments.iter().any(|argument| argument.name == name) {
                let message = format!("missing attribute `{name}`: add `#[kube({name} = \"{example}\")]`");
                errors.add(Error::new_spanned(&input.ident, message));
            }
        }
        let (group, version, kind) = (raw.group.take(), raw.version.take(), raw.kind.take());
        errors.finish()?;
        // An absent value is an error above.
        let or_empty = |text: Option<LitStr>| text.unwrap_or_else(|| LitStr::new("", Span::call_site()));
        Ok(Self {
            group: or_empty(group),
            version: or_empty(version),
            kind: or_empty(kind),
            root: raw.root,
            singular: raw.singular,
            plural: raw.plural,
            doc: raw.doc,
            namespaced: raw.namespaced.unwrap_or_default(),
            no_spec: raw.no_spec.flatten(),
            status: raw.status,
            scale: raw.scale,
            columns: raw.columns,
            selectable: raw.selectable,
            categories: raw.categories,
            shortnames: raw.shortnames,
            annotations: raw.annotations,
            labels: raw.labels,
            derives: raw.derives,
            attributes: raw.attributes,
            schema: raw.schema.unwrap_or(SchemaMode::Derived),
            validations: raw.validations,
            cel: raw.cel.flatten(),
            storage: raw.storage.unwrap_or(true),
            served: raw.served.unwrap_or(true),
            deprecated: raw.deprecated,
            crates: raw.crates,
        })
    }

    /// Returns the name of the generated struct.
    pub(crate) fn root(&self) -> &LitStr {
        self.root.as_ref().unwrap_or(&self.kind)
    }

    /// Returns the singular: by default the kind in lower case.
    pub(crate) fn singular(&self) -> String {
        self.singular.as_ref().map_or_else(|| self.kind.value().to_ascii_lowercase(), LitStr::value)
    }

    /// Returns the plural: by default the English plural of the singular.
    pub(crate) fn plural(&self) -> String {
        self.plural.as_ref().map_or_else(|| pluralize(&self.singular()), LitStr::value)
    }
}

/// The attributes that were read so far.
#[derive(Default)]
struct Raw {
    group: Option<LitStr>,
    version: Option<LitStr>,
    kind: Option<LitStr>,
    root: Option<LitStr>,
    singular: Option<LitStr>,
    plural: Option<LitStr>,
    doc: Option<LitStr>,
    namespaced: Option<bool>,
    no_spec: Option<Option<Span>>,
    status: Option<Type>,
    scale: Option<(Span, Scale)>,
    columns: Vec<Column>,
    selectable: Vec<LitStr>,
    categories: Vec<LitStr>,
    shortnames: Vec<LitStr>,
    annotations: Vec<(LitStr, LitStr)>,
    labels: Vec<(LitStr, LitStr)>,
    derives: Vec<(LitStr, Path)>,
    attributes: Vec<Meta>,
    schema: Option<SchemaMode>,
    validations: Vec<(Span, TokenStream)>,
    cel: Option<Option<Span>>,
    storage: Option<bool>,
    served: Option<bool>,
    deprecated: Option<Option<LitStr>>,
    crates: Crates,
}

impl Raw {
    fn read(&mut self, argument: &Argument, errors: &mut Errors) {
        let spanned_flag = || Ok(argument.flag()?.then_some(argument.span));
        match argument.name.as_str() {
            "group" => set(&mut self.group, argument, argument.text(), errors),
            "version" => set(&mut self.version, argument, argument.text(), errors),
            "kind" => set(&mut self.kind, argument, argument.text(), errors),
            "root" => set(&mut self.root, argument, argument.text(), errors),
            "singular" => set(&mut self.singular, argument, argument.text(), errors),
            "plural" => set(&mut self.plural, argument, argument.text(), errors),
            "doc" => set(&mut self.doc, argument, argument.text(), errors),
            "namespaced" => set(&mut self.namespaced, argument, argument.flag(), errors),
            "no_spec" => set(&mut self.no_spec, argument, spanned_flag(), errors),
            "cel" => set(&mut self.cel, argument, spanned_flag(), errors),
            "status" => set(&mut self.status, argument, argument.parsed("a type"), errors),
            "scale" => {
                let scale = Scale::read(argument).map(|scale| (argument.span, scale));
                set(&mut self.scale, argument, scale, errors);
            }
            "schema" => set(&mut self.schema, argument, schema_mode(argument), errors),
            "storage" => set(&mut self.storage, argument, argument.flag(), errors),
            "served" => set(&mut self.served, argument, argument.flag(), errors),
            "deprecated" => set(&mut self.deprecated, argument, argument.optional_text(), errors),
            "crates" => {
                errors.keep(self.crates.read(argument));
            }
            "printcolumn" => self.columns.extend(errors.keep(Column::read(argument))),
            "selectable" => self.selectable.extend(errors.keep(argument.text())),
            "category" => self.categories.extend(errors.keep(argument.text())),
            "shortname" => self.shortnames.extend(errors.keep(argument.text())),
            "annotation" => self.annotations.extend(errors.keep(argument.pair())),
            "label" => self.labels.extend(errors.keep(argument.pair())),
            "derive" => self.derives.extend(errors.keep(derive_path(argument))),
            "attr" => self.attributes.extend(errors.keep(root_attribute(argument))),
            "validation" => {
                let rule = argument.expression().map(|rule| (argument.span, rule));
                self.validations.extend(errors.keep(rule));
            }
            _ => errors.add(argument.unknown(KNOWN)),
        }
    }
}

fn schema_mode(argument: &Argument) -> Result<SchemaMode> {
    let text = argument.text()?;
    match text.value().as_str() {
        "derived" => Ok(SchemaMode::Derived),
        "manual" => Ok(SchemaMode::Manual),
        "disabled" => Ok(SchemaMode::Disabled),
        other => {
            let suggestion = did_you_mean(other, &["derived", "manual", "disabled"]);
            Err(Error::new_spanned(text, format!("unknown schema mode `{other}`{suggestion}")))
        }
    }
}

fn derive_path(argument: &Argument) -> Result<(LitStr, Path)> {
    let text = argument.text()?;
    let path = text.parse()?;
    Ok((text, path))
}

fn root_attribute(argument: &Argument) -> Result<Meta> {
    let text = argument.text()?;
    let meta: Meta = text.parse()?;
    if meta.path().is_ident("derive") {
        let message = "`attr` cannot add derives: use `derive = \"...\"`";
        return Err(Error::new_spanned(text, message));
    }
    if meta.path().is_ident("serde") || meta.path().is_ident("schemars") {
        let message = "`attr` cannot set `serde` or `schemars` attributes, which would conflict with the generated ones: \
            put them on the struct that derives `CustomResource`";
        return Err(Error::new_spanned(text, message));
    }
    Ok(meta)
}

/// Returns the English plural of a regular noun.
fn pluralize(word: &str) -> String {
    if ["s", "x", "z", "ch", "sh"].iter().any(|ending| word.ends_with(ending)) {
        return format!("{word}es");
    }
    let consonant = |text: &str| text.chars().next_back().is_some_and(|last| !"aeiou".contains(last));
    match word.strip_suffix('y') {
        Some(stem) if consonant(stem) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

const KNOWN: &[&str] = &[
    "group",
    "version",
    "kind",
    "root",
    "singular",
    "plural",
    "doc",
    "namespaced",
    "no_spec",
    "status",
    "scale",
    "printcolumn",
    "selectable",
    "category",
    "shortname",
    "annotation",
    "label",
    "derive",
    "attr",
    "schema",
    "validation",
    "cel",
    "storage",
    "served",
    "deprecated",
    "crates",
];

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn plurals_are_regular() {
        for (word, plural) in
            [("proxy", "proxies"), ("day", "days"), ("box", "boxes"), ("bus", "buses"), ("shop", "shops"), ("y", "ys")]
        {
            assert_eq!(pluralize(word), plural);
        }
    }
}
