//! Conversions of label selectors from and to the API's `LabelSelector`, with its `matchLabels` and `matchExpressions`.
//!
//! There, `=` is an entry of `matchLabels`, `!=` is `NotIn` with one value, and `>` and `<` cannot be expressed.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector as ApiLabelSelector, LabelSelectorRequirement as ApiRequirement,
};

use super::{InvalidSelectorError, LabelOperator, LabelRequirement, LabelSelector, label::Part};

impl LabelSelector {
    /// Converts the selector of an optional field of an API object.
    ///
    /// As in the API, an absent selector matches nothing, while an empty one matches everything.
    ///
    /// # Errors
    ///
    /// Returns an error that names the invalid field, as the conversion from `&k8s_openapi::...::LabelSelector` does.
    #[doc(alias = "LabelSelectorAsSelector")]
    pub fn from_api(selector: Option<&ApiLabelSelector>) -> Result<Self, InvalidSelectorError> {
        selector.map_or_else(|| Ok(Self::nothing()), Self::try_from)
    }
}

impl TryFrom<&ApiLabelSelector> for LabelSelector {
    type Error = InvalidSelectorError;

    fn try_from(selector: &ApiLabelSelector) -> Result<Self, Self::Error> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            let requirement = LabelRequirement::new(key, LabelOperator::Equals, [value]);
            if let Some((_, why)) = requirement.fault() {
                return Err(InvalidSelectorError::new(format!("matchLabels[{key:?}]"), why));
            }
            requirements.push(requirement);
        }
        for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
            let fail = |part, why| InvalidSelectorError::new(format!("matchExpressions[{index}].{part}"), why);
            let Some(operator) = operator_named(&expression.operator) else {
                let why = format!("{:?} is invalid: expected In, NotIn, Exists or DoesNotExist", expression.operator);
                return Err(fail("operator", why));
            };
            let requirement = LabelRequirement::new(&expression.key, operator, expression.values.iter().flatten());
            match requirement.fault() {
                Some((Part::Key, why)) => return Err(fail("key", why)),
                Some((Part::Values, why)) => return Err(fail("values", why)),
                None => requirements.push(requirement),
            }
        }
        Ok(Self::from_requirements(requirements))
    }
}

impl TryFrom<&LabelSelector> for ApiLabelSelector {
    type Error = UnrepresentableSelectorError;

    fn try_from(selector: &LabelSelector) -> Result<Self, Self::Error> {
        let mut converted = Self::default();
        for requirement in selector.requirements() {
            let labels = converted.match_labels.get_or_insert_default();
            if let (LabelOperator::Equals, [value]) = (requirement.operator(), requirement.values())
                && !labels.contains_key(requirement.key())
            {
                labels.insert(requirement.key().to_owned(), value.clone());
                continue;
            }
            let operator = match requirement.operator() {
                // The map cannot contain a second value of the same key.
                LabelOperator::Equals | LabelOperator::In => "In",
                LabelOperator::NotEquals | LabelOperator::NotIn => "NotIn",
                LabelOperator::Exists => "Exists",
                LabelOperator::DoesNotExist => "DoesNotExist",
                LabelOperator::GreaterThan | LabelOperator::LessThan => {
                    return Err(UnrepresentableSelectorError { requirement: requirement.clone() });
                }
            };
            converted.match_expressions.get_or_insert_default().push(ApiRequirement {
                key: requirement.key().to_owned(),
                operator: operator.to_owned(),
                values: Some(requirement.values().to_vec()).filter(|values| !values.is_empty()),
            });
        }
        converted.match_labels = converted.match_labels.filter(|labels| !labels.is_empty());
        Ok(converted)
    }
}

fn operator_named(name: &str) -> Option<LabelOperator> {
    Some(match name {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        _ => return None,
    })
}

/// An error of converting a requirement that the API's `LabelSelector` cannot express: `>` or `<`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrepresentableSelectorError {
    requirement: LabelRequirement,
}

impl fmt::Display for UnrepresentableSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirement = self.requirement.to_string();
        write!(f, "matchLabels and matchExpressions cannot express requirement {requirement:?}")
    }
}

impl std::error::Error for UnrepresentableSelectorError {}
