//! The objects that are told of: as many as wanted, each with its own name, uid and version, made from recorded ones while they are
//! written.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::SystemTime,
};

use crate::{
    protobuf,
    recording::{Recording, Templates},
    template::{FIRST_VERSION, Template},
};

/// The kind and encoding of the objects that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Protobuf,
    Json,
    /// Custom resources, which are JSON only.
    Custom,
}

pub(crate) struct Fleet {
    pub(crate) recording: Recording,
    pub(crate) size: usize,
    /// The number of changes.
    pub(crate) events: usize,
    /// The number of changes per second; all at once if unset.
    pub(crate) pace: Option<u32>,
    /// The number of changes of the last object that no watch sent.
    pub(crate) unseen: AtomicUsize,
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) first: usize,
    pub(crate) end: usize,
}

impl Fleet {
    /// Returns the objects from a number on, up to a limit.
    pub(crate) fn page(&self, first: usize, limit: Option<usize>) -> Page {
        let first = first.min(self.size);
        let end = limit.map_or(self.size, |limit| first.saturating_add(limit).min(self.size));
        Page { first, end }
    }

    /// Returns the bytes before the items.
    pub(crate) fn list_head(&self, form: Form, page: &Page) -> Vec<u8> {
        let (version, left) = (self.version(), self.size - page.end);
        match form {
            Form::Json | Form::Custom => {
                let more = format!(r#","continue":"{}","remainingItemCount":{left}"#, page.end);
                let more = if left > 0 { more.as_str() } else { "" };
                let metadata = format!(r#"{{"resourceVersion":"{version}"{more}}}"#);
                let kind = match form {
                    Form::Custom => r#""apiVersion":"bench.klient.invalid/v1","kind":"RolloutList""#,
                    _ => r#""kind":"PodList","apiVersion":"v1""#,
                };
                format!(r#"{{{kind},"metadata":{metadata},"items":["#).into_bytes()
            }
            Form::Protobuf => {
                let mut metadata = Vec::new();
                text(2, &version.to_string(), &mut metadata);
                if left > 0 {
                    text(3, &page.end.to_string(), &mut metadata);
                    protobuf::varint(4 << 3, &mut metadata);
                    protobuf::varint(left as u64, &mut metadata);
                }
                let mut first = Vec::new();
                protobuf::head(1, metadata.len(), &mut first);
                first.extend_from_slice(&metadata);
                let templates = &self.recording.protobuf;
                let mut head = Vec::new();
                let item = |number| {
                    head.clear();
                    let length = nth(&templates.items, number).len();
                    protobuf::head(2, length, &mut head);
                    head.len() + length
                };
                let items: usize = (page.first..page.end).map(item).sum();
                [protobuf::envelope("PodList", first.len() + items), first].concat()
            }
        }
    }

    /// Returns one item with the bytes before it.
    pub(crate) fn item(&self, form: Form, page: &Page, number: usize, out: &mut Vec<u8>) {
        let template = nth(&self.templates(form).items, number);
        match form {
            Form::Json | Form::Custom if number > page.first => out.push(b','),
            Form::Json | Form::Custom => {}
            Form::Protobuf => protobuf::head(2, template.len(), out),
        }
        template.write(number, self.version_of(number), out);
    }

    pub(crate) fn list_tail(form: Form) -> &'static [u8] {
        match form {
            Form::Json | Form::Custom => b"]}\n",
            Form::Protobuf => b"",
        }
    }

    /// Returns one object as the response to a get.
    pub(crate) fn object(&self, form: Form, number: usize) -> Vec<u8> {
        let mut out = Vec::new();
        nth(&self.templates(form).standing, number).write(number, self.version_of(number), &mut out);
        out
    }

    /// Returns the ADDED event of an object.
    pub(crate) fn added(&self, form: Form, number: usize, out: &mut Vec<u8>) {
        nth(&self.templates(form).added, number).write(number, self.version_of(number), out);
    }

    /// Returns the bookmark at the end of the initial events.
    pub(crate) fn end(&self, form: Form, out: &mut Vec<u8>) {
        self.templates(form).end.write(0, self.version(), out);
    }

    /// Returns the error event for an expired version.
    pub(crate) fn expired(form: Form, out: &mut Vec<u8>) {
        match form {
            Form::Json | Form::Custom => {
                let status = r#""status":"Failure","message":"too old resource version","reason":"Expired","code":410"#;
                let object = format!(r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},{status}}}"#);
                out.extend_from_slice(format!("{{\"type\":\"ERROR\",\"object\":{object}}}\n").as_bytes());
            }
            Form::Protobuf => {
                let mut status = Vec::new();
                text(2, "Failure", &mut status);
                text(3, "too old resource version", &mut status);
                text(4, "Expired", &mut status);
                protobuf::varint(6 << 3, &mut status);
                protobuf::varint(410, &mut status);
                protobuf::error(&[protobuf::envelope("Status", status.len()), status].concat(), out);
            }
        }
    }

    /// Returns the number of changes that a watch sends.
    pub(crate) fn changes(&self, form: Form) -> usize {
        if self.templates(form).modified.is_empty() { 0 } else { self.events }
    }

    /// Returns a change after the listed state. All objects change equally often, give or take one.
    pub(crate) fn modified(&self, form: Form, number: usize, at: SystemTime, out: &mut Vec<u8>) {
        let version = self.version() + 1 + number as u64;
        nth(&self.templates(form).modified, number).write_changed(number % self.size, version, at, out);
    }

    /// Returns the resource version of the listed state.
    fn version(&self) -> u64 {
        FIRST_VERSION + (self.size + self.unseen.load(Relaxed)) as u64
    }

    /// Returns the resource version of an object before any change.
    fn version_of(&self, number: usize) -> u64 {
        let changes = if number + 1 == self.size { self.unseen.load(Relaxed) } else { 0 };
        FIRST_VERSION + (number + changes) as u64
    }

    fn templates(&self, form: Form) -> &Templates {
        match form {
            Form::Protobuf => &self.recording.protobuf,
            Form::Json => &self.recording.json,
            Form::Custom => &self.recording.custom,
        }
    }
}

fn nth(templates: &[Template], number: usize) -> &Template {
    &templates[number % templates.len()]
}

fn text(number: u64, value: &str, out: &mut Vec<u8>) {
    protobuf::head(number, value.len(), out);
    out.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn templates() -> Templates {
        let object = br#"{"metadata":{"name":"web-000000","uid":"ab","resourceVersion":"7"}}"#;
        let event = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#;
        let all = || vec![json::template(object).unwrap()];
        let end = json::bookmark(event).unwrap();
        Templates { items: all(), standing: all(), added: all(), end, modified: Vec::new() }
    }

    fn fleet(size: usize) -> Fleet {
        let recording = Recording { protobuf: templates(), json: templates(), custom: templates() };
        Fleet { recording, size, events: 5, pace: None, unseen: AtomicUsize::new(0) }
    }

    fn list(fleet: &Fleet, form: Form) -> String {
        let page = fleet.page(0, None);
        let mut out = fleet.list_head(form, &page);
        (page.first..page.end).for_each(|number| fleet.item(form, &page, number, &mut out));
        String::from_utf8([&out, Fleet::list_tail(form)].concat()).unwrap()
    }

    #[test]
    fn what_changed_unseen_is_in_the_next_state() {
        let fleet = fleet(3);
        let before = list(&fleet, Form::Json);
        fleet.unseen.fetch_add(1, Relaxed);
        let after = list(&fleet, Form::Json);
        let version = |number| format!(r#""resourceVersion":"100000000{number}""#);
        // The state had version 3 and has 4; the last object had 2, and has 3.
        let expected = before.replace(&version(3), &version(4)).replace(&version(2), &version(3));
        assert_eq!(after, expected);
        assert_ne!(after, before);
    }

    #[test]
    fn custom_resources_are_a_list_of_their_own_and_never_change() {
        let fleet = fleet(2);
        assert!(
            list(&fleet, Form::Custom).starts_with(r#"{"apiVersion":"bench.klient.invalid/v1","kind":"RolloutList","#)
        );
        assert_eq!(fleet.changes(Form::Custom), 0);
    }
}
