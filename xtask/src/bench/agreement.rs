//! A comparison of the ratios of this run with those of an earlier run.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// Reads the file that an earlier run wrote with `--json`.
pub(super) fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let run: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    run["jobs"]
        .as_array()
        .with_context(|| format!("{} was not written by `bench --json`: it has no `jobs`", path.display()))?;
    Ok(run)
}

/// One ratio in both runs.
struct Pair<'a> {
    what: &'a str,
    earlier: Spread,
    now: Spread,
}

/// The median, the minimum and the maximum of a ratio.
#[derive(Clone, Copy)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Pair<'_> {
    /// Returns whether the ranges of both runs overlap. The difference is then within the spread of the runs.
    fn agrees(&self) -> bool {
        self.earlier.min <= self.now.max && self.now.min <= self.earlier.max
    }

    /// Returns whether the median of each run is within the range of the other run.
    fn agrees_closely(&self) -> bool {
        self.earlier.holds(self.now.median) && self.now.holds(self.earlier.median)
    }
}

impl Spread {
    fn of(value: &Value) -> Option<Self> {
        let number = |name: &str| value[name].as_f64();
        Some(Self { median: number("median")?, min: number("min")?, max: number("max")? })
    }

    fn holds(self, number: f64) -> bool {
        (self.min..=self.max).contains(&number)
    }

    fn text(self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.median, self.min, self.max)
    }
}

/// Describes the number of ratios that agree, and lists those that do not.
pub(super) fn describe(earlier: &Value, now: &Value) -> String {
    let (earlier, now) = (ratios(earlier), ratios(now));
    let pairs: Vec<_> =
        now.iter().filter_map(|(what, now)| Some(Pair { what, earlier: *earlier.get(what)?, now: *now })).collect();
    let (agree, closely) =
        (pairs.iter().filter(|pair| pair.agrees()).count(), pairs.iter().filter(|pair| pair.agrees_closely()).count());
    let lonely = earlier.len() + now.len() - 2 * pairs.len();
    let mut text = format!(
        "**beside the earlier run**: of {} ratios, {agree} agree within their spreads, {closely} of them so that each \
         median lies within the other's spread; {lonely} are in one of the runs alone.\n",
        pairs.len()
    );
    if agree < pairs.len() {
        text.push_str("\n| ratio that does not agree | earlier | now |\n|---|---|---|\n");
        for Pair { what, earlier, now } in pairs.iter().filter(|pair| !pair.agrees()) {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "| {what} | {} | {} |", earlier.text(), now.text());
        }
    }
    text
}

/// Returns all ratios of a run, by description.
fn ratios(run: &Value) -> BTreeMap<String, Spread> {
    let mut ratios = BTreeMap::new();
    for job in run["jobs"].as_array().into_iter().flatten() {
        let pace = job["pace"].as_u64().map(|pace| format!(", {pace} in a second")).unwrap_or_default();
        let (name, times) = (job["job"].as_str().unwrap_or_default(), &job["count"]);
        let of = format!("{name}{pace}, {} at a time, {} objects, {times} times", job["concurrency"], job["size"]);
        for library in ["client-go", "kube-rs"] {
            for (key, name) in [("cpu_over_klients", "CPU"), ("wall_over_klients", "time")] {
                if let Some(spread) = Spread::of(&job["libraries"][library][key]) {
                    ratios.insert(format!("{of}: {library}'s {name} / klient's"), spread);
                }
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(cpu: [f64; 3]) -> Value {
        let spread = json!({"min": cpu[0], "median": cpu[1], "max": cpu[2]});
        let libraries = json!({"client-go": {"cpu_over_klients": spread}, "kube-rs": {"missing": "not offered"}});
        json!({"jobs": [{"job": "queue", "concurrency": 8, "count": 9, "size": 1, "libraries": libraries}]})
    }

    #[test]
    fn spreads_that_overlap_agree_and_others_are_named() {
        let first = run([3.0, 4.0, 5.0]);
        assert!(describe(&first, &run([3.5, 4.5, 6.0])).contains("of 1 ratios, 1 agree within their spreads, 1 of"));
        let apart = describe(&first, &run([4.9, 5.5, 6.0]));
        assert!(apart.contains("1 agree within their spreads, 0 of"), "{apart}");
        let other = describe(&first, &run([5.1, 5.5, 6.0]));
        assert!(
            other.contains("0 agree") && other.contains("| queue, 8 at a time, 1 objects, 9 times: client-go's CPU"),
            "{other}"
        );
    }

    #[test]
    fn a_job_that_only_one_run_has_does_not_agree_with_anything() {
        let text = describe(&json!({"jobs": []}), &run([1.0, 1.0, 1.0]));
        assert!(text.contains("of 0 ratios") && text.contains("; 1 are in one of the runs alone"), "{text}");
    }

    #[test]
    fn a_file_that_is_something_else_is_named() {
        let folder = klient_harness::Folder::new().unwrap();
        let path = folder.path().join("other.json");
        for text in ["{}", "[", ""] {
            fs::write(&path, text).unwrap();
            assert!(format!("{:#}", read(&path).unwrap_err()).contains("other.json"));
        }
        assert!(format!("{:#}", read(&folder.path().join("none.json")).unwrap_err()).contains("none.json"));
    }
}
