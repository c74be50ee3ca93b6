//! The entries of a recording in an order that can be replayed.
//!
//! A cache may show a write before its response arrives, so that the entry of a request may come after the entries that it caused. Such a request is moved
//! before them: it was executed by then.

use std::collections::HashMap;

use klient::recording::{Change, Entry, Recording, Step};
use serde_json::Value;

/// An entry with its line in the file.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) entry: Entry,
    /// Whether this is a change that a recorded request caused.
    pub(crate) is_own: bool,
}

/// Returns the entries of a recording in the order of their replay.
pub(crate) fn lines(recording: &Recording) -> Vec<Line> {
    let lines = recording.entries.iter().enumerate();
    let mut lines: Vec<Line> =
        lines.map(|(index, entry)| Line { number: index + 2, entry: entry.clone(), is_own: false }).collect();
    let writes = own_writes(&lines);
    // The first entry that shows each write.
    let mut shown: HashMap<usize, usize> = HashMap::new();
    for (index, line) in lines.iter_mut().enumerate() {
        let Step::Object { change, object, .. } = &line.entry.step else { continue };
        let Some(request) = writes.iter().find(|write| write.causes(*change, object)) else { continue };
        line.is_own = true;
        shown.entry(request.index).or_insert(index);
    }
    let mut moved: Vec<(usize, usize)> = shown.into_iter().filter(|(request, shown)| shown < request).collect();
    // From the front to the back: a move changes no index behind the request.
    moved.sort_unstable();
    for (request, shown) in moved {
        let line = lines.remove(request);
        lines.insert(shown, line);
    }
    lines
}

/// A write of a recorded reconcile that succeeded.
struct OwnWrite {
    index: usize,
    name: String,
    namespace: String,
    /// The version after the write; `None` for a deletion.
    version: Option<String>,
    kind: String,
}

fn own_writes(lines: &[Line]) -> Vec<OwnWrite> {
    let mut writes = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Step::Request { method, path, status: Some(200..300), response, .. } = &line.entry.step else { continue };
        if method == "GET" || path.contains("dryRun=") {
            continue;
        }
        let response = response.clone().unwrap_or_default();
        let text = |pointer: &str| response.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = object_of(path);
        let version = text("/metadata/resourceVersion");
        writes.push(OwnWrite {
            index,
            name: Some(text("/metadata/name")).filter(|name| !name.is_empty()).unwrap_or(name),
            namespace: Some(text("/metadata/namespace")).filter(|found| !found.is_empty()).unwrap_or(namespace),
            version: (method != "DELETE").then_some(version),
            kind: text("/kind"),
        });
    }
    writes
}

impl OwnWrite {
    /// Returns whether a change of a cache shows this write.
    fn causes(&self, change: Change, object: &Value) -> bool {
        let metadata = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
        if metadata("name") != self.name || metadata("namespace") != self.namespace {
            return false;
        }
        match &self.version {
            Some(version) => change != Change::Deleted && !version.is_empty() && metadata("resourceVersion") == version,
            // The response is a status or the object.
            None => {
                change == Change::Deleted
                    && (self.kind == "Status" || self.kind.is_empty() || object["kind"] == self.kind.as_str())
            }
        }
    }
}

/// Returns namespace and name of the object that a path names, as far as it does.
fn object_of(path: &str) -> (String, String) {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let prefix = if parts.first() == Some(&"apis") { 3 } else { 2 };
    parts.drain(..prefix.min(parts.len()));
    match parts[..] {
        ["namespaces", namespace, _, name, ..] => (namespace.to_owned(), name.to_owned()),
        ["namespaces", namespace, _] => (namespace.to_owned(), String::new()),
        [_, name, ..] => (String::new(), name.to_owned()),
        _ => (String::new(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use klient::recording::{Header, TurnEnd};
    use serde_json::json;

    use super::*;

    fn recording(steps: Vec<Step>) -> Recording {
        let header = Header {
            klient: "recording".to_owned(),
            version: 1,
            started: "2026-01-01T00:00:00Z".to_owned(),
            whole: true,
        };
        Recording { header, entries: (0..).zip(steps).map(|(at, step)| Entry { at, step }).collect() }
    }

    fn object(change: Change, version: &str) -> Step {
        let object =
            json!({"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "resourceVersion": version}});
        Step::Object { resource: "pods".to_owned(), change, object }
    }

    fn request(method: &str, response: Value) -> Step {
        Step::Request {
            turn: 1,
            method: method.to_owned(),
            path: "/api/v1/namespaces/shop/pods/web".to_owned(),
            body: None,
            status: Some(200),
            response: Some(response),
            error: None,
        }
    }

    #[test]
    fn request_is_moved_before_the_change_that_it_caused() {
        let response = json!({"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"}});
        let end = Step::Ended { turn: 1, end: TurnEnd::Done };
        let steps = vec![object(Change::Updated, "6"), object(Change::Updated, "7"), request("PUT", response), end];
        let lines = lines(&recording(steps));
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [2, 4, 3, 5]);
        assert_eq!(lines.iter().map(|line| line.is_own).collect::<Vec<_>>(), [false, false, true, false]);
    }

    #[test]
    fn deletion_is_recognised_by_the_path() {
        let steps = vec![object(Change::Deleted, "9"), request("DELETE", json!({"kind": "Status"}))];
        let lines = lines(&recording(steps));
        assert_eq!(lines.iter().map(|line| (line.number, line.is_own)).collect::<Vec<_>>(), [(3, false), (2, true)]);
    }

    #[test]
    fn path_names_its_object() {
        for (path, expected) in [
            ("/api/v1/namespaces/shop/pods/web/status?force=true", ("shop", "web")),
            ("/apis/apps/v1/namespaces/shop/deployments", ("shop", "")),
            ("/api/v1/nodes/a", ("", "a")),
            ("/apis/example.com/v1/shops/a", ("", "a")),
            ("/version", ("", "")),
        ] {
            assert_eq!(object_of(path), (expected.0.to_owned(), expected.1.to_owned()), "{path}");
        }
    }
}
