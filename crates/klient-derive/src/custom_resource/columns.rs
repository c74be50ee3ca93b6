//! `printcolumn` and `scale`, as a list of values or as a string with a JSON object.

use proc_macro2::Span;
use syn::{Error, LitStr, Result};

use super::json_object::{self, Json};
use crate::arguments::{Argument, Errors, set};

/// A printer column.
pub(crate) struct Column {
    pub(crate) name: LitStr,
    pub(crate) kind: LitStr,
    pub(crate) json_path: LitStr,
    pub(crate) description: Option<LitStr>,
    pub(crate) format: Option<LitStr>,
    pub(crate) priority: Option<i32>,
}

/// The paths of the scale subresource.
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: LitStr,
    pub(crate) status_replicas_path: LitStr,
    pub(crate) label_selector_path: Option<LitStr>,
}

impl Column {
    pub(crate) fn read(argument: &Argument) -> Result<Self> {
        let Some(list) = argument.nested() else { return Self::from_json(argument) };
        let mut errors = Errors::default();
        let (mut name, mut kind, mut json_path) = (None, None, None);
        let (mut description, mut format, mut priority) = (None, None, None);
        for one in list? {
            match one.name.as_str() {
                "name" => set(&mut name, &one, one.text(), &mut errors),
                "type_" | "type" => set(&mut kind, &one, one.text(), &mut errors),
                "json_path" => set(&mut json_path, &one, one.text(), &mut errors),
                "description" => set(&mut description, &one, one.text(), &mut errors),
                "format" => set(&mut format, &one, one.text(), &mut errors),
                "priority" => set(&mut priority, &one, one.integer(), &mut errors),
                _ => {
                    let known = ["name", "type_", "json_path", "description", "format", "priority"];
                    errors.add(one.unknown(&known));
                }
            }
        }
        errors.finish()?;
        let mut fields = Fields { argument, errors: Errors::default() };
        let (name, kind, json_path) =
            (fields.required("name", name), fields.required("type_", kind), fields.required("json_path", json_path));
        fields.errors.finish()?;
        Ok(Self { name, kind, json_path, description, format, priority })
    }

    fn from_json(argument: &Argument) -> Result<Self> {
        let (mut object, span) = json(argument)?;
        let mut fields = Fields { argument, errors: Errors::default() };
        let mut text = |key: &str| match object.remove(key) {
            Some(Json::Text(text)) => Some(LitStr::new(&text, span)),
            _ => None,
        };
        let (name, kind, json_path) = (text("name"), text("type"), text("jsonPath"));
        let (description, format) = (text("description"), text("format"));
        let column = Self {
            name: fields.required("name", name),
            kind: fields.required("type", kind),
            json_path: fields.required("jsonPath", json_path),
            description,
            format,
            priority: match object.remove("priority") {
                Some(Json::Integer(priority)) => Some(priority),
                _ => None,
            },
        };
        fields.errors.finish()?;
        Ok(column)
    }
}

impl Scale {
    pub(crate) fn read(argument: &Argument) -> Result<Self> {
        let Some(list) = argument.nested() else { return Self::from_json(argument) };
        let mut errors = Errors::default();
        let (mut spec, mut status, mut selector) = (None, None, None);
        for one in list? {
            match one.name.as_str() {
                "spec_replicas_path" => set(&mut spec, &one, one.text(), &mut errors),
                "status_replicas_path" => set(&mut status, &one, one.text(), &mut errors),
                "label_selector_path" => set(&mut selector, &one, one.text(), &mut errors),
                _ => {
                    let known = ["spec_replicas_path", "status_replicas_path", "label_selector_path"];
                    errors.add(one.unknown(&known));
                }
            }
        }
        errors.finish()?;
        Self::of(argument, ["spec_replicas_path", "status_replicas_path"], spec, status, selector)
    }

    fn from_json(argument: &Argument) -> Result<Self> {
        let (mut object, span) = json(argument)?;
        let mut text = |key: &str| match object.remove(key) {
            Some(Json::Text(text)) => Some(LitStr::new(&text, span)),
            _ => None,
        };
        let (spec, status, selector) =
            (text("specReplicasPath"), text("statusReplicasPath"), text("labelSelectorPath"));
        Self::of(argument, ["specReplicasPath", "statusReplicasPath"], spec, status, selector)
    }

    fn of(
        argument: &Argument,
        names: [&str; 2],
        spec: Option<LitStr>,
        status: Option<LitStr>,
        label_selector_path: Option<LitStr>,
    ) -> Result<Self> {
        let mut fields = Fields { argument, errors: Errors::default() };
        let scale = Self {
            spec_replicas_path: fields.required(names[0], spec),
            status_replicas_path: fields.required(names[1], status),
            label_selector_path,
        };
        fields.errors.finish()?;
        Ok(scale)
    }
}

/// Required fields of an argument; errors are collected.
struct Fields<'a> {
    argument: &'a Argument,
    errors: Errors,
}

impl Fields<'_> {
    fn required(&mut self, name: &str, value: Option<LitStr>) -> LitStr {
        value.unwrap_or_else(|| {
            self.errors.add(self.argument.error(format!("`{}` has no `{name}`", self.argument.name)));
            LitStr::new("", Span::call_site())
        })
    }
}

fn json(argument: &Argument) -> Result<(std::collections::BTreeMap<String, Json>, Span)> {
    let text = argument
        .text()
        .map_err(|_| argument.error(format!("`{0}` needs a list of values: `{0}(...)`", argument.name)))?;
    let object = json_object::parse(&text.value()).map_err(|message| Error::new_spanned(&text, message))?;
    Ok((object, text.span()))
}
