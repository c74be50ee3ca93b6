//! Handlers made of closures.

use std::fmt;

use klient_core::Resource;

use super::{CachedObject, Event, EventHandler, Tombstone};

type OnAdd<K> = Box<dyn FnMut(&CachedObject<K>, bool) + Send>;
type OnUpdate<K> = Box<dyn FnMut(&CachedObject<K>, &CachedObject<K>) + Send>;
type OnDelete<K> = Box<dyn FnMut(&Tombstone<CachedObject<K>>) + Send>;

/// A handler made of up to three closures.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::informer::HandlerFuncs;
///
/// let handler = HandlerFuncs::<Pod>::new()
///     .on_add(|pod, in_initial_list| println!("{} is there (from the beginning: {in_initial_list})", pod.key()))
///     .on_delete(|gone| println!("{} is gone", gone.object().key()));
/// ```
#[doc(alias = "ResourceEventHandlerFuncs")]
pub struct HandlerFuncs<K> {
    on_add: Option<OnAdd<K>>,
    on_update: Option<OnUpdate<K>>,
    on_delete: Option<OnDelete<K>>,
}

impl<K: Resource> HandlerFuncs<K> {
    /// A handler that does nothing.
    pub fn new() -> Self {
        Self { on_add: None, on_update: None, on_delete: None }
    }

    /// Sets what is done for an object that was not there.
    #[must_use]
    pub fn on_add(mut self, call: impl FnMut(&CachedObject<K>, bool) + Send + 'static) -> Self {
        self.on_add = Some(Box::new(call));
        self
    }

    /// Sets what is done for an object that changed.
    #[must_use]
    pub fn on_update(mut self, call: impl FnMut(&CachedObject<K>, &CachedObject<K>) + Send + 'static) -> Self {
        self.on_update = Some(Box::new(call));
        self
    }

    /// Sets what is done for an object that is gone.
    #[must_use]
    pub fn on_delete(mut self, call: impl FnMut(&Tombstone<CachedObject<K>>) + Send + 'static) -> Self {
        self.on_delete = Some(Box::new(call));
        self
    }
}

impl<K: Resource> Default for HandlerFuncs<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Resource> EventHandler<K> for HandlerFuncs<K> {
    fn on_add(&mut self, object: &CachedObject<K>, in_initial_list: bool) {
        if let Some(call) = &mut self.on_add {
            call(object, in_initial_list);
        }
    }

    fn on_update(&mut self, old: &CachedObject<K>, new: &CachedObject<K>) {
        if let Some(call) = &mut self.on_update {
            call(old, new);
        }
    }

    fn on_delete(&mut self, object: &Tombstone<CachedObject<K>>) {
        if let Some(call) = &mut self.on_delete {
            call(object);
        }
    }
}

impl<K> fmt::Debug for HandlerFuncs<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFuncs").finish_non_exhaustive()
    }
}

/// A closure over events is a handler.
impl<K: Resource, F: FnMut(Event<K>) + Send + 'static> EventHandler<K> for F {
    fn on_add(&mut self, object: &CachedObject<K>, in_initial_list: bool) {
        self(Event::Added { object: object.clone(), in_initial_list });
    }

    fn on_update(&mut self, old: &CachedObject<K>, new: &CachedObject<K>) {
        self(Event::Updated { old: old.clone(), new: new.clone() });
    }

    fn on_delete(&mut self, object: &Tombstone<CachedObject<K>>) {
        self(Event::Deleted(object.clone()));
    }
}

/// Shows a handler only the objects that pass a filter.
///
/// An object that comes to pass appears to be added, and one that passes no more appears to be deleted.
#[doc(alias = "FilteringResourceEventHandler")]
#[derive(Debug)]
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> FilteringHandler<F, H> {
    /// Shows the handler what passes.
    pub fn new(filter: F, handler: H) -> Self {
        Self { filter, handler }
    }
}

impl<K, F, H> EventHandler<K> for FilteringHandler<F, H>
where
    K: Resource,
    F: FnMut(&CachedObject<K>) -> bool + Send + 'static,
    H: EventHandler<K>,
{
    fn on_add(&mut self, object: &CachedObject<K>, in_initial_list: bool) {
        if (self.filter)(object) {
            self.handler.on_add(object, in_initial_list);
        }
    }

    fn on_update(&mut self, old: &CachedObject<K>, new: &CachedObject<K>) {
        match ((self.filter)(old), (self.filter)(new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => self.handler.on_add(new, false),
            (true, false) => self.handler.on_delete(&Tombstone::Final(old.clone())),
            (false, false) => {}
        }
    }

    fn on_delete(&mut self, object: &Tombstone<CachedObject<K>>) {
        if (self.filter)(object.object()) {
            self.handler.on_delete(object);
        }
    }
}
