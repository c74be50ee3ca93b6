//! A source of objects that follows a test's script, and records the requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ListMeta};
use klient::{
    Error, ErrorKind, WatchEvent,
    informer::{ListItems, ListWatch, WatchEvents},
    object::{Bookmark, VersionMatch},
    options::{ListOptions, WatchOptions},
    status::Status,
    wire::{ListEnd, ManagedFields, RawObject},
};
use serde_json::json;
use tokio::sync::mpsc;

/// A request in short: `list any 500`, `list >=5 0`, `page token 500`, `watch @5`, `initial newest`.
pub(crate) type Request = String;

#[derive(Clone, Default)]
pub(crate) struct Source {
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    requests: Vec<Request>,
    lists: VecDeque<Result<Page, Error>>,
    watches: VecDeque<Result<mpsc::UnboundedReceiver<Sent>, Error>>,
    lacking: bool,
}

pub(crate) type Sent = Result<WatchEvent<RawObject>, Error>;

/// One response to a list request.
pub(crate) struct Page {
    items: VecDeque<Result<RawObject, Error>>,
    version: String,
    token: Option<String>,
    broken: bool,
}

impl Page {
    pub(crate) fn new(version: &str, names: &[(&str, &str)]) -> Self {
        Self::of(version, names.iter().map(|(name, version)| object(name, version)))
    }

    pub(crate) fn of(version: &str, objects: impl IntoIterator<Item = RawObject>) -> Self {
        let items = objects.into_iter().map(Ok).collect();
        Self { items, version: version.to_owned(), token: None, broken: false }
    }

    pub(crate) fn continues(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn with_unreadable(mut self) -> Self {
        self.items.push_front(Err(Error::new(ErrorKind::Decode, "poison")));
        self
    }

    /// Breaks off with an error.
    pub(crate) fn breaking(mut self) -> Self {
        self.items.push_back(Err(Error::new(ErrorKind::Transport, "broken")));
        self.broken = true;
        self
    }
}

pub(crate) fn object(name: &str, version: &str) -> RawObject {
    object_with(name, version, version)
}

pub(crate) fn object_with(name: &str, version: &str, value: &str) -> RawObject {
    let text = json!({"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": version},
                      "data": {"n": value}});
    RawObject::from_json(text.to_string().as_bytes(), ManagedFields::Drop).unwrap()
}

impl Source {
    pub(crate) fn list(&self, page: Page) -> &Self {
        self.script.lock().unwrap().lists.push_back(Ok(page));
        self
    }

    pub(crate) fn list_fails(&self, error: Error) -> &Self {
        self.script.lock().unwrap().lists.push_back(Err(error));
        self
    }

    pub(crate) fn watch(&self) -> mpsc::UnboundedSender<Sent> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.script.lock().unwrap().watches.push_back(Ok(receiver));
        sender
    }

    pub(crate) fn watch_fails(&self, error: Error) -> &Self {
        self.script.lock().unwrap().watches.push_back(Err(error));
        self
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.script.lock().unwrap().requests.clone()
    }
}

fn shown(version: &VersionMatch) -> String {
    match version {
        VersionMatch::MostRecent => "newest".to_owned(),
        VersionMatch::Any => "any".to_owned(),
        VersionMatch::NotOlderThan(version) => format!(">={version}"),
        VersionMatch::Exact(version) => format!("@{version}"),
    }
}

impl ListWatch for Source {
    type Kind = ConfigMap;
    type List = Page;
    type Watch = Events;

    async fn list(&self, options: ListOptions, _: ManagedFields) -> Result<Page, Error> {
        let next = {
            let mut script = self.script.lock().unwrap();
            let request = match &options.continue_token {
                Some(token) => format!("page {token} {}", options.limit),
                None => format!("list {} {}", shown(&options.version), options.limit),
            };
            script.requests.push(request);
            script.lists.pop_front()
        };
        match next {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }

    async fn watch(&self, options: WatchOptions, _: ManagedFields) -> Result<Events, Error> {
        let next = {
            let mut script = self.script.lock().unwrap();
            let what = if options.send_initial_events == Some(true) { "initial" } else { "watch" };
            script.requests.push(format!("{what} {}", shown(&options.version)));
            script.watches.pop_front()
        };
        match next {
            Some(outcome) => outcome.map(|receiver| Events { receiver, ended: false }),
            None => std::future::pending().await,
        }
    }

    fn describe(&self) -> String {
        "configmaps".to_owned()
    }

    fn offers_watch_list(&self) -> bool {
        !self.script.lock().unwrap().lacking
    }

    fn lacks_watch_list(&self) {
        self.script.lock().unwrap().lacking = true;
    }
}

impl ListItems for Page {
    async fn next(&mut self) -> Option<Result<RawObject, Error>> {
        self.items.pop_front()
    }

    fn end(&mut self) -> Option<ListEnd> {
        let metadata = ListMeta {
            resource_version: Some(self.version.clone()),
            continue_: self.token.clone(),
            ..ListMeta::default()
        };
        let mut end = ListEnd::default();
        end.metadata = metadata;
        (!self.broken).then_some(end)
    }
}

pub(crate) struct Events {
    receiver: mpsc::UnboundedReceiver<Sent>,
    ended: bool,
}

impl WatchEvents for Events {
    async fn next(&mut self) -> Option<Sent> {
        let sent = self.receiver.recv().await;
        // A broken connection ends the watch. An unreadable event does not.
        self.ended = sent.is_none() || matches!(&sent, Some(Err(error)) if error.kind() == ErrorKind::Transport);
        sent
    }

    fn is_ended(&self) -> bool {
        self.ended
    }
}

pub(crate) fn added(name: &str, version: &str) -> Sent {
    Ok(WatchEvent::Added(object(name, version)))
}

pub(crate) fn modified(name: &str, version: &str) -> Sent {
    Ok(WatchEvent::Modified(object(name, version)))
}

pub(crate) fn deleted(name: &str, version: &str) -> Sent {
    Ok(WatchEvent::Deleted(object(name, version)))
}

pub(crate) fn bookmark(version: &str, initial_events_end: bool) -> Sent {
    Ok(WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end, types: None }))
}

pub(crate) fn error_event(status: Status) -> Sent {
    Ok(WatchEvent::Error(status))
}

pub(crate) fn broken() -> Sent {
    Err(Error::new(ErrorKind::Transport, "connection reset"))
}
