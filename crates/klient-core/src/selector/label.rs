//! Label selectors: building, matching and printing them.

use std::{collections::BTreeMap, fmt};

use super::InvalidSelectorError;
use crate::{Resource, label_syntax};

/// Selects objects by their labels; all requirements must hold.
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
/// Building checks nothing; [`validate`](Self::validate) does, and so does parsing.
#[doc(alias = "labels.Selector")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    // Sorted by key; requirements on the same key stay in the order they came.
    requirements: Vec<LabelRequirement>,
}

/// What a [`LabelSelector`] asks of one label.
#[doc(alias = "labels.Requirement")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelRequirement {
    key: String,
    operator: LabelOperator,
    // Sorted, without duplicates.
    values: Vec<String>,
}

/// How a [`LabelRequirement`] relates a label to its values.
#[doc(alias = "selection.Operator")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelOperator {
    /// The label is there and has the value: `key=value`, also written `==`.
    Equals,
    /// The label is absent or has another value: `key!=value`.
    NotEquals,
    /// The label is there and has one of the values: `key in (a,b)`.
    In,
    /// The label is absent or has none of the values: `key notin (a,b)`.
    NotIn,
    /// The label is there: `key`.
    Exists,
    /// The label is absent: `!key`.
    DoesNotExist,
    /// The label is there and is an integer above the value: `key>5`.
    GreaterThan,
    /// The label is there and is an integer below the value: `key<5`.
    LessThan,
}

impl LabelSelector {
    /// A selector without requirements, which matches everything; add to it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Matches every object. Prints as the empty text.
    #[doc(alias = "labels.Everything")]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Matches no object.
    ///
    /// It is an ordinary selector with a contradiction in it, so it also selects nothing when a server gets it.
    /// (The Go one prints as the empty text, which selects everything.)
    #[doc(alias = "labels.Nothing")]
    pub fn nothing() -> Self {
        Self::new().exists("nothing").does_not_exist("nothing")
    }

    /// Whether it has no requirements.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it asks for a label to be both there and absent.
    ///
    /// Then no object can match. Other contradictions, such as `a=1,a=2`, are not looked for.
    #[doc(alias = "MatchesNothing")]
    pub fn is_nothing(&self) -> bool {
        let with = |operator| self.requirements.iter().filter(move |requirement| requirement.operator == operator);
        with(LabelOperator::DoesNotExist).any(|gone| with(LabelOperator::Exists).any(|there| there.key == gone.key))
    }

    /// The requirements, sorted by key.
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

    /// The label must be there and have this value.
    #[must_use]
    pub fn eq(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::Equals, [value]))
    }

    /// The label must be absent or have another value.
    #[must_use]
    pub fn ne(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::NotEquals, [value]))
    }

    /// The label must be there and have one of these values.
    #[must_use]
    pub fn is_in<V: Into<String>>(self, key: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::In, values))
    }

    /// The label must be absent or have none of these values.
    #[must_use]
    pub fn not_in<V: Into<String>>(self, key: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::NotIn, values))
    }

    /// The label must be there.
    #[must_use]
    pub fn exists(self, key: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::Exists, NO_VALUES))
    }

    /// The label must be absent.
    #[must_use]
    pub fn does_not_exist(self, key: impl Into<String>) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::DoesNotExist, NO_VALUES))
    }

    /// The label must be an integer above this one.
    #[must_use]
    pub fn greater_than(self, key: impl Into<String>, value: i64) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::GreaterThan, [value.to_string()]))
    }

    /// The label must be an integer below this one.
    #[must_use]
    pub fn less_than(self, key: impl Into<String>, value: i64) -> Self {
        self.with(LabelRequirement::new(key, LabelOperator::LessThan, [value.to_string()]))
    }

    /// Whether labels match, given a lookup from key to value.
    pub fn matches<V: AsRef<str>>(&self, mut lookup: impl FnMut(&str) -> Option<V>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = lookup(&requirement.key);
            requirement.matches(value.as_ref().map(AsRef::as_ref))
        })
    }

    /// Whether these labels match.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key))
    }

    /// Whether this object's labels match.
    pub fn matches_object<K: Resource>(&self, object: &K) -> bool {
        let labels = object.metadata().labels.as_ref();
        self.matches(|key| labels?.get(key))
    }

    /// The one value that the label must have, if its first requirement says so.
    #[doc(alias = "RequiresExactMatch")]
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (LabelOperator::Equals | LabelOperator::In, [value]) => Some(value),
            _ => None,
        }
    }

    /// Checks keys, values and numbers of values, as a server would.
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
    /// For the first requirement that a server would refuse.
    pub fn validate(&self) -> Result<(), InvalidSelectorError> {
        self.requirements.iter().try_for_each(|requirement| {
            requirement.fault().map_or(Ok(()), |(_, why)| {
                Err(InvalidSelectorError::new(format!("requirement {:?}", requirement.to_string()), why))
            })
        })
    }

    /// Takes requirements in any order.
    pub(super) fn from_requirements(mut requirements: Vec<LabelRequirement>) -> Self {
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Self { requirements }
    }
}

impl LabelRequirement {
    /// A requirement, unchecked; [`LabelSelector::validate`] checks it.
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

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> LabelOperator {
        self.operator
    }

    /// The values, sorted and without duplicates.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether the label's value, or its absence, is what is required.
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

    /// The label and the bound, if both are integers.
    fn integers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        let [bound] = self.values.as_slice() else { return None };
        Some((value?.parse().ok()?, bound.parse().ok()?))
    }

    /// The part that a server would refuse, and why, if there is one.
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
