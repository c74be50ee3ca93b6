//! The world of a recording on the embedded server: its objects, their kinds and its clock.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use klient::{
    Error, ErrorKind,
    recording::{Change, Recording, Step},
};
use klient_apiserver::{ApiServer, Clock};
use serde_json::{Value, json};

/// The server of a replay, and what it will assign next.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    clock: Arc<RecordedClock>,
    uid: Arc<Mutex<Option<String>>>,
}

/// A clock that shows the time of the recording.
#[derive(Debug)]
struct RecordedClock {
    started: Timestamp,
    now: Mutex<Timestamp>,
}

impl Clock for RecordedClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// Starts a server with the kinds of the recording, and with the objects that its caches had at the start.
    pub(crate) async fn start(recording: &Recording, definitions: Vec<Value>) -> Result<Self, Error> {
        let started: Timestamp = recording.header.started.parse().map_err(|error| {
            let message = format!("the recording began at {:?}, which is no time", recording.header.started);
            Error::new(ErrorKind::Decode, message).with_source(error)
        })?;
        let clock = Arc::new(RecordedClock { started, now: Mutex::new(started) });
        let uid = Arc::<Mutex<Option<String>>>::default();
        let server = ApiServer::builder()
            .clock(Arc::clone(&clock))
            .uids(uids(&uid))
            .revision(1)
            .without_garbage_collector()
            .disable_admission_plugin("NamespaceLifecycle")
            .start()
            .await
            .map_err(|error| {
                Error::new(ErrorKind::Invalid, "cannot start the server of the replay").with_source(error)
            })?;
        let world = Self { server, clock, uid };
        for definition in definitions {
            world.define(definition).await?;
        }
        for kind in kinds(recording) {
            if !world.serves(&kind).await {
                world.define(kind.definition()).await?;
            }
        }
        for entry in &recording.entries {
            if let Step::Object { change: Change::Found, object, .. } = &entry.step {
                world.restore(object.clone()).await?;
            }
        }
        Ok(world)
    }

    /// Stores an object as it was recorded.
    pub(crate) async fn restore(&self, object: Value) -> Result<(), Error> {
        self.server.restore(object).await.map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
    }

    pub(crate) async fn erase(&self, object: &Value) -> Result<bool, Error> {
        self.server.erase(object).await.map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
    }

    /// Sets the clock to a moment of the recording.
    pub(crate) fn set_time(&self, micros: u64) {
        let offset = SignedDuration::from_micros(i64::try_from(micros).unwrap_or(i64::MAX));
        let now = self.clock.started.saturating_add(offset).unwrap_or(self.clock.started);
        *self.clock.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Sets the identity that the next write of a reconcile gets.
    pub(crate) fn expect_write(&self, response: &Value) {
        let text = |name: &str| response["metadata"][name].as_str().map(str::to_owned);
        *self.uid.lock().unwrap_or_else(PoisonError::into_inner) = text("uid");
        if let Some(version) = text("resourceVersion").and_then(|version| version.parse().ok()) {
            self.server.skip_to_revision(version);
        }
    }

    /// Returns whether the server has a kind.
    async fn serves(&self, kind: &Kind) -> bool {
        let path = format!("/apis/{}/{}/{}?limit=1", kind.group, kind.version, kind.plural);
        let Ok(request) = http::Request::get(path).body(bytes::Bytes::new()) else { return false };
        self.server.handle(request).await.status().is_success()
    }

    /// Creates a definition, unless one of the same name exists.
    async fn define(&self, definition: Value) -> Result<(), Error> {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(definition.to_string().into())
            .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        let response = self.server.handle(request).await;
        match response.status().as_u16() {
            200..300 | 409 => Ok(()),
            code => Err(Error::new(
                ErrorKind::Invalid,
                format!("cannot create definition {name}: the server responded {code}"),
            )),
        }
    }
}

/// Returns a generator of UIDs: the one that is set, or else the next of a sequence, so that two replays assign the same ones.
fn uids(next: &Arc<Mutex<Option<String>>>) -> impl Fn() -> String + Send + Sync + 'static {
    let next = Arc::clone(next);
    let count = std::sync::atomic::AtomicU64::new(1);
    move || {
        let recorded = next.lock().unwrap_or_else(PoisonError::into_inner).take();
        recorded.unwrap_or_else(|| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            format!("00000000-0000-4000-8000-{number:012x}")
        })
    }
}

/// Returns the kinds of a recording that may be custom.
fn kinds(recording: &Recording) -> Vec<Kind> {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for entry in &recording.entries {
        let Step::Object { resource, object, .. } = &entry.step else { continue };
        let Some((plural, group)) = resource.split_once('.') else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = kinds.entry(resource.clone()).or_insert_with(|| Kind {
            plural: plural.to_owned(),
            group: group.to_owned(),
            version: text(&object["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned(),
            kind: text(&object["kind"]),
            namespaced: object["metadata"]["namespace"].is_string(),
            has_status: false,
        });
        kind.namespaced |= object["metadata"]["namespace"].is_string();
    }
    for entry in &recording.entries {
        let Step::Request { path, .. } = &entry.step else { continue };
        let path = path.split('?').next().unwrap_or_default();
        for kind in kinds.values_mut().filter(|_| path.ends_with("/status")) {
            kind.has_status |=
                path.starts_with(&format!("/apis/{}/", kind.group)) && path.contains(&format!("/{}/", kind.plural));
        }
    }
    kinds.into_values().collect()
}

/// A custom kind as far as a recording shows it.
struct Kind {
    plural: String,
    group: String,
    version: String,
    kind: String,
    namespaced: bool,
    has_status: bool,
}

impl Kind {
    /// Returns a definition that accepts everything.
    fn definition(self) -> Value {
        let subresources = if self.has_status { json!({"status": {}}) } else { json!({}) };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{}.{}", self.plural, self.group),
                // Groups below k8s.io need it.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a replay"},
            },
            "spec": {
                "group": self.group,
                "names": {"plural": self.plural, "singular": self.kind.to_lowercase(), "kind": self.kind},
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [{
                    "name": self.version,
                    "served": true,
                    "storage": true,
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        })
    }
}
