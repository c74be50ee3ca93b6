//! Reads and writes the objects of a kubeconfig, field by field.
//!
//! It does not use serde's derive, for three reasons: errors name the field by its path, no error quotes a value, and
//! every unknown field is collected, to be written back.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::problem::Problem;
use crate::client::{config::EmbeddedData, config::Secret};

/// An object that is being read. Absent, null and empty fields are all the same, as in client-go.
pub(super) struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    /// Starts to read the object at that path.
    pub(super) fn new(path: impl Into<String>, value: Value) -> Result<Self, Problem> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            Value::Null => Ok(Self { path, map: Map::new() }),
            other => Err(unexpected(path, "an object", &other)),
        }
    }

    /// Returns the path of a field in this object.
    pub(super) fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, Problem> {
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(other) => Err(unexpected(self.path_of(field), "a string", &other)),
        }
    }

    pub(super) fn path(&mut self, field: &str) -> Result<Option<PathBuf>, Problem> {
        Ok(self.text(field)?.map(PathBuf::from))
    }

    pub(super) fn secret(&mut self, field: &str) -> Result<Option<Secret>, Problem> {
        Ok(self.text(field)?.map(Secret::new))
    }

    pub(super) fn data(&mut self, field: &str) -> Result<Option<EmbeddedData>, Problem> {
        Ok(self.text(field)?.map(EmbeddedData::from_base64))
    }

    pub(super) fn flag(&mut self, field: &str) -> Result<bool, Problem> {
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(unexpected(self.path_of(field), "true or false", &other)),
        }
    }

    /// Returns the object in a field, if any.
    pub(super) fn object(&mut self, field: &str) -> Result<Option<Self>, Problem> {
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => Self::new(self.path_of(field), value).map(Some),
        }
    }

    /// Returns the items of a list, each with its path.
    pub(super) fn list(&mut self, field: &str) -> Result<Vec<(String, Value)>, Problem> {
        let path = self.path_of(field);
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                Ok(items.into_iter().enumerate().map(|(i, item)| (format!("{path}[{i}]"), item)).collect())
            }
            Some(other) => Err(unexpected(path, "a list", &other)),
        }
    }

    pub(super) fn texts(&mut self, field: &str) -> Result<Vec<String>, Problem> {
        self.list(field)?
            .into_iter()
            .map(|(path, item)| match item {
                Value::String(text) => Ok(text),
                other => Err(unexpected(path, "a string", &other)),
            })
            .collect()
    }

    /// Returns the value of a field.
    pub(super) fn value(&mut self, field: &str) -> Value {
        self.map.remove(field).unwrap_or(Value::Null)
    }

    /// Returns the names of the fields that were not read.
    pub(super) fn names(&self) -> Vec<String> {
        self.map.keys().cloned().collect()
    }

    /// Returns the fields that were not read.
    pub(super) fn rest(self) -> Map<String, Value> {
        self.map
    }
}

fn unexpected(path: String, expected: &str, found: &Value) -> Problem {
    let (found, hint) = match found {
        Value::Null => ("nothing", ""),
        Value::Bool(_) => ("true or false", ", put it in quotes"),
        Value::Number(_) => ("a number", ", put it in quotes"),
        Value::String(_) => ("a string", ""),
        Value::Array(_) => ("a list", ""),
        Value::Object(_) => ("an object", ""),
    };
    let hint = if expected == "a string" { hint } else { "" };
    Problem::new(path, format!("expected {expected}, found {found}{hint}"))
}

/// An object that is being built. Empty values are left out.
pub(super) struct ObjectBuilder {
    map: Map<String, Value>,
}

impl ObjectBuilder {
    /// Starts with the fields that reading left over.
    pub(super) fn new(rest: &Map<String, Value>) -> Self {
        Self { map: rest.clone() }
    }

    pub(super) fn always(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.map.insert(field.to_owned(), value.into());
        self
    }

    pub(super) fn text(self, field: &str, text: Option<&str>) -> Self {
        match text.filter(|text| !text.is_empty()) {
            Some(text) => self.always(field, text),
            None => self,
        }
    }

    pub(super) fn path(self, field: &str, path: Option<&PathBuf>) -> Self {
        self.text(field, path.map(|path| path.to_string_lossy()).as_deref())
    }

    pub(super) fn flag(self, field: &str, flag: bool) -> Self {
        if flag { self.always(field, true) } else { self }
    }

    pub(super) fn list(self, field: &str, items: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        if items.is_empty() { self } else { self.always(field, items) }
    }

    pub(super) fn object(self, field: &str, object: Option<Map<String, Value>>) -> Self {
        match object {
            Some(object) => self.always(field, object),
            None => self,
        }
    }

    pub(super) fn done(self) -> Map<String, Value> {
        self.map
    }
}
