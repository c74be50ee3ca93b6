//! Field selectors: `spec.nodeName=n1,status.phase!=Running`.
//!
//! Which fields can be selected on is the server's choice, kind by kind; here they are only names.

use std::{fmt, str::FromStr};

use super::InvalidSelectorError;

/// Selects objects by a few of their fields; all requirements must hold.
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
    // Sorted by how they print.
    requirements: Vec<FieldRequirement>,
}

/// What a [`FieldSelector`] asks of one field.
#[doc(alias = "fields.Requirement")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    field: String,
    operator: FieldOperator,
    value: String,
}

/// How a [`FieldRequirement`] relates a field to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// The field has the value: `field=value`, also written `==`.
    Equals,
    /// The field has another value: `field!=value`.
    NotEquals,
}

impl FieldSelector {
    /// A selector without requirements, which matches everything; add to it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Matches every object. Prints as the empty text.
    #[doc(alias = "fields.Everything")]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether it has no requirements.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, in the order in which they print.
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

    /// The field must have this value.
    #[must_use]
    #[doc(alias = "OneTermEqualSelector")]
    pub fn eq(self, field: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(FieldRequirement::new(field, FieldOperator::Equals, value))
    }

    /// The field must have another value.
    #[must_use]
    #[doc(alias = "OneTermNotEqualSelector")]
    pub fn ne(self, field: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(FieldRequirement::new(field, FieldOperator::NotEquals, value))
    }

    /// Whether fields match, given a lookup from field name to value.
    ///
    /// An absent field counts as empty.
    pub fn matches<V: AsRef<str>>(&self, mut lookup: impl FnMut(&str) -> Option<V>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = lookup(&requirement.field);
            requirement.matches(value.as_ref().map_or("", AsRef::as_ref))
        })
    }

    /// The one value that the field must have, if a requirement says so.
    ///
    /// A watch on `metadata.name=x`, for one, can be narrowed to one object.
    #[doc(alias = "RequiresExactMatch")]
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        let exact = |requirement: &&FieldRequirement| {
            requirement.operator == FieldOperator::Equals && requirement.field == field
        };
        self.requirements.iter().find(exact).map(FieldRequirement::value)
    }

    /// Checks that field names can be written: unlike values, they cannot be escaped.
    ///
    /// # Errors
    ///
    /// For the first name that is empty, ends in `!`, or holds `=`, `,` or a backslash.
    pub fn validate(&self) -> Result<(), InvalidSelectorError> {
        self.requirements.iter().try_for_each(|FieldRequirement { field, .. }| {
            let why = if field.is_empty() {
                "expected a field name"
            } else if field.contains(['=', ',', '\\']) || field.ends_with('!') {
                "a field name cannot hold `=`, `,` or `\\`, nor end in `!`"
            } else {
                return Ok(());
            };
            Err(InvalidSelectorError::new(format!("field {field:?}"), why))
        })
    }
}

impl FieldRequirement {
    /// A requirement; [`FieldSelector::validate`] checks the field's name.
    pub fn new(field: impl Into<String>, operator: FieldOperator, value: impl Into<String>) -> Self {
        Self { field: field.into(), operator, value: value.into() }
    }

    /// The field's name.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// How the field relates to the value.
    pub fn operator(&self) -> FieldOperator {
        self.operator
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether the field's value is what is required.
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

/// Length of the first term: up to a comma that no backslash stands before.
fn term_len(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|c| {
        let found = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        found
    });
    end.unwrap_or(text.len())
}

/// Reads one term; none if it says nothing, as between two commas.
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
                _ => return Err((at, "a backslash must stand before `\\`, `,` or `=`")),
            },
            ',' | '=' => return Err((at, "needs a backslash before it in a value")),
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

/// A text that is not a field selector: says where and why.
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
