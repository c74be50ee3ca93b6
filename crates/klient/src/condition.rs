//! Conditions in a status: what is true of an object, and since when.
//!
//! What must hold: there is one condition of each type, and its time changes only when its status does.
//! In client-go: `k8s.io/apimachinery/pkg/api/meta` `SetStatusCondition`.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// A condition that began to be so just now. The reason is a word for machines, the message a sentence for people.
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

/// Puts a condition in the place of the one of its type; says whether anything changed, so that it has to be written.
///
/// If the status is as it was, so is the time.
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

/// The condition of that type.
#[doc(alias = "FindStatusCondition")]
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether there is a condition of that type, and it holds.
#[doc(alias = "IsStatusConditionTrue")]
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True.as_str())
}

/// Takes out the condition of that type; says whether there was one.
#[doc(alias = "RemoveStatusCondition")]
pub fn remove_condition(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

impl ConditionStatus {
    /// As it is written.
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
    fn the_time_changes_only_with_the_status() {
        let mut conditions = vec![new_condition("Other", ConditionStatus::Unknown, "Because", "")];
        assert!(set_condition(&mut conditions, ready(false, "no", 10)));
        assert!(set_condition(&mut conditions, ready(false, "not yet", 20)), "the message changed");
        assert_eq!(seconds(&conditions), 10);
        assert!(set_condition(&mut conditions, ready(true, "yes", 30)));
        assert_eq!((seconds(&conditions), conditions.len()), (30, 2));
    }

    #[test]
    fn what_is_there_already_is_no_change() {
        let mut conditions = vec![ready(true, "yes", 10)];
        assert!(!set_condition(&mut conditions, ready(true, "yes", 20)));
        assert_eq!(seconds(&conditions), 10);
    }

    #[test]
    fn a_condition_can_be_taken_out() {
        let mut conditions = vec![ready(true, "yes", 10)];
        assert!(is_condition_true(&conditions, "Ready"));
        assert!(remove_condition(&mut conditions, "Ready"));
        assert!(!remove_condition(&mut conditions, "Ready"));
        assert!(!is_condition_true(&conditions, "Ready"));
    }
}
