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
}

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
    pub(super) fn check(&self) -> Checked {
        let mut last: HashMap<&str, &Step> = HashMap::new();
        let mut overlaps = BTreeSet::new();
        let mut takeovers = 0;
        for step in &self.steps {
            if let Some(before) = last.insert(&step.object, step) {
                let is_other = before.replica != step.replica;
                takeovers += usize::from(is_other);
                if step.token < before.token || (is_other && step.token == before.token) {
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
            }
        }
        Checked { steps: self.steps.len(), takeovers, overlaps: overlaps.into_iter().collect() }
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
