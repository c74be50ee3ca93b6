//! The label and field selectors of a list, watch or delete.

mod label_problem;

use std::sync::Arc;

use klient_core::{FieldSelector, LabelSelector, Quoted, Status};
use serde_json::Value;

use crate::{
    Result,
    call::Call,
    registry::{Resource, Schema},
    store::Stored,
};

/// The selectors of a request.
#[derive(Clone)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// The custom kind of the objects, whose fields are those of its version.
    custom: Option<Arc<Resource>>,
}

impl Selection {
    /// Parses the selectors of a request.
    pub(crate) fn of_call(resource: &Arc<Resource>, call: &Call) -> Result<Self> {
        let labels: LabelSelector = match call.param("labelSelector") {
            Some(text) => text.parse().map_err(|_| Box::new(Status::bad_request(label_problem::of(text))))?,
            None => LabelSelector::everything(),
        };
        let fields: FieldSelector = match call.param("fieldSelector") {
            Some(text) => text.parse().map_err(|_| {
                Box::new(Status::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'")))
            })?,
            None => FieldSelector::everything(),
        };
        for requirement in fields.requirements() {
            let field = requirement.field();
            if !is_supported(resource, field) {
                let has_own = !resource.hooks.selectable.is_empty() || resource.is_custom();
                let message = if has_own {
                    format!("field label not supported: {field}")
                } else {
                    format!(
                        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                        Quoted(field)
                    )
                };
                return Err(Box::new(Status::bad_request(message)));
            }
        }
        Ok(Self { labels, fields, custom: resource.is_custom().then(|| Arc::clone(resource)) })
    }

    /// Restricts the selection to one object.
    pub(crate) fn of_name(mut self, name: &str) -> Self {
        self.fields = self.fields.eq("metadata.name", name);
        self
    }

    /// Returns whether objects are selected by other fields than their name and namespace.
    pub(crate) fn reads_objects(&self) -> bool {
        self.fields.requirements().iter().any(|requirement| !requirement.field().starts_with("metadata."))
    }

    /// Returns whether all objects are selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Returns whether an object is selected. Objects that a webhook converts must be in the version of the request if their fields are
    /// read.
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        let raw = stored.raw();
        if !self.labels.is_everything() && !self.labels.matches(|key| raw.label(key)) {
            return false;
        }
        if self.fields.is_everything() {
            return true;
        }
        // The object is parsed only for fields besides name and namespace.
        let mut value: Option<Value> = None;
        let parsed = || match &self.custom {
            Some(resource) => stored.shown_as(resource),
            None => stored.value(),
        };
        self.fields.matches(|field| {
            Some(match field {
                "metadata.name" => raw.name().into_owned(),
                "metadata.namespace" => raw.namespace().unwrap_or_default().into_owned(),
                field => text_at(value.get_or_insert_with(parsed), field),
            })
        })
    }
}

/// Returns the value of a field as text. A missing field is an empty text.
fn text_at(object: &Value, path: &str) -> String {
    // Events are stored in the version that wrote them, and both groups select by their own field names.
    let path = match path.split_once('.') {
        Some(("regarding", _)) if object.get("regarding").is_none() => &path.replacen("regarding", "involvedObject", 1),
        Some(("involvedObject", _)) if object.get("regarding").is_some() => {
            &path.replacen("involvedObject", "regarding", 1)
        }
        None if path == "source" => match object.get("deprecatedSource") {
            Some(_) => "deprecatedSource.component",
            None => "source.component",
        },
        _ => path,
    };
    let found = path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        // Fields that are false or zero are often absent.
        _ if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ if path.ends_with("replicas") || path.ends_with("successful") => "0".to_owned(),
        _ => String::new(),
    }
}

fn is_supported(resource: &Resource, field: &str) -> bool {
    if field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced) {
        return true;
    }
    if let Schema::Custom(schema) = &resource.schema {
        return schema.selectable.iter().any(|path| path.trim_start_matches('.') == field);
    }
    resource.hooks.selectable.contains(&field)
}
