//! The state of a key in one sentence.

use std::fmt::{self, Display, Formatter};

use super::{FilteredReport, KeyState};

/// Writes the state in one sentence, without a full stop.
impl Display for KeyState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { ended_ago } => write!(f, "reconciled {} ago, and nothing changed since", Time(*ended_ago)),
            Self::InProcess { running_for, again } => {
                write!(f, "reconciling for {}", Time(*running_for))?;
                f.write_str(if *again { "; something changed meanwhile, so another turn follows" } else { "" })
            }
            Self::WaitingForOwnWrite { waiting_for, at_most, write } => {
                let version = write.resource_version.as_deref().unwrap_or("its deletion");
                write!(f, "waiting for {} until the cache shows its own write of ", Time(*waiting_for))?;
                write!(f, "{} {} ({version}), for {} more at most", write.resource, write.object, Time(*at_most))
            }
            Self::Ready { waiting_for, ahead, workers, busy } => {
                write!(f, "queued for {} behind {ahead} other keys: ", Time(*waiting_for))?;
                write!(f, "{busy} of {workers} workers are busy")
            }
            Self::Backoff { retry_in, failures, error } => {
                write!(f, "failed {failures} times, retried in {}", Time(*retry_in))?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
            }
            Self::Scheduled { next_in } => write!(f, "reconciled, and scheduled again in {}", Time(*next_in)),
            Self::Failed { ended_ago, error } => {
                write!(
                    f,
                    "failed {} ago with an error that is not retried before something changes: {error}",
                    Time(*ended_ago)
                )
            }
            Self::Filtered { event } => event.fmt(f),
            Self::NotStarted => f.write_str("the controller was not started"),
            Self::Stopped => f.write_str("the controller has stopped"),
            Self::NotLeader { leader: Some(leader) } => {
                write!(f, "this process does not lead: {leader} does, and reconciles the key")
            }
            Self::NotLeader { leader: None } => f.write_str("this process does not lead, and no leader is known"),
            Self::OtherShard { owner: Some(owner) } => write!(f, "the key belongs to the shard of {owner}"),
            Self::OtherShard { owner: None } => f.write_str("the key belongs to another shard"),
            Self::NotSynced { resource, informer, error } => {
                write!(f, "waiting for the first list of {resource}, whose informer is {informer}")?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
            }
            Self::Unreadable { error } => {
                f.write_str("the object cannot be read, and the cache has its last readable state at most")?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
            }
            Self::NotCached { covered: true } => {
                f.write_str("the cache has no such object: it was deleted, or never created")
            }
            Self::NotCached { covered: false } => {
                f.write_str("the informer does not cover this key: it watches another namespace or other names")
            }
            Self::NoEvent { informer_event_ago, informer } => {
                f.write_str("cached, but no event has queued it; ")?;
                match informer_event_ago {
                    Some(ago) => write!(f, "its informer is {informer}, and had its last event {} ago", Time(*ago)),
                    None => write!(f, "its informer is {informer}, and had no event after its first list"),
                }
            }
            Self::Idle => f.write_str("nothing is queued; turn on the history to see earlier turns"),
            Self::Unknown => f.write_str("in a state that this version does not know"),
        }
    }
}

impl Display for FilteredReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the last change of {} was ignored {} ago by the predicate ", self.source, Time(self.ago))?;
        write!(f, "{:?} ({} ignored events)", self.predicate, self.count)
    }
}

/// A duration in seconds, with a unit that suits it.
pub(super) struct Time(pub(super) f64);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds if seconds < 0.001 => write!(f, "{:.0} us", seconds.max(0.0) * 1e6),
            seconds if seconds < 1.0 => write!(f, "{:.0} ms", seconds * 1e3),
            seconds if seconds < 120.0 => write!(f, "{seconds:.1} s"),
            seconds if seconds < 7200.0 => write!(f, "{:.0} min", seconds / 60.0),
            seconds => write!(f, "{:.1} h", seconds / 3600.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_error_and_time_of_the_retry() {
        let state = KeyState::Backoff { retry_in: 4.21, failures: 3, error: Some("quota exceeded".to_owned()) };
        assert_eq!(state.to_string(), "failed 3 times, retried in 4.2 s: quota exceeded");
        assert_eq!(
            [0.0005, 0.25, 90.0, 600.0, 9000.0].map(|time| Time(time).to_string()).join(", "),
            "500 us, 250 ms, 90.0 s, 10 min, 2.5 h"
        );
    }

    #[test]
    fn state_of_a_later_version_is_unknown() {
        let state: KeyState = serde_json::from_str(r#"{"state": "levitating", "height": 3}"#).unwrap();
        assert_eq!(state, KeyState::Unknown);
        let text = serde_json::to_string(&KeyState::NotLeader { leader: None }).unwrap();
        assert_eq!(text, r#"{"state":"notLeader","leader":null}"#);
    }
}
