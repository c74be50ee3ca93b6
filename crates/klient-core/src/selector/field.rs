//! Field selectors: `spec.nodeName=n1,status.phase!=Running`.
//!
//! The server decides which fields of a kind can be selected; here they are only names.

use std::{fmt, str::FromStr};

use super::InvalidSelectorError;

/// A selector of objects by their fields. All requirements must match.
///
/// ```
/// use klient_core::FieldSelector;
///
/// let selector = FieldSelector::new().eq("spec.nodeName", "n1").ne("status.phase", "Running");
/// assert_eq!(selector.to_string(), "spec.nodeName=n1,status.phase!=Running");
/// assert_eq!("spec.nodeName==n1,status.phase!=Running".parse(), Ok(selector.clone()));
/// assert!(selector.matches(|field| (field == "spec.nodeName").then_some("n1")));
/// ```
#[doc(alias = "fields.Selector")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    // Sorted by their printed form.
    requirements: Vec<FieldRequirement>,
}

/// A requirement of a [`FieldSelector`] on one field.
#[doc(alias = "fields.Requirement")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    field: String,
    operator: FieldOperator,
    value: String,
}

/// The operator of a [`FieldRequirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// The field has the value: `field=value`, also written `==`.
    Equals,
    /// The field has another value: `field!=value`.
    NotEquals,
}

impl FieldSelector {
    /// Creates a selector without requirements, which matches everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a selector that matches every object. It prints as an empty text.
    #[doc(alias = "fields.Everything")]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns whether there are no requirements.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the requirements in the order in which they are printed.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Adds a requirement.
    #[must_use]
    pub fn with(mut self, requirement: FieldRequirement) -> Self {
        self.requirements.push(requirement);
        self.requirements.sort_by_cached_key(ToString::to_string);
        self
    }

    /// Requires the field to have this value.
    #[must_use]
    #[doc(alias = "OneTermEqualSelector")]
    pub fn eq(self, field: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(FieldRequirement::new(field, FieldOperator::Equals, value))
    }

    /// Requires the field to have another value.
    #[must_use]
    #[doc(alias = "OneTermNotEqualSelector")]
    pub fn ne(self, field: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(FieldRequirement::new(field, FieldOperator::NotEquals, value))
    }

    /// Returns whether fields match, given a lookup from field name to value.
    ///
    /// A missing field is treated as empty.
    pub fn matches<V: AsRef<str>>(&self, mut lookup: impl FnMut(&str) -> Option<V>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = lookup(&requirement.field);
            requirement.matches(value.as_ref().map_or("", AsRef::as_ref))
        })
    }

    /// Returns the only value that the field can have, if a requirement determines it.
    ///
    /// For example, a watch on `metadata.name=x` can be narrowed to one object.
    #[doc(alias = "RequiresExactMatch")]
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        let exact = |requirement: &&FieldRequirement| {
            requirement.operator == FieldOperator::Equals && requirement.field == field
        };
        self.requirements.iter().find(exact).map(FieldRequirement::value)
    }

    /// Checks the field names, because they cannot be escaped, unlike values.
    ///
    /// # Errors
    ///
    /// Returns an error for the first name that is empty, ends in `!`, or contains `=`, `,` or a backslash.
    pub fn validate(&self) -> Result<(), InvalidSelectorError> {
        self.requirements.iter().try_for_each(|FieldRequirement { field, .. }| {
            let why = if field.is_empty() {
                "expected a field name"
            } else if field.contains(['=', ',', '\\']) || field.ends_with('!') {
                "a field name must not contain `=`, `,` or `\\`, nor end in `!`"
            } else {
                return Ok(());
            };
            Err(InvalidSelectorError::new(format!("field {field:?}"), why))
        })
    }
}

impl FieldRequirement {
    /// Creates a requirement. [`FieldSelector::validate`] checks the field's name.
    pub fn new(field: impl Into<String>, operator: FieldOperator, value: impl Into<String>) -> Self {
        Self { field: field.into(), operator, value: value.into() }
    }

    /// Returns the name of the field.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the operator.
    pub fn operator(&self) -> FieldOperator {
        self.operator
    }

    /// Returns the value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns whether the field's value matches.
    pub fn matches(&self, value: &str) -> bool {
        match self.operator {
            FieldOperator::Equals => self.value == value,
            FieldOperator::NotEquals => self.value != value,
        }
    }
}

impl FromStr for FieldSelector {
    type Err = ParseFieldSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut requirements = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let len = term_len(&text[at..]);
            let requirement = parse_term(&text[at..at + len]).map_err(|(offset, why)| ParseFieldSelectorError {
                text: text.to_owned(),
                at: at + offset,
                why,
            })?;
            requirements.extend(requirement);
            at += len + 1;
        }
        requirements.sort_by_cached_key(ToString::to_string);
        Ok(Self { requirements })
    }
}

/// Returns the length of the first term, which ends at a comma without a preceding backslash.
fn term_len(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|c| {
        let found = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        found
    });
    end.unwrap_or(text.len())
}

/// Parses one term. Returns `None` if it is empty, as between two commas.
fn parse_term(term: &str) -> Result<Option<FieldRequirement>, (usize, &'static str)> {
    if term.is_empty() {
        return Ok(None);
    }
    let Some(at) = term.find('=') else { return Err((term.len(), "expected =, == or !=")) };
    let (field, operator) = match term[..at].strip_suffix('!') {
        Some(field) => (field, FieldOperator::NotEquals),
        None => (&term[..at], FieldOperator::Equals),
    };
    let mut value_at = at + 1;
    if operator == FieldOperator::Equals && term[value_at..].starts_with('=') {
        value_at += 1;
    }
    let value = unescape(&term[value_at..]).map_err(|(offset, why)| (value_at + offset, why))?;
    // The API server skips a term without field and value.
    let skipped = field.is_empty() && value.is_empty();
    Ok((!skipped).then(|| FieldRequirement::new(field, operator, value)))
}

fn unescape(escaped: &str) -> Result<String, (usize, &'static str)> {
    let mut value = String::with_capacity(escaped.len());
    let mut chars = escaped.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, c @ ('\\' | ',' | '='))) => value.push(c),
                _ => return Err((at, "expected `\\`, `,` or `=` after a backslash")),
            },
            ',' | '=' => return Err((at, "must be escaped with a backslash in a value")),
            _ => value.push(c),
        }
    }
    Ok(value)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            fmt::Display::fmt(requirement, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        };
        write!(f, "{}{operator}", self.field)?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

/// An error of parsing a field selector, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFieldSelectorError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseFieldSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field selector {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseFieldSelectorError {}
