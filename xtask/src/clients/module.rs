//! Tests of Go modules: a copy in which they can be built, the list of those that cannot pass, and the verdict.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::run::output;

/// Copies a version of a module to a folder in which Go can build its tests.
pub(super) fn checkout(root: &Path, module: &str, version: &str) -> Result<PathBuf> {
    let name = module.rsplit('/').next().unwrap_or(module);
    let folder = root.join("bench/target").join(format!("{name}-{version}"));
    if folder.join("go.mod").is_file() {
        return Ok(folder);
    }
    let module = format!("{module}@{version}");
    let found: Value = serde_json::from_str(&output(root, "go", &["mod", "download", "-json", &module])?)?;
    let cached = found["Dir"].as_str().context("go did not name the module's folder")?;
    let unfinished = folder.with_extension("unfinished");
    copy(Path::new(cached), &unfinished)?;
    fs::rename(&unfinished, &folder)?;
    Ok(folder)
}

/// Copies a folder. Go's module cache is read-only, and the copy is not.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Runs a function with each item, several at the same time, and returns the results in the order in which they came.
pub(super) fn run_each<I: Sync, T: Send>(items: &[I], at_once: usize, run: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let left = Mutex::new(items.iter());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            // The lock must not be held while an item runs.
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { return };
            let result = run(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the tests in the output of a Go test with `-test.v`, and whether each passed. Tests that have parts are represented by these.
pub(super) fn outcomes(output: &str) -> Vec<(String, bool)> {
    let outcome = |line: &str| {
        // What a test prints can stand before it.
        let found = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
        let passed = found("--- PASS: ").map(|name| (name.to_owned(), true));
        passed.or_else(|| found("--- FAIL: ").map(|name| (name.to_owned(), false)))
    };
    let all: Vec<(String, bool)> = output.lines().filter_map(outcome).collect();
    let has_parts =
        |name: &str| all.iter().any(|(other, _)| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')));
    all.iter().filter(|(name, _)| !has_parts(name)).cloned().collect()
}

/// Returns the tests that cannot pass, and why. A line is a test, ` # ` and the reason.
pub(super) fn listed(file: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (test, why) = line.rsplit_once(" # ").with_context(|| format!("{line}: no reason"))?;
            Ok((test.to_owned(), why.to_owned()))
        })
        .collect()
}

/// Prints the number of tests that passed. A test that fails without being listed is a failure, and so is a listed test that passes,
/// unless its reason says that it sometimes does.
pub(super) fn judge(
    suite: &str,
    tests: &str,
    results: &BTreeMap<String, bool>,
    listed: &BTreeMap<String, String>,
    is_unfinished: bool,
) -> Result<()> {
    ensure!(!results.is_empty(), "{suite}: no {tests} were run");
    let passed = results.values().filter(|passed| **passed).count();
    let unexpected: Vec<&String> = results
        .iter()
        .filter(|(test, passed)| !**passed && !listed.contains_key(*test))
        .map(|(test, _)| test)
        .collect();
    let is_outdated = |test: &String, why: &str| match results.get(test) {
        Some(passed) => *passed && !why.starts_with(SOMETIMES),
        None => true,
    };
    let outdated: Vec<&String> =
        listed.iter().filter(|(test, why)| is_outdated(test, why)).map(|(test, _)| test).collect();
    for test in &unexpected {
        println!("failed: {test}");
    }
    for test in &outdated {
        println!("listed, but passed or not found: {test}");
    }
    println!("{suite}: {passed} of {} {tests} passed, {} cannot", results.len(), listed.len());
    if !unexpected.is_empty() || !outdated.is_empty() || is_unfinished {
        bail!(
            "{} {tests} of {suite} failed, {} entries of the list are outdated{}",
            unexpected.len(),
            outdated.len(),
            if is_unfinished { ", and not all suites finished" } else { "" }
        );
    }
    Ok(())
}

/// The beginning of the reason of a test that depends on time.
const SOMETIMES: &str = "sometimes:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_those_of_the_smallest_parts() {
        let output = "=== RUN   TestA\n    --- PASS: TestA/one (0.00s)\n    --- FAIL: TestA/two (0.00s)\n--- FAIL: TestA (0.01s)\n\
                      0/0 specs --- PASS: TestAB (1.00s)\nFAIL\n";
        let expected = [("TestA/one", true), ("TestA/two", false), ("TestAB", true)];
        assert_eq!(outcomes(output), expected.map(|(name, passed)| (name.to_owned(), passed)));
    }
}
