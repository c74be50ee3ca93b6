//! The history of all replicas, and its check.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use anyhow::{Context as _, Result};

/// The steps of all replicas.
#[derive(Default)]
pub(super) struct History {
    steps: Vec<Step>,
}

struct Step {
    at: u128,
    object: String,
    token: u64,
    replica: String,
}

/// The result of a check.
pub(super) struct Checked {
    pub(super) steps: usize,
    /// Objects that another replica took over, counted once for each time.
    pub(super) takeovers: usize,
    pub(super) overlaps: Vec<String>,
    /// Steps that a replica had begun when it was suspended, and that it finished when it was resumed.
    pub(super) suspended: usize,
}

/// The end of a suspension: the replica, and the time.
pub(super) type Resumed = (String, u128);

impl History {
    /// Reads the files of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut steps = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            for line in std::fs::read_to_string(&path)?.lines() {
                let step = Step::parse(line).with_context(|| format!("{}: {line:?}", path.display()))?;
                steps.push(step);
            }
        }
        steps.sort_by_key(|step| step.at);
        Ok(Self { steps })
    }

    /// Counts the steps of each replica after a moment.
    pub(super) fn since(&self, moment: u128) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for step in self.steps.iter().filter(|step| step.at >= moment) {
            *counts.entry(step.replica.as_str()).or_default() += 1;
        }
        counts
    }

    /// Checks that the tokens of an object never go back, and that one token belongs to one replica.
    ///
    /// The right to a step is checked before the step. A process that is suspended in between finishes the step when it is resumed, whatever
    /// it would find out if it looked again: only the server can refuse that, by the version or the token. There is one thread, so that this is the
    /// first step after the suspension, and no other.
    pub(super) fn check(&self, resumed: &[Resumed]) -> Checked {
        let mut last: HashMap<&str, &Step> = HashMap::new();
        let mut latest: HashMap<&str, u128> = HashMap::new();
        let mut overlaps = BTreeSet::new();
        let (mut takeovers, mut suspended) = (0, 0);
        for step in &self.steps {
            let previous = latest.insert(&step.replica, step.at).unwrap_or(0);
            let Some(before) = last.insert(&step.object, step) else { continue };
            let is_other = before.replica != step.replica;
            takeovers += usize::from(is_other);
            if step.token > before.token || (step.token == before.token && !is_other) {
                continue;
            }
            let is_first = |(replica, at): &Resumed| *replica == step.replica && (previous..=step.at).contains(at);
            if resumed.iter().any(is_first) {
                suspended += 1;
                continue;
            }
            overlaps.insert(format!(
                "{}: {} with token {} {} us after {} with token {}",
                step.object,
                step.replica,
                step.token,
                (step.at - before.at) / 1000,
                before.replica,
                before.token
            ));
        }
        Checked { steps: self.steps.len(), takeovers, overlaps: overlaps.into_iter().collect(), suspended }
    }
}

impl Step {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let at = parts.next()?.parse().ok()?;
        let object = parts.next()?.to_owned();
        let token = parts.next()?.parse().ok()?;
        Some(Self { at, object, token, replica: parts.next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(lines: &[&str]) -> History {
        History { steps: lines.iter().map(|line| Step::parse(line).unwrap()).collect() }
    }

    #[test]
    fn older_token_is_an_overlap_except_once_after_a_suspension() {
        let lines = ["10 a 1 old", "20 a 2 new", "31 a 1 old", "32 b 2 new", "33 b 1 old"];
        let resumed = [("old".to_owned(), 30)];
        assert_eq!(history(&lines[..3]).check(&[]).overlaps.len(), 1);
        let checked = history(&lines[..3]).check(&resumed);
        assert_eq!((checked.overlaps.len(), checked.suspended), (0, 1));
        let checked = history(&lines).check(&resumed);
        assert_eq!((checked.overlaps.len(), checked.suspended), (1, 1), "the second step had to look again");
        assert_eq!(history(&lines[..3]).check(&[("new".to_owned(), 30)]).overlaps.len(), 1);
        assert_eq!(history(&lines[..3]).check(&[("old".to_owned(), 5)]).overlaps.len(), 1);
    }
}
