//! Watches.
//!
//! A watch has a position in the log of its table and no queue of its own. A task turns new changes into events.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use klient_core::{GroupKind, Status, StatusCause};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    Target,
    get::{blameless, parse_version},
};
use crate::{
    Result,
    body::ResponseBody,
    builtin::{tables, versions},
    call::Call,
    conversion,
    negotiate::{Encoding, Projection, ResponseFormat},
    registry::Resource,
    response,
    selection::Selection,
    server::Core,
    store::{Change, ChangeKind, Cursor, Stored, json_event},
};

/// A running watch.
struct Watch {
    core: Weak<Core>,
    resource: Arc<Resource>,
    selection: Selection,
    prefix: String,
    wanted: ResponseFormat,
    bookmarks: bool,
    deadline: Instant,
    /// Notified when all watches end.
    end: watch::Receiver<()>,
    /// Whether the columns of a table were sent.
    columns_told: bool,
    /// The revision up to which all events were sent.
    told: u64,
}

/// The start of a watch.
struct Start {
    /// The objects to send as initial events.
    initial: Vec<Arc<Stored>>,
    /// The revision after which changes are sent.
    after: u64,
    /// Whether a bookmark marks the end of the initial events.
    mark_end: bool,
}

impl Core {
    pub(super) async fn watch(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        let mut wanted = call.collection_format(resource)?;
        if wanted.encoding == Encoding::Yaml {
            return Err(Box::new(Status::not_acceptable(&[
                "application/json;stream=watch",
                "application/vnd.kubernetes.protobuf;stream=watch",
            ])));
        }
        wanted.pretty = false;
        let mut selection = Selection::of_call(resource, call)?;
        if let Some(name) = &target.name {
            selection = selection.of_name(name);
        }
        let initial_events = check_options(call)?;
        let timeout = call.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok()).filter(|s| *s > 0);
        let timeout = timeout.map_or_else(|| Duration::from_secs(1800 + self.random() % 1800), Duration::from_secs);
        // The limit keeps the deadline representable.
        let timeout = timeout.min(MAX_TIMEOUT);
        let mut watch = Watch {
            core: Arc::downgrade(self),
            resource: Arc::clone(resource),
            selection,
            prefix: target.prefix(),
            wanted,
            bookmarks: call.flag("allowWatchBookmarks"),
            deadline: Instant::now() + timeout,
            end: self.watches_end.subscribe(),
            columns_told: false,
            told: 0,
        };
        let start = match self.start(call, target, initial_events).await {
            Ok(start) => start,
            // The real server sends this error as an event in the stream.
            Err(status) if status.is_expired() || status.is_version_too_large() => return watch.failed(&status),
            Err(status) => return Err(status),
        };
        let cursor = match self.store.follow(&resource.table, start.after) {
            Ok(cursor) => cursor,
            Err(compacted) => {
                let message = format!("too old resource version: {} ({})", start.after, compacted.oldest);
                return watch.failed(&Status::expired(message));
            }
        };
        watch.told = start.after;
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let (encoding, bookmark_every) = (wanted.encoding, self.bookmark_every);
        let task = tokio::spawn(watch.run(start, cursor, sender, bookmark_every));
        Ok(response::watch(encoding, ResponseBody::stream(chunks, task)))
    }

    /// Returns the start of a watch.
    async fn start(&self, call: &Call, target: &Target, initial_events: Option<bool>) -> Result<Start> {
        let version =
            call.param("resourceVersion").map(parse_version).transpose().map_err(|status| blameless(&status))?;
        let version = version.unwrap_or_default();
        let wants_state = initial_events.unwrap_or(version == 0);
        if !wants_state {
            let after = if version == 0 { self.store.revision() } else { version };
            return Ok(Start { initial: Vec::new(), after, mark_end: false });
        }
        if version > 0 {
            self.wait_for(version).await?;
        }
        let snapshot = self.store.list(&target.resource.table, &target.prefix());
        Ok(Start { initial: snapshot.objects, after: snapshot.revision, mark_end: true })
    }
}

impl Watch {
    /// Sends events until the client disconnects, the time is over, or the position is compacted.
    async fn run(mut self, start: Start, mut cursor: Cursor, sender: mpsc::Sender<Bytes>, bookmark_every: Duration) {
        let initial = match self.initial(start.initial).await {
            Ok(initial) => initial,
            Err(status) => {
                let _ = sender.send(self.error(&status)).await;
                return;
            }
        };
        for stored in initial {
            if sender.send(self.stored_event("ADDED", &stored)).await.is_err() {
                return;
            }
        }
        if start.mark_end && self.bookmarks && sender.send(self.bookmark(true)).await.is_err() {
            return;
        }
        let mut next_bookmark = Instant::now() + bookmark_every;
        loop {
            match cursor.ready() {
                Ok((changes, complete)) => {
                    for change in &changes {
                        let event = match self.change(change).await {
                            Ok(event) => event,
                            Err(status) => {
                                let _ = sender.send(self.error(&status)).await;
                                return;
                            }
                        };
                        if let Some(event) = event
                            && sender.send(event).await.is_err()
                        {
                            return;
                        }
                    }
                    self.told = self.told.max(complete);
                }
                Err(compacted) => {
                    // The client fell behind the history and has to list again.
                    let message = format!("too old resource version: {} ({})", self.told, compacted.oldest);
                    let _ = sender.send(self.error(&Status::expired(message))).await;
                    return;
                }
            }
            tokio::select! {
                alive = cursor.changed() => if !alive { return },
                () = sleep_until(self.deadline) => return,
                () = sleep_until(next_bookmark), if self.bookmarks => {
                    next_bookmark = Instant::now() + bookmark_every;
                    // Changes that came meanwhile are sent first.
                    if cursor.ready_is_empty() && sender.send(self.bookmark(false)).await.is_err() {
                        return;
                    }
                }
                () = sender.closed() => return,
                _ = self.end.changed() => return,
            }
        }
    }

    /// Returns the selected ones of the stored objects, in the version of the watch.
    async fn initial(&self, mut objects: Vec<Arc<Stored>>) -> Result<Vec<Arc<Stored>>> {
        if self.selection.reads_objects() {
            self.convert(&mut objects).await?;
            objects.retain(|stored| self.selection.matches(stored));
        } else {
            objects.retain(|stored| self.selection.matches(stored));
            self.convert(&mut objects).await?;
        }
        Ok(objects)
    }

    /// Brings stored objects to the version of the watch.
    async fn convert(&self, objects: &mut Vec<Arc<Stored>>) -> Result<()> {
        match self.core.upgrade() {
            Some(core) => core.convert_all(&self.resource, objects).await,
            None => Ok(()),
        }
    }

    /// Returns the event of a change. A webhook is called only for objects that are read.
    async fn change(&mut self, change: &Change) -> Result<Option<Bytes>> {
        if !change.key.starts_with(&self.prefix) {
            return Ok(None);
        }
        let is_converted = conversion::webhook_of(&self.resource).is_some();
        let reads_objects = self.selection.reads_objects();
        let kind = if is_converted && reads_objects { None } else { self.kind_of(change) };
        if !is_converted || (!reads_objects && kind.is_none()) {
            return Ok(kind.map(|kind| self.event_of(kind, change)));
        }
        let mut objects = vec![Arc::clone(&change.object)];
        let is_left = kind == Some("DELETED") && change.kind != ChangeKind::Deleted;
        objects.extend(change.previous.clone().filter(|_| reads_objects || is_left));
        self.convert(&mut objects).await?;
        let previous = objects.get(1).cloned();
        let change = change.with_objects(Arc::clone(&objects[0]), previous);
        let kind = kind.or_else(|| self.kind_of(&change));
        Ok(kind.map(|kind| self.event_of(kind, &change)))
    }

    /// Returns the kind of event of a change. An object that enters or leaves the selection is added or deleted.
    fn kind_of(&self, change: &Change) -> Option<&'static str> {
        let now = change.kind != ChangeKind::Deleted && self.selection.matches(&change.object);
        let before = change.previous.as_ref().is_some_and(|stored| self.selection.matches(stored));
        match (before, now) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    /// Encodes the event of a change.
    fn event_of(&mut self, kind: &str, change: &Change) -> Bytes {
        let plain = self.wanted == ResponseFormat::JSON && !versions::is_converted(&self.resource);
        let as_it_is = match kind {
            "ADDED" => change.kind == ChangeKind::Created,
            "MODIFIED" => change.kind == ChangeKind::Updated,
            _ => change.kind == ChangeKind::Deleted,
        };
        if plain && as_it_is {
            return change.json_event();
        }
        if kind == "DELETED" && change.kind != ChangeKind::Deleted {
            // The object left the selection: its last state is sent with the revision of the change.
            let mut object = change
                .previous
                .as_ref()
                .map(|stored| stored.shown_for(&self.resource, self.wanted.projection))
                .unwrap_or_default();
            object["metadata"]["resourceVersion"] = json!(change.revision.to_string());
            return self.event(kind, &object);
        }
        self.stored_event(kind, &change.object)
    }

    /// Encodes an event of a stored object. JSON events are cached and shared.
    fn stored_event(&mut self, kind: &str, stored: &Stored) -> Bytes {
        if self.wanted == ResponseFormat::JSON && !versions::is_converted(&self.resource) {
            return json_event(kind, stored.json());
        }
        match response::stored_message(&self.resource, stored, self.wanted) {
            Ok(Some(message)) => self.frame(kind, &message),
            Ok(None) => self.event(kind, &stored.shown_for(&self.resource, self.wanted.projection)),
            Err(status) => self.error(&status),
        }
    }

    /// Encodes an event of an object in the version of the watch.
    fn event(&mut self, kind: &str, object: &Value) -> Bytes {
        match self.wanted.projection {
            Projection::Object => {
                let encoded = response::encode_object(&self.resource, object, self.wanted);
                encoded.map_or_else(|status| self.error(&status), |encoded| self.frame(kind, &encoded))
            }
            Projection::Metadata => {
                let object = versions::unconverted(&self.resource, object);
                let encoded =
                    response::encode_metadata(&response::partial(&object), "PartialObjectMetadata", self.wanted);
                encoded.map_or_else(|status| self.error(&status), |encoded| self.frame(kind, &encoded))
            }
            Projection::Table(include) => {
                let first = !std::mem::replace(&mut self.columns_told, true);
                let version = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let table = tables::table(&self.resource, std::slice::from_ref(object), &version, include, first);
                self.frame(kind, &response::encode_value(&table, self.wanted))
            }
        }
    }

    fn bookmark(&mut self, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.told.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version()});
        object["metadata"] = metadata;
        if let Some(codec) = self.resource.codec
            && let crate::registry::Schema::BuiltIn(types) = self.resource.schema
        {
            // An empty object, as Go encodes it. Its warnings do not matter.
            let _ = crate::decode::normalise(&mut object, (codec.descriptor)(), types, crate::decode::Reading::Json);
        }
        self.event("BOOKMARK", &object)
    }

    fn error(&self, status: &Status) -> Bytes {
        let value = response::status_value(status);
        match self.wanted.encoding {
            Encoding::Protobuf => {
                let typed = k8s_openapi::apimachinery::pkg::apis::meta::v1::Status::from(status.clone());
                klient_proto::encode_watch_frame("ERROR", &klient_proto::meta::encode("v1", &typed)).into()
            }
            _ => json_event("ERROR", &crate::order::to_vec(&value)),
        }
    }

    fn frame(&self, kind: &str, object: &[u8]) -> Bytes {
        match self.wanted.encoding {
            Encoding::Protobuf => klient_proto::encode_watch_frame(kind, object).into(),
            _ => json_event(kind, object.trim_ascii_end()),
        }
    }

    /// Returns a stream with one error event.
    fn failed(&self, status: &Status) -> Result<Response<ResponseBody>> {
        Ok(response::watch(self.wanted.encoding, ResponseBody::whole(self.error(status))))
    }
}

/// Parses `sendInitialEvents`.
fn check_options(call: &Call) -> Result<Option<bool>> {
    let invalid = |cause: StatusCause| {
        Err(Box::new(Status::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", vec![cause])))
    };
    let how = call.param("resourceVersionMatch");
    match (call.param("sendInitialEvents"), how) {
        (Some(_), Some("NotOlderThan")) => Ok(Some(call.flag("sendInitialEvents"))),
        (Some(_), None) => invalid(StatusCause::forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        (Some(_), Some(other)) => invalid(StatusCause::not_supported("resourceVersionMatch", other, &["NotOlderThan"])),
        (None, Some(_)) => invalid(StatusCause::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        (None, None) => Ok(None),
    }
}

const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The number of events that are buffered for a slow client. Further events wait in the log.
const CHUNKS: usize = 64;
