//! A field of an object under validation: its value, its path, and the causes that it can have.
//!
//! A path is a chain on the stack. Its text is built for a cause, so that valid fields cost no allocation.

use klient_core::{Quantity, StatusCause};
use serde_json::{Value, json};

use crate::metadata::formats::{self, Problems};

/// The causes that were found.
pub(super) type Causes = Vec<StatusCause>;

/// Returns whether there are so many causes that no more are added.
///
/// The real server has no such limit: a small object can have billions of causes there, or causes of many gigabytes.
pub(super) fn is_full(causes: &Causes) -> bool {
    causes.len() >= MAX_CAUSES
        || causes.iter().map(|cause| cause.field.len() + cause.message.len()).sum::<usize>() >= MAX_TEXT
}

/// Adds a cause, unless there are too many.
fn add(causes: &mut Causes, cause: impl FnOnce() -> StatusCause) {
    if !is_full(causes) {
        causes.push(cause());
    }
}

/// A field: a value and its path.
#[derive(Clone, Copy)]
pub(in crate::builtin) struct Field<'p, 'v> {
    pub(in crate::builtin) value: &'v Value,
    parent: Option<&'p Field<'p, 'v>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy)]
enum Segment<'p> {
    Name(&'p str),
    Index(usize),
    Key(&'p str),
}

impl<'p, 'v> Field<'p, 'v> {
    /// Returns a field of an object.
    pub(in crate::builtin) fn of(object: &'v Value, name: &'p str) -> Self {
        Self { value: &object[name], parent: None, segment: Segment::Name(name) }
    }

    /// Returns a field below this one.
    pub(in crate::builtin) fn field<'a>(&'a self, name: &'a str) -> Field<'a, 'v> {
        Field { value: &self.value[name], parent: Some(self), segment: Segment::Name(name) }
    }

    /// Returns the entry of a map.
    pub(in crate::builtin) fn key<'a>(&'a self, key: &'a str) -> Field<'a, 'v> {
        Field { value: &self.value[key], parent: Some(self), segment: Segment::Key(key) }
    }

    /// Returns an item of a list.
    pub(in crate::builtin) fn index(&self, index: usize) -> Field<'_, 'v> {
        Field { value: &self.value[index], parent: Some(self), segment: Segment::Index(index) }
    }

    /// Returns this field with another value.
    pub(in crate::builtin) fn with(&self, value: &'v Value) -> Self {
        Self { value, ..*self }
    }

    /// Returns a field below this one that has another name in messages.
    pub(in crate::builtin) fn named<'a>(&'a self, name: &'a str, shown: &'a str) -> Field<'a, 'v> {
        Field { value: &self.value[name], parent: Some(self), segment: Segment::Name(shown) }
    }

    /// Returns the fields below this one that are set.
    pub(in crate::builtin) fn set<'a>(&'a self, name: &'a str) -> Option<Field<'a, 'v>> {
        Some(self.field(name)).filter(Field::is_set)
    }

    /// Returns the items of a list.
    pub(in crate::builtin) fn items(&self) -> impl Iterator<Item = Field<'_, 'v>> {
        (0..self.list().len()).map(|index| self.index(index))
    }

    /// Returns the entries of a map.
    pub(in crate::builtin) fn entries(&self) -> impl Iterator<Item = (&'v str, Field<'_, 'v>)> + use<'_, 'p, 'v>
    where
        'v: 'p,
    {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Field { value, parent: Some(self), segment: Segment::Key(key) }))
    }

    /// Returns the items of a list as values.
    pub(in crate::builtin) fn list(&self) -> &'v [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns whether the field is set.
    pub(in crate::builtin) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns the text of the field, which is empty if it is not set.
    pub(in crate::builtin) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the number of the field, if it is set.
    pub(in crate::builtin) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Returns the number of the field, or zero.
    pub(in crate::builtin) fn number(&self) -> i64 {
        self.int().unwrap_or_default()
    }

    /// Returns whether the field is true.
    pub(in crate::builtin) fn is_true(&self) -> bool {
        *self.value == Value::Bool(true)
    }

    /// Returns whether the field is false, and not just absent.
    pub(in crate::builtin) fn is_false(&self) -> bool {
        *self.value == Value::Bool(false)
    }

    /// Returns whether a list or a map is empty or absent.
    pub(in crate::builtin) fn is_empty(&self) -> bool {
        self.list().is_empty() && self.value.as_object().is_none_or(serde_json::Map::is_empty)
    }

    /// Returns the quantity of the field, if it is set.
    pub(in crate::builtin) fn quantity(&self) -> Option<Quantity> {
        self.value.as_str().and_then(|text| text.parse().ok())
    }

    /// Returns the text of the path.
    pub(in crate::builtin) fn path(&self) -> String {
        let mut path = self.parent.map(Field::path).unwrap_or_default();
        match self.segment {
            Segment::Name(name) => {
                match (self.parent, name) {
                    // Go writes a name without characters as an index.
                    (Some(_), "") => path.push_str("[]"),
                    (Some(_), name) => path.push_str(&format!(".{name}")),
                    (None, name) => path.push_str(name),
                }
            }
            Segment::Index(index) => path.push_str(&format!("[{index}]")),
            Segment::Key(key) => path.push_str(&format!("[{key}]")),
        }
        path
    }

    /// Returns the value in the form of messages. Go has empty texts where a value is absent.
    fn shown(&self) -> Value {
        if self.value.is_null() { json!("") } else { self.value.clone() }
    }
}

/// The causes of a field.
impl Field<'_, '_> {
    pub(super) fn required(&self, detail: &str, causes: &mut Causes) {
        add(causes, || StatusCause::required(self.path(), detail));
    }

    pub(super) fn forbidden(&self, detail: &str, causes: &mut Causes) {
        add(causes, || StatusCause::forbidden(self.path(), detail));
    }

    pub(super) fn invalid(&self, detail: &str, causes: &mut Causes) {
        add(causes, || StatusCause::invalid(self.path(), self.shown(), detail));
    }

    /// Adds the cause of an invalid value that messages show in another form.
    pub(super) fn invalid_as(&self, value: impl Into<Value>, detail: &str, causes: &mut Causes) {
        add(causes, || StatusCause::invalid(self.path(), value, detail));
    }

    /// Adds the cause of an invalid value whose text is given.
    pub(super) fn invalid_text(&self, shown: &str, detail: &str, causes: &mut Causes) {
        let colon = if detail.is_empty() { "" } else { ": " };
        add(causes, || {
            StatusCause::new(
                StatusCause::FIELD_VALUE_INVALID,
                self.path(),
                format!("Invalid value: {shown}{colon}{detail}"),
            )
        });
    }

    /// Adds the cause of an error of the server itself.
    pub(super) fn internal(&self, detail: &str, causes: &mut Causes) {
        add(causes, || StatusCause::new(StatusCause::INTERNAL_ERROR, self.path(), format!("Internal error: {detail}")));
    }

    /// Adds the cause of an invalid value that messages do not show.
    pub(super) fn invalid_hidden(&self, detail: &str, causes: &mut Causes) {
        add(causes, || {
            StatusCause::new(StatusCause::FIELD_VALUE_INVALID, self.path(), format!("Invalid value: {detail}"))
        });
    }

    pub(super) fn duplicate(&self, causes: &mut Causes) {
        add(causes, || StatusCause::duplicate(self.path(), self.shown()));
    }

    pub(super) fn duplicate_as(&self, value: impl Into<Value>, causes: &mut Causes) {
        add(causes, || StatusCause::duplicate(self.path(), value));
    }

    /// Adds the cause of a duplicate value whose text is given.
    pub(super) fn duplicate_text(&self, shown: &str, causes: &mut Causes) {
        add(causes, || {
            StatusCause::new(StatusCause::FIELD_VALUE_DUPLICATE, self.path(), format!("Duplicate value: {shown}"))
        });
    }

    pub(super) fn not_supported(&self, supported: &[&str], causes: &mut Causes) {
        add(causes, || StatusCause::not_supported(self.path(), self.shown(), supported));
    }

    /// Adds the cause of an unsupported value whose text is given.
    pub(super) fn not_supported_text(&self, shown: &str, supported: &[&str], causes: &mut Causes) {
        add(causes, || {
            let mut cause = StatusCause::not_supported(self.path(), "", supported);
            cause.message =
                cause.message.replacen("Unsupported value: \"\"", &format!("Unsupported value: {shown}"), 1);
            cause
        });
    }

    pub(super) fn not_found(&self, causes: &mut Causes) {
        add(causes, || StatusCause::not_found(self.path(), self.shown()));
    }

    pub(super) fn too_long(&self, most: usize, causes: &mut Causes) {
        add(causes, || StatusCause::too_long(self.path(), most));
    }

    pub(super) fn too_many(&self, most: usize, causes: &mut Causes) {
        add(causes, || StatusCause::too_many(self.path(), self.list().len(), most));
    }

    /// Adds a cause for each problem of the value.
    pub(super) fn problems(&self, problems: Problems, causes: &mut Causes) {
        for problem in problems {
            self.invalid(&problem, causes);
        }
    }
}

/// The rules that many fields share.
impl Field<'_, '_> {
    /// Validates a DNS label.
    pub(super) fn label(&self, causes: &mut Causes) {
        self.problems(formats::label_problems(self.text()), causes);
    }

    /// Validates a DNS subdomain.
    pub(super) fn subdomain(&self, causes: &mut Causes) {
        self.problems(formats::subdomain_problems(self.text()), causes);
    }

    /// Validates a name with an optional domain.
    pub(super) fn qualified_name(&self, causes: &mut Causes) {
        self.problems(formats::qualified_name_problems(self.text()), causes);
    }

    /// Validates a segment of a path.
    pub(super) fn segment(&self, causes: &mut Causes) {
        self.problems(formats::segment_problems(self.text()), causes);
    }

    /// Validates that a text is not empty. Returns whether it is not.
    pub(super) fn not_empty(&self, causes: &mut Causes) -> bool {
        if self.text().is_empty() {
            self.required("", causes);
        }
        !self.text().is_empty()
    }

    /// Validates a number that cannot be negative.
    pub(super) fn not_negative(&self, causes: &mut Causes) {
        if self.number() < 0 {
            self.invalid("must be greater than or equal to 0", causes);
        }
    }

    /// Validates a number that must be positive.
    pub(super) fn positive(&self, causes: &mut Causes) {
        if self.number() <= 0 {
            self.invalid_as(self.number(), "must be greater than zero", causes);
        }
    }

    /// Validates one of several texts, which is required.
    pub(super) fn one_of(&self, supported: &[&str], causes: &mut Causes) {
        if self.not_empty(causes) {
            self.optional_one_of(supported, causes);
        }
    }

    /// Validates one of several texts, if it is set.
    pub(super) fn optional_one_of(&self, supported: &[&str], causes: &mut Causes) {
        if self.is_set() && !supported.contains(&self.text()) {
            self.not_supported(supported, causes);
        }
    }

    /// Validates the number of a port.
    pub(super) fn port_number(&self, causes: &mut Causes) {
        for problem in formats::range_problems(self.number(), 1, 65_535) {
            self.invalid_as(self.number(), &problem, causes);
        }
    }

    /// Validates the number or the name of a port.
    pub(super) fn port(&self, causes: &mut Causes) {
        match self.value {
            Value::String(name) => self.problems(formats::port_name_problems(name), causes),
            _ => self.port_number(causes),
        }
    }

    /// Validates labels.
    pub(super) fn labels(&self, causes: &mut Causes) {
        for (key, value) in self.entries() {
            for problem in formats::qualified_name_problems(key) {
                self.invalid_as(key, &problem, causes);
            }
            for problem in formats::label_value_problems(value.text()) {
                self.invalid_as(value.text(), &problem, causes);
            }
        }
    }

    /// Validates annotations.
    pub(super) fn annotations(&self, causes: &mut Causes) {
        let mut size = 0;
        for (key, value) in self.entries() {
            size += key.len() + value.text().len();
            let has_upper_case = key.bytes().any(|byte| byte.is_ascii_uppercase());
            let problems = match has_upper_case {
                true => formats::qualified_name_problems(&key.to_lowercase()),
                false => formats::qualified_name_problems(key),
            };
            for problem in problems {
                self.invalid_as(key, &problem, causes);
            }
        }
        if size > MAX_ANNOTATIONS {
            self.too_long(MAX_ANNOTATIONS, causes);
        }
    }

    /// Validates that a value is that of the stored object.
    pub(super) fn immutable(&self, old: &Value, causes: &mut Causes) {
        if self.value != old {
            let shown = if self.value.is_null() { Value::Null } else { self.value.clone() };
            self.invalid_as(shown, "field is immutable", causes);
        }
    }

    /// Validates an amount that cannot be negative.
    pub(super) fn not_negative_quantity(&self, causes: &mut Causes) {
        if self.quantity().is_some_and(|amount| amount.is_negative()) {
            self.invalid("must be greater than or equal to 0", causes);
        }
    }
}

/// Returns the text of a struct that messages show with its names in Go, in the order of its fields there.
pub(super) fn go_struct(fields: &[(&str, &Value)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// The limit of the size of annotations.
const MAX_ANNOTATIONS: usize = 256 << 10;
/// The limit of the number of causes.
const MAX_CAUSES: usize = 4096;
/// The size of the fields and messages of causes after which no more are added.
const MAX_TEXT: usize = 4 << 20;
