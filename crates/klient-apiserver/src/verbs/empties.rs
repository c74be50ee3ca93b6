//! Empty lists and maps in messages. Go prints one that was sent as `[]` or `{}`, and one that is absent as `null`; a decoded object does not tell
//! them apart.

use std::collections::{HashMap, HashSet};

use klient_core::Status;
use serde_json::{Map, Value};

use crate::call::Call;

/// Prints the empty values of a refused object as they were sent. `sent` is called only if there are any.
pub(super) fn shown(mut status: Box<Status>, sent: impl FnOnce() -> Option<Value>) -> Box<Status> {
    let causes = status.details.as_mut().map_or(&mut [][..], |details| &mut details.causes);
    let shows_null = |message: &str| value_of(message).is_some_and(|(_, value)| value.contains("null"));
    if !causes.iter().any(|cause| shows_null(&cause.message)) {
        return status;
    }
    let Some(sent) = sent() else { return status };
    let (mut changes, mut names) = (Vec::new(), Names::default());
    for cause in causes {
        let Some((prefix, value)) = value_of(&cause.message) else { continue };
        // A message about a whole `spec` shows a value inside of it.
        if value.starts_with("null") && !cause.field.contains('.') {
            continue;
        }
        // The paths of some fields begin inside of `spec`.
        let found = find(&sent, &cause.field).or_else(|| find(&sent["spec"], &cause.field));
        let changed = format!("{prefix}{}", with_empties(value, found, &mut names));
        if changed != cause.message {
            let before = std::mem::replace(&mut cause.message, changed);
            changes.push((format!("{}: {before}", cause.field), format!("{}: {}", cause.field, cause.message)));
        }
    }
    status.message = replaced(&status.message, &changes);
    status
}

/// Returns the object in the body of a request.
pub(super) fn body(call: &Call) -> Option<Value> {
    serde_json::from_slice(&call.body).ok()
}

/// Returns a text with parts replaced that it has in their order. Equal parts are in the text once.
fn replaced(text: &str, changes: &[(String, String)]) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    let mut seen = HashSet::new();
    for (before, after) in changes.iter().filter(|(before, _)| seen.insert(before)) {
        if let Some((kept, next)) = rest.split_once(before.as_str()) {
            out.push_str(kept);
            out.push_str(after);
            rest = next;
        }
    }
    out + rest
}

/// Splits a message before the value that it shows, if it shows one that may have empty values.
fn value_of(message: &str) -> Option<(&str, &str)> {
    let prefix = ["Invalid value: ", "Unsupported value: "].into_iter().find(|prefix| message.starts_with(prefix))?;
    let (prefix, value) = message.split_at(prefix.len());
    value.starts_with(['{', '[', 'n']).then_some((prefix, value))
}

/// Returns a text that begins with JSON, with its nulls as they were sent. Names in the text are those of Go's fields.
fn with_empties<'s>(text: &str, sent: Option<&'s Value>, names: &mut Names<'s>) -> String {
    let mut scan = Scan { rest: text, out: String::with_capacity(text.len()), names };
    scan.value(sent);
    scan.out + scan.rest
}

/// The fields of maps by their names in lower case. Those of a map are listed once they are needed.
#[derive(Default)]
struct Names<'s> {
    of_maps: HashMap<*const Map<String, Value>, HashMap<String, &'s Value>>,
}

impl<'s> Names<'s> {
    /// Returns a field by its name in Go, which has other upper case letters.
    fn find(&mut self, fields: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
        if let Some(value) = fields.get(name) {
            return Some(value);
        }
        let names = self.of_maps.entry(fields).or_insert_with(|| {
            let mut names = HashMap::with_capacity(fields.len());
            for (name, value) in fields {
                // The first of equal ones counts.
                names.entry(name.to_ascii_lowercase()).or_insert(value);
            }
            names
        });
        names.get(&name.to_ascii_lowercase()).copied()
    }
}

/// A copy of JSON in progress.
struct Scan<'t, 's, 'n> {
    rest: &'t str,
    out: String,
    names: &'n mut Names<'s>,
}

impl<'t, 's> Scan<'t, 's, '_> {
    fn value(&mut self, sent: Option<&'s Value>) {
        match self.rest.bytes().next() {
            Some(b'{') => self.entries(b'}', |scan, _| {
                let name = scan.text();
                scan.copy(1);
                let fields = sent.and_then(Value::as_object);
                let field = fields.and_then(|fields| scan.names.find(fields, name));
                scan.value(field);
            }),
            Some(b'[') => self.entries(b']', |scan, index| scan.value(sent.and_then(|sent| sent.get(index)))),
            Some(b'"') => drop(self.text()),
            _ if self.rest.starts_with("null") => {
                let empty = match sent {
                    Some(Value::Array(items)) if items.is_empty() => "[]",
                    Some(Value::Object(entries)) if entries.is_empty() => "{}",
                    _ => "null",
                };
                self.out.push_str(empty);
                self.rest = &self.rest["null".len()..];
            }
            // At least one character, so that every text has an end.
            _ => drop(self.copy(self.rest.find([',', ':', ']', '}']).map_or(self.rest.len(), |end| end.max(1)))),
        }
    }

    /// Copies the entries of a list or a map, and its brackets.
    fn entries(&mut self, end: u8, mut entry: impl FnMut(&mut Self, usize)) {
        self.copy(1);
        for index in 0.. {
            match self.rest.bytes().next() {
                None => return,
                Some(next) if next == end => {
                    self.copy(1);
                    return;
                }
                Some(b',') => {
                    self.copy(1);
                }
                Some(_) => {}
            }
            entry(self, index);
        }
    }

    /// Copies a text in quotes, and returns what is inside of them.
    fn text(&mut self) -> &'t str {
        let mut is_escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        let copied = self.copy(end.map_or(self.rest.len(), |end| end + 2));
        copied.trim_matches('"')
    }

    fn copy(&mut self, length: usize) -> &'t str {
        let (copied, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.out.push_str(copied);
        self.rest = rest;
        copied
    }
}

/// Returns the value at a path such as `spec.ports[0].name` or `spec.limits[cpu]`.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split(['.', '[']).map(|step| step.trim_end_matches(']')).try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_empties_alone(text: &str, sent: Option<&Value>) -> String {
        with_empties(text, sent, &mut Names::default())
    }

    #[test]
    fn parts_of_a_message_are_replaced_in_order() {
        let change = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        let changes = [change("a: null", "a: []"), change("a: null", "a: []"), change("b: null", "b: {}")];
        assert_eq!(replaced("[a: null, c, b: null, a: null]", &changes), "[a: [], c, b: {}, a: null]");
        assert_eq!(replaced("b: null", &changes), "b: {}");
    }

    #[test]
    fn path_leads_through_lists_and_maps() {
        let value = json!({"a": [{"b": {}}, {"c": {"cpu": []}}]});
        assert_eq!(find(&value, "a[0].b"), Some(&json!({})));
        assert_eq!(find(&value, "a[1].c[cpu]"), Some(&json!([])));
        assert_eq!(find(&value, "a[2]"), None);
        assert_eq!(find(&value, "a.b"), None);
    }

    #[test]
    fn field_is_found_by_its_exact_name_before_another() {
        let sent = json!({"list": [], "LIST": {}, "List": null});
        let shown = with_empties_alone(r#"{"LIST":null,"list":null,"List":null,"lIST":null}"#, Some(&sent));
        assert_eq!(shown, r#"{"LIST":{},"list":[],"List":null,"lIST":{}}"#);
    }

    #[test]
    fn nulls_are_shown_as_they_were_sent() {
        let sent =
            json!({"required": {"nodeSelectorTerms": [{"matchFields": []}, {"matchExpressions": [{"values": []}]}]}});
        let text = r#"{"Required":{"NodeSelectorTerms":[{"MatchExpressions":null,"MatchFields":null},{"MatchExpressions":[{"Key":"\"}","N":-1,"Values":null}],"MatchFields":null}]}}: why, null: []"#;
        let expected =
            text.replacen("\"MatchFields\":null", "\"MatchFields\":[]", 1).replace("\"Values\":null", "\"Values\":[]");
        assert_eq!(with_empties_alone(text, Some(&sent)), expected);
        assert_eq!(with_empties_alone("null: why", Some(&json!({}))), "{}: why");
        assert_eq!(with_empties_alone("null: why", None), "null: why");
        for length in 0..text.len() {
            with_empties_alone(&text[..length], Some(&sent));
        }
    }
}
