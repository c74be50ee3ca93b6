//! The types of values, as far as costs depend on them.

use std::rc::Rc;

use super::declared::{Declared, Shape};

#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Duration,
    Timestamp,
    /// The type of a type.
    Kind,
    List(Rc<Type<'s>>),
    Map(Rc<Type<'s>>, Rc<Type<'s>>),
    Object(&'s Declared),
    Optional(Rc<Type<'s>>),
    /// A type of a library, by its name.
    Library(&'static str),
    /// The type of items of an empty list.
    Unset,
    /// Any type, known when the rule runs.
    Dyn,
}

impl PartialEq for Type<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => one == other,
            (Self::Map(keys, values), Self::Map(other_keys, other_values)) => {
                keys == other_keys && values == other_values
            }
            (Self::Object(one), Self::Object(other)) => std::ptr::eq(*one, *other),
            (Self::Library(one), Self::Library(other)) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl<'s> Type<'s> {
    pub(super) fn list(items: Self) -> Self {
        Self::List(Rc::new(items))
    }

    pub(super) fn map(keys: Self, values: Self) -> Self {
        Self::Map(Rc::new(keys), Rc::new(values))
    }

    pub(super) fn optional(inner: Self) -> Self {
        Self::Optional(Rc::new(inner))
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Unset)
    }

    /// Returns whether a value can have another type.
    pub(super) fn can_be(&self, other: &Self) -> bool {
        self.is_dyn() || self == other
    }

    pub(super) fn can_be_list(&self) -> bool {
        self.is_dyn() || matches!(self, Self::List(_))
    }

    pub(super) fn can_be_map(&self) -> bool {
        self.is_dyn() || matches!(self, Self::Map(..))
    }

    /// Returns whether all values have the size 1.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Duration | Self::Timestamp => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Returns the first of the types that a type is made of: those of the items of a list, or the keys of a map.
    pub(super) fn parameter(&self) -> Option<&Self> {
        match self {
            Self::List(inner) | Self::Map(inner, _) | Self::Optional(inner) => Some(inner),
            _ => None,
        }
    }

    /// Returns the type of the elements that an index finds.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::List(items) => Self::clone(items),
            Self::Map(_, values) => Self::clone(values),
            Self::Optional(inner) => Self::optional(inner.element()),
            _ => Self::Dyn,
        }
    }

    /// Returns the type of the keys of a map, or of the indices of a list.
    pub(super) fn keys(&self) -> Self {
        match self {
            Self::List(_) => Self::Int,
            Self::Map(keys, _) => Self::clone(keys),
            _ => Self::Dyn,
        }
    }

    /// Returns the type of a field.
    pub(super) fn field(&self, name: &str) -> Self {
        match self {
            Self::Object(declared) if matches!(declared.shape, Shape::Object(_)) => {
                declared.field(name).map_or(Self::Dyn, Declared::kind)
            }
            Self::Map(_, values) => Self::clone(values),
            Self::Optional(inner) => Self::optional(inner.field(name)),
            _ => Self::Dyn,
        }
    }

    /// Returns a type that has the values of both.
    pub(super) fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one.clone(),
            (Self::Unset, one) | (one, Self::Unset) => one.clone(),
            (Self::List(one), Self::List(other)) => Self::list(one.joined(other)),
            (Self::Optional(one), Self::Optional(other)) => Self::optional(one.joined(other)),
            (Self::Map(keys, values), Self::Map(other_keys, other_values)) => {
                Self::map(keys.joined(other_keys), values.joined(other_values))
            }
            _ => Self::Dyn,
        }
    }
}
