//! Warnings about files of a volume whose paths overlap: one is written over another, or is the directory of another.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use super::Told;
use crate::builtin::rules::Field;

/// A path of a file in a volume, and the description of its source in projected volumes.
#[derive(PartialEq, Eq)]
struct Path<'v> {
    path: &'v str,
    source: Option<String>,
}

impl Path<'_> {
    fn text(&self) -> String {
        match &self.source {
            Some(source) => format!("{:?} ({source})", self.path),
            None => format!("{:?}", self.path),
        }
    }
}

/// Adds warnings about the volumes of a pod.
pub(super) fn overlaps(volumes: &Field<'_, '_>, told: &mut Told) {
    for volume in volumes.items() {
        let name = volume.field("name").text();
        for (kind, shown, named) in
            [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "DownwardAPI", "")]
        {
            let Some(source) = volume.set(kind) else { continue };
            let shown = if named.is_empty() { shown.to_owned() } else { described(shown, source.field(named).text()) };
            let mut known = Known::default();
            for path in items(&source, None) {
                add(name, &shown, path, &mut known, told);
            }
        }
        projected(name, &volume.field("projected").field("sources"), told);
    }
}

fn projected(volume: &str, sources: &Field<'_, '_>, told: &mut Told) {
    let mut known = Known::default();
    for source in sources.items() {
        if source.is_empty() {
            told.push(format!("volume {volume:?} (Projected) has no sources provided"));
        }
        for path in projected_paths(&source) {
            add(volume, "Projected", path, &mut known, told);
        }
    }
}

/// Returns the paths of a source of a projected volume.
fn projected_paths<'v>(source: &Field<'_, 'v>) -> Vec<Path<'v>> {
    let has_items = |name: &str| source.field(name).field("items").is_set();
    for (name, shown) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        if has_items(name) {
            let source = source.field(name);
            return items(&source, Some(&described(shown, source.field("name").text())));
        }
    }
    if has_items("downwardAPI") {
        return items(&source.field("downwardAPI"), Some("DownwardAPI"));
    }
    match source.set("serviceAccountToken") {
        Some(token) => vec![path(&token, Some("ServiceAccountToken"))],
        None => Vec::new(),
    }
}

fn described(kind: &str, name: &str) -> String {
    format!("{kind} {name:?}")
}

fn items<'v>(source: &Field<'_, 'v>, described: Option<&str>) -> Vec<Path<'v>> {
    source.field("items").items().map(|item| path(&item, described)).collect()
}

fn path<'v>(item: &Field<'_, 'v>, source: Option<&str>) -> Path<'v> {
    Path { path: item.field("path").text().trim_end_matches('/'), source: source.map(str::to_owned) }
}

/// The paths of a volume. Two paths are different ones.
#[derive(Default)]
struct Known<'v> {
    paths: Vec<Path<'v>>,
    by_path: BTreeMap<&'v str, Vec<usize>>,
    lengths: BTreeSet<usize>,
}

impl<'v> Known<'v> {
    /// Returns the indexes of paths that overlap with one.
    fn overlapping(&self, path: &str) -> BTreeSet<usize> {
        let is_directory = |length: usize| length == path.len() || path.as_bytes()[length] == b'/';
        let lengths = self.lengths.range(..=path.len()).filter(|length| is_directory(**length));
        let above = lengths.filter_map(|length| self.by_path.get(&path[..*length]));
        let below = format!("{path}/");
        let start = Bound::Included(below.as_str());
        let inside = self.by_path.range::<str, _>((start, Bound::Unbounded));
        let inside = inside.take_while(|(inner, _)| inner.starts_with(&below)).map(|(_, indexes)| indexes);
        above.chain(inside).flatten().copied().collect()
    }

    fn add(&mut self, path: Path<'v>) {
        if path.path.is_empty() {
            return;
        }
        let indexes = self.by_path.entry(path.path).or_default();
        if indexes.iter().any(|index| self.paths[*index] == path) {
            return;
        }
        indexes.push(self.paths.len());
        self.lengths.insert(path.path.len());
        self.paths.push(path);
    }
}

/// Adds a path to those of its volume, and warnings about those that it overlaps with.
fn add<'v>(volume: &str, shown: &str, path: Path<'v>, known: &mut Known<'v>, told: &mut Told) {
    if told.is_full() {
        return;
    }
    for other in known.overlapping(path.path).into_iter().map(|index| &known.paths[index]) {
        told.push(format!("volume {volume:?} ({shown}): overlapping paths: {} with {}", path.text(), other.text()));
    }
    known.add(path);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_overlap_as_files_and_directories() {
        let overlaps = |left, right| {
            let mut known = Known::default();
            known.add(Path { path: right, source: None });
            !known.overlapping(left).is_empty()
        };
        assert!(overlaps("a", "a"));
        assert!(overlaps("a", "a/b"));
        assert!(overlaps("a/b", "a"));
        assert!(!overlaps("a", "ab"));
        assert!(!overlaps("", "a"));
    }

    #[test]
    fn projected_sources_share_one_directory() {
        let object = json!({"volumes": [{"name": "all", "projected": {"sources": [
            {"secret": {"name": "s", "items": [{"path": "a/"}]}},
            {"serviceAccountToken": {"path": "a/b"}},
            {},
        ]}}]});
        let mut told = Told::default();
        super::overlaps(&Field::of(&object, "volumes"), &mut told);
        let overlap = "overlapping paths: \"a/b\" (ServiceAccountToken) with \"a\" (Secret \"s\")";
        let expected = [
            format!("volume \"all\" (Projected): {overlap}"),
            "volume \"all\" (Projected) has no sources provided".into(),
        ];
        assert_eq!(told.texts, expected);
    }
}
