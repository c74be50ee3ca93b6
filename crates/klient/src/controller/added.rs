//! Sources that are added to and removed from a controller while it runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use klient_core::Resource;

use super::{
    Controller, Keys, Source,
    key_queue::KeyQueue,
    source::{AnySource, Listening},
    trigger::{self, Owners},
};
use crate::{
    Error, ErrorKind,
    informer::{Event, InformerStatus},
    metrics::Counter,
};

/// The sources that were added to a controller after it was built.
#[derive(Default)]
pub(super) struct AddedSources {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_name: BTreeMap<String, Added>,
    /// Where the keys go, while the controller runs.
    target: Option<Target>,
}

#[derive(Clone)]
struct Target {
    queue: Arc<KeyQueue>,
    filtered: Counter,
}

struct Added {
    // Dropped first: no key is added after the source was removed.
    listening: Option<Box<dyn Listening>>,
    source: Box<dyn AnySource>,
}

impl Added {
    fn begin(&mut self, target: &Target) {
        self.source.start();
        self.listening = Some(self.source.listen(Arc::clone(&target.queue), target.filtered.clone()));
    }
}

impl AddedSources {
    /// Starts all sources, also those that are added later.
    pub(super) fn begin(&self, queue: &Arc<KeyQueue>, filtered: &Counter) {
        let mut state = self.lock();
        let target = Target { queue: Arc::clone(queue), filtered: filtered.clone() };
        state.by_name.values_mut().for_each(|added| added.begin(&target));
        state.target = Some(target);
    }

    /// Stops all sources.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.target = None;
        let ended = std::mem::take(&mut state.by_name);
        drop(state);
        drop(ended);
    }

    fn add(&self, name: String, source: Box<dyn AnySource>) -> Result<(), Error> {
        let mut state = self.lock();
        if state.by_name.contains_key(&name) {
            let message = format!("cannot add source {name:?}: the controller has one with this name, remove it first");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let mut added = Added { listening: None, source };
        if let Some(target) = state.target.clone() {
            added.begin(&target);
        }
        state.by_name.insert(name, added);
        Ok(())
    }

    fn remove(&self, name: &str) -> bool {
        // Dropped without the lock: the informer may end with it.
        let removed = self.lock().by_name.remove(name);
        removed.is_some()
    }

    pub(super) fn status(&self) -> BTreeMap<String, InformerStatus> {
        self.lock().by_name.iter().map(|(name, added)| (name.clone(), added.source.status())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Controller<K> {
    /// Adds a source while the controller runs or before: for kinds that are known only at run time. The function adds keys, as that of
    /// [`watches`](super::ControllerBuilder::watches).
    ///
    /// The name identifies the source, in [`remove_source`](Self::remove_source) and in the [status](Self::status). A kind that is not
    /// installed, or that the server denies access to, shows there, and harms no other source. A running controller starts the
    /// informer at once; it must be called on a Tokio runtime then.
    ///
    /// ```no_run
    /// use klient::{Client, Controller, InformerFactory, ObjectKey, resource::ApiResource};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// # fn add(controller: Controller<ConfigMap>, client: Client, kind: ApiResource) -> Result<(), klient::Error> {
    /// let objects = InformerFactory::new(client).dynamic(kind.clone());
    /// controller.add_source(kind.group_resource().to_string(), objects, |event, keys| {
    ///     keys.add(ObjectKey::namespaced(event.key().namespace().unwrap_or("default"), "policy"));
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an [`AlreadyExists`](ErrorKind::AlreadyExists) error if there is a source with this name.
    pub fn add_source<O: Resource>(
        &self,
        name: impl Into<String>,
        source: impl Into<Source<O>>,
        map: impl Fn(&Event<O>, &mut Keys<'_>) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.inner.added.add(name.into(), source.into().connect(Arc::new(map)))
    }

    /// Adds a source of objects that this controller's objects own, as [`owns`](super::ControllerBuilder::owns) does; see
    /// [`add_source`](Self::add_source).
    ///
    /// # Errors
    ///
    /// Returns an [`AlreadyExists`](ErrorKind::AlreadyExists) error if there is a source with this name.
    pub fn add_owned<O: Resource>(&self, name: impl Into<String>, source: impl Into<Source<O>>) -> Result<(), Error> {
        let map = trigger::owners(self.inner.owner.clone(), Owners::Controller);
        self.inner.added.add(name.into(), source.into().connect(map))
    }

    /// Removes a source that was added. Its events add no keys any more, and its informer ends unless others use it. Returns whether there
    /// was a source with this name.
    pub fn remove_source(&self, name: &str) -> bool {
        self.inner.added.remove(name)
    }
}
