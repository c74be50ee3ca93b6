//! Label selectors: building, matching and printing.

use std::{collections::BTreeMap, fmt};

use super::InvalidSelectorError;
use crate::{Resource, label_syntax};

/// A selector of objects by their labels. All requirements must match.
///
/// ```
/// use std::collections::BTreeMap;
/// use klient_core::LabelSelector;
///
/// let selector = LabelSelector::new().eq("app", "web").not_in("tier", ["cache", "batch"]);
/// assert_eq!(selector.to_string(), "app=web,tier notin (batch,cache)");
/// assert_eq!("app = web, tier notin (cache, batch)".parse(), Ok(selector.clone()));
///
/// let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
/// assert!(selector.matches_map(&labels));
/// ```
///
/// Building does not check the requirements; [`validate`](Self::validate) and parsing do.
#[doc(alias = "labels.Selector")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    // Sorted by key. Requirements on the same key stay in their order.
    requirements: Vec<LabelRequirement>,
}

/// A requirement of a [`LabelSelector`] on one label.
#[doc(alias = "labels.Requirement")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelRequirement {
    key: String,
    operator: LabelOperator,
    // Sorted, without duplicates.
    values: Vec<String>,
}

/// The operator of a [`LabelRequirement`].
#[doc(alias = "selection.Operator")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelOperator {
    /// The label exists and has the value: `key=value`, also written `==`.
    Equals,
    /// The label is absent or has another value: `key!=value`.
    NotEquals,
    /// The label exists and has one of the values: `key in (a,b)`.
    In,
    /// The label is absent or has none of the values: `key notin (a,b)`.
    NotIn,
    /// The label exists: `key`.
    Exists,
    /// The label is absent: `!key`.
    DoesNotExist,
    /// The label exists and is an integer above the value: `key>5`.
    GreaterThan,
    /// The label exists and is an integer below the value: `key<5`.
    LessThan,
}

impl LabelSelector {
    /// Creates a selector without requirements, which matches everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a selector that matches every object. It prints as an empty text.
    #[doc(alias = "labels.Everything")]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns a selector that matches no object.
    ///
    /// It is an ordinary selector with contradicting requirements, so that a server selects nothing, too.
    /// (The one in Go prints as an empty text, which selects everything.)
    #[doc(alias = "labels.Nothing")]
    pub fn nothing() -> Self {
        Self::new().exists("nothing").does_not_exist("nothing")
    }

    /// Returns whether there are no requirements.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns whether a label is required to be both present and absent.
    ///
    /// No object can match such a selector. Other contradictions, such as `a=1,a=2`, are not detected.
    #[doc(alias = "MatchesNothing")]
    pub fn is_nothing(&self) -> bool {
        let with = |operator| self.requirements.iter().filter(move |requirement| requirement.operator == operator);
        with(LabelOperator::DoesNotExist).any(|gone| with(LabelOperator::Exists).any(|there| there.key == gone.key))
    }

    /// Returns the requirements, sorted by key.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// Adds a requirement.
    #[must_use]
    pub fn with(mut self, requirement: LabelRequirement) -> Self {
        let at = self.requirements.partition_point(|earlier| earlier.key <= requirement.key);
        self.requirements.insert(at, requirement);
        self
    }

    /// Requires the label to exist and have this value.
    #[must_use]
    pub fn eq(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::Equals, [value]))
    }

    /// Requires the label to be absent or have another value.
    #[must_use]
    pub fn ne(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::NotEquals, [value]))
    }

    /// Requires the label to exist and have one of these values.
    #[must_use]
    pub fn is_in<V: Into<String>>(self, key: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::In, values))
    }

    /// Requires the label to be absent or have none of these values.
    #[must_use]
    pub fn not_in<V: Into<String>>(self, key: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::NotIn, values))
    }

    /// Requires the label to exist.
    #[must_use]
    pub fn exists(self, key: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::Exists, NO_VALUES))
    }

    /// Requires the label to be absent.
    #[must_use]
    pub fn does_not_exist(self, key: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::DoesNotExist, NO_VALUES))
    }

    /// Requires the label to be an integer above this one.
    #[must_use]
    pub fn greater_than(self, key: impl Into<String>, value: i64) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::GreaterThan, [value.to_string()]))
    }

    /// Requires the label to be an integer below this one.
    #[must_use]
    pub fn less_than(self, key: impl Into<String>, value: i64) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::LessThan, [value.to_string()]))
    }

    /// Returns whether labels match, given a lookup from key to value.
    pub fn matches<V: AsRef<str>>(&self, mut lookup: impl FnMut(&str) -> Option<V>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = lookup(&requirement.key);
            requirement.matches(value.as_ref().map(AsRef::as_ref))
        })
    }

    /// Returns whether these labels match.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key))
    }

    /// Returns whether this object's labels match.
    pub fn matches_object<K: Resource>(&self, object: &K) -> bool {
        let labels = object.metadata().labels.as_ref();
        self.matches(|key| labels?.get(key))
    }

    /// Returns the only value that the label can have, if its first requirement determines it.
    #[doc(alias = "RequiresExactMatch")]
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (LabelOperator::Equals | LabelOperator::In, [value]) => Some(value),
            _ => None,
        }
    }

    /// Checks keys, values and the number of values, as a server does.
    ///
    /// ```
    /// use klient_core::LabelSelector;
    ///
    /// let error = LabelSelector::new().eq("app", "my web").validate().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "selector at requirement \"app=my web\": value \"my web\" at byte 2: expected a letter, a digit, `-`, `_` or `.`",
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error for the first requirement that a server would reject.
    pub fn validate(&self) -> Result<(), InvalidSelectorError> {
        self.requirements.iter().try_for_each(|requirement| {
            requirement.fault().map_or(Ok(()), |(_, why)| {
                Err(InvalidSelectorError::new(format!("requirement {:?}", requirement.to_string()), why))
            })
        })
    }

    /// Creates a selector from requirements in any order.
    pub(super) fn from_requirements(mut requirements: Vec<LabelRequirement>) -> Self {
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Self { requirements }
    }
}

impl LabelRequirement {
    /// Creates an unchecked requirement. [`LabelSelector::validate`] checks it.
    pub fn new<V: Into<String>>(
        key: impl Into<String>,
        operator: LabelOperator,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let mut values: Vec<String> = values.into_iter().map(Into::into).collect();
        values.sort_unstable();
        values.dedup();
        Self { key: key.into(), operator, values }
    }

    /// Returns the key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the operator.
    pub fn operator(&self) -> LabelOperator {
        self.operator
    }

    /// Returns the values, sorted and without duplicates.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns whether the label's value, or its absence, matches.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|listed| listed == value);
        match self.operator {
            LabelOperator::Equals | LabelOperator::In => value.is_some_and(listed),
            LabelOperator::NotEquals | LabelOperator::NotIn => !value.is_some_and(listed),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
            LabelOperator::GreaterThan => self.integers(value).is_some_and(|(value, bound)| value > bound),
            LabelOperator::LessThan => self.integers(value).is_some_and(|(value, bound)| value < bound),
        }
    }

    /// Returns the label and the bound, if both are integers.
    fn integers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        let [bound] = self.values.as_slice() else { return None };
        Some((value?.parse().ok()?, bound.parse().ok()?))
    }

    /// Returns the part that a server would reject, with the reason, if any.
    pub(super) fn fault(&self) -> Option<(Part, String)> {
        if let Err((at, why)) = label_syntax::check_key(&self.key) {
            return Some((Part::Key, format!("key {:?} at byte {at}: {why}", self.key)));
        }
        let expected = match (self.operator, self.values.as_slice()) {
            (LabelOperator::In | LabelOperator::NotIn, []) => Some("expected at least one value"),
            (LabelOperator::Exists | LabelOperator::DoesNotExist, [_, ..]) => Some("expected no values"),
            (LabelOperator::GreaterThan | LabelOperator::LessThan, [bound]) if bound.parse::<i64>().is_err() => {
                Some("expected an integer")
            }
            (
                LabelOperator::Equals | LabelOperator::NotEquals | LabelOperator::GreaterThan | LabelOperator::LessThan,
                [] | [_, _, ..],
            ) => Some("expected exactly one value"),
            _ => None,
        };
        if let Some(expected) = expected {
            return Some((Part::Values, expected.to_owned()));
        }
        self.values.iter().find_map(|value| {
            let (at, why) = label_syntax::check_value(value).err()?;
            Some((Part::Values, format!("value {value:?} at byte {at}: {why}")))
        })
    }
}

/// A part of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Values,
}

impl fmt::Display for LabelSelector {
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

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::Equals => write!(f, "{key}={values}"),
            LabelOperator::NotEquals => write!(f, "{key}!={values}"),
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Exists => f.write_str(key),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

const NO_VALUES: [String; 0] = [];
