//! A source of objects that does what a test tells it, and remembers what it was asked.

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

/// What was asked, in short: `list 0 500`, `list =5 0`, `watch @5`, `initial`.
pub(crate) type Asked = String;

#[derive(Clone, Default)]
pub(crate) struct Source {
    shared: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    asked: Vec<Asked>,
    lists: VecDeque<Result<Page, Error>>,
    watches: VecDeque<Result<mpsc::UnboundedReceiver<Said>, Error>>,
    lacking: bool,
}

pub(crate) type Said = Result<WatchEvent<RawObject>, Error>;

/// One answer to a list.
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

    /// Ends with an error instead of its end.
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
        self.shared.lock().unwrap().lists.push_back(Ok(page));
        self
    }

    pub(crate) fn list_fails(&self, error: Error) -> &Self {
        self.shared.lock().unwrap().lists.push_back(Err(error));
        self
    }

    pub(crate) fn watch(&self) -> mpsc::UnboundedSender<Said> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.shared.lock().unwrap().watches.push_back(Ok(receiver));
        sender
    }

    pub(crate) fn watch_fails(&self, error: Error) -> &Self {
        self.shared.lock().unwrap().watches.push_back(Err(error));
        self
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.lock().unwrap().asked.clone()
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
            let mut script = self.shared.lock().unwrap();
            let asked = match &options.continue_token {
                Some(token) => format!("page {token} {}", options.limit),
                None => format!("list {} {}", shown(&options.version), options.limit),
            };
            script.asked.push(asked);
            script.lists.pop_front()
        };
        match next {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }

    async fn watch(&self, options: WatchOptions, _: ManagedFields) -> Result<Events, Error> {
        let next = {
            let mut script = self.shared.lock().unwrap();
            let what = if options.send_initial_events == Some(true) { "initial" } else { "watch" };
            script.asked.push(format!("{what} {}", shown(&options.version)));
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
        !self.shared.lock().unwrap().lacking
    }

    fn lacks_watch_list(&self) {
        self.shared.lock().unwrap().lacking = true;
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
    receiver: mpsc::UnboundedReceiver<Said>,
    ended: bool,
}

impl WatchEvents for Events {
    async fn next(&mut self) -> Option<Said> {
        let said = self.receiver.recv().await;
        // A connection that broke is at its end; an event that cannot be read is not.
        self.ended = said.is_none() || matches!(&said, Some(Err(error)) if error.kind() == ErrorKind::Transport);
        said
    }

    fn is_ended(&self) -> bool {
        self.ended
    }
}

pub(crate) fn added(name: &str, version: &str) -> Said {
    Ok(WatchEvent::Added(object(name, version)))
}

pub(crate) fn modified(name: &str, version: &str) -> Said {
    Ok(WatchEvent::Modified(object(name, version)))
}

pub(crate) fn deleted(name: &str, version: &str) -> Said {
    Ok(WatchEvent::Deleted(object(name, version)))
}

pub(crate) fn bookmark(version: &str, initial_events_end: bool) -> Said {
    Ok(WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end, types: None }))
}

pub(crate) fn says(status: Status) -> Said {
    Ok(WatchEvent::Error(status))
}

pub(crate) fn broken() -> Said {
    Err(Error::new(ErrorKind::Transport, "connection reset"))
}
