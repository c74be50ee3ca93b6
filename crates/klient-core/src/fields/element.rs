//! Path elements: one step from a value to a part of it.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

use super::value;

/// A path from an object to one of its fields or list items.
pub type Path = Vec<PathElement>;

/// One step of a path.
///
/// Its text is what conflicts show: `.spec`, `[name="web"]`, `[="finalizer"]` or `[3]`.
#[doc(alias("fieldpath.PathElement"))]
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object, or an entry of a map.
    Field(String),
    /// The item of a list that has these values in its key fields, which are sorted by name.
    Key(Vec<(String, Value)>),
    /// The item of a set that has this value.
    Value(Value),
    /// The item of a list at this position.
    Index(i64),
}

impl PathElement {
    /// Returns the element for a field of an object.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Returns the element for a list item with these values in its key fields.
    pub fn key<N: Into<String>, V: Into<Value>>(fields: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut fields: Vec<(String, Value)> =
            fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        Self::Key(fields)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                let pairs = left
                    .iter()
                    .zip(right)
                    .map(|((name, value), (other, with))| name.cmp(other).then_with(|| value::compare(value, with)));
                pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
            }
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", value::path_text(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", value::path_text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
