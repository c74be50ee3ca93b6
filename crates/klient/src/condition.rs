//! Conditions in the status of objects.
//!
//! Invariant: a status has one condition of each type, and a condition's transition time changes only with its status.
//! In client-go: `k8s.io/apimachinery/pkg/api/meta` `SetStatusCondition`.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

/// Creates a condition whose transition time is now. The reason is a CamelCase word for programs, the message a sentence for
/// people.
///
/// ```
/// use klient::condition::{ConditionStatus, is_condition_true, new_condition, set_condition};
///
/// let mut conditions = Vec::new();
/// let waiting = new_condition("Ready", ConditionStatus::False, "Waiting", "0 of 3 replicas are up");
/// assert!(set_condition(&mut conditions, waiting));
/// assert!(!is_condition_true(&conditions, "Ready"));
/// ```
pub fn new_condition(
    type_: impl Into<String>,
    status: ConditionStatus,
    reason: impl Into<String>,
    message: impl Into<String>,
) -> Condition {
    Condition {
        last_transition_time: Time(Timestamp::now()),
        message: message.into(),
        observed_generation: None,
        reason: reason.into(),
        status: status.as_str().to_owned(),
        type_: type_.into(),
    }
}

/// Adds a condition, or replaces the one of the same type. Returns whether anything changed, so that the status has to be
/// written.
///
/// The transition time is kept if the condition's status has not changed.
#[doc(alias = "SetStatusCondition")]
pub fn set_condition(conditions: &mut Vec<Condition>, mut condition: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if old.status == condition.status {
        condition.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != condition;
    *old = condition;
    changed
}

/// Returns the condition of this type, if it is set.
#[doc(alias = "FindStatusCondition")]
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether the condition of this type is set and `True`.
#[doc(alias = "IsStatusConditionTrue")]
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True.as_str())
}

/// Removes the condition of this type. Returns whether it was set.
#[doc(alias = "RemoveStatusCondition")]
pub fn remove_condition(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

impl ConditionStatus {
    /// Returns the status as it is written in objects: `True`, `False` or `Unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: bool, message: &str, second: i64) -> Condition {
        let condition = new_condition("Ready", status.into(), "Because", message);
        Condition { last_transition_time: Time(Timestamp::from_second(second).unwrap()), ..condition }
    }

    fn seconds(conditions: &[Condition]) -> i64 {
        find_condition(conditions, "Ready").unwrap().last_transition_time.0.as_second()
    }

    #[test]
    fn set_condition_changes_time_only_with_status() {
        let mut conditions = vec![new_condition("Other", ConditionStatus::Unknown, "Because", "")];
        assert!(set_condition(&mut conditions, ready(false, "no", 10)));
        assert!(set_condition(&mut conditions, ready(false, "not yet", 20)), "the message changed");
        assert_eq!(seconds(&conditions), 10);
        assert!(set_condition(&mut conditions, ready(true, "yes", 30)));
        assert_eq!((seconds(&conditions), conditions.len()), (30, 2));
    }

    #[test]
    fn set_condition_reports_no_change_if_equal() {
        let mut conditions = vec![ready(true, "yes", 10)];
        assert!(!set_condition(&mut conditions, ready(true, "yes", 20)));
        assert_eq!(seconds(&conditions), 10);
    }

    #[test]
    fn remove_condition_removes_the_type() {
        let mut conditions = vec![ready(true, "yes", 10)];
        assert!(is_condition_true(&conditions, "Ready"));
        assert!(remove_condition(&mut conditions, "Ready"));
        assert!(!remove_condition(&mut conditions, "Ready"));
        assert!(!is_condition_true(&conditions, "Ready"));
    }
}
