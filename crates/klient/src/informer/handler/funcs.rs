//! Handlers that consist of closures, and handlers that filter.

use std::fmt;

use klient_core::Resource;

use super::{CachedObject, Event, EventHandler, Tombstone};

type OnAdd<K> = Box<dyn FnMut(&CachedObject<K>, bool) + Send>;
type OnUpdate<K> = Box<dyn FnMut(&CachedObject<K>, &CachedObject<K>) + Send>;
type OnDelete<K> = Box<dyn FnMut(&Tombstone<CachedObject<K>>) + Send>;

/// A handler that consists of up to three closures.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::informer::HandlerFuncs;
///
/// let handler = HandlerFuncs::<Pod>::new()
///     .on_add(|pod, in_initial_list| println!("{} added (in initial list: {in_initial_list})", pod.key()))
///     .on_delete(|tombstone| println!("{} deleted", tombstone.object().key()));
/// ```
#[doc(alias = "ResourceEventHandlerFuncs")]
pub struct HandlerFuncs<K> {
    on_add: Option<OnAdd<K>>,
    on_update: Option<OnUpdate<K>>,
    on_delete: Option<OnDelete<K>>,
}

impl<K: Resource> HandlerFuncs<K> {
    /// Creates a handler that does nothing.
    pub fn new() -> Self {
        Self { on_add: None, on_update: None, on_delete: None }
    }

    /// Sets the function for new objects. Its second argument is true for objects of the first list.
    #[doc(alias = "AddFunc")]
    #[must_use]
    pub fn on_add(mut self, call: impl FnMut(&CachedObject<K>, bool) + Send + 'static) -> Self {
        self.on_add = Some(Box::new(call));
        self
    }

    /// Sets the function for changed objects, which receives the old state and the new one.
    #[doc(alias = "UpdateFunc")]
    #[must_use]
    pub fn on_update(mut self, call: impl FnMut(&CachedObject<K>, &CachedObject<K>) + Send + 'static) -> Self {
        self.on_update = Some(Box::new(call));
        self
    }

    /// Sets the function for deleted objects.
    #[doc(alias = "DeleteFunc")]
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
    fn on_event(&mut self, event: &Event<K>) {
        match event {
            Event::Added { object, in_initial_list } => {
                if let Some(call) = &mut self.on_add {
                    call(object, *in_initial_list);
                }
            }
            Event::Updated { old, new } => {
                if let Some(call) = &mut self.on_update {
                    call(old, new);
                }
            }
            Event::Deleted(tombstone) => {
                if let Some(call) = &mut self.on_delete {
                    call(tombstone);
                }
            }
        }
    }
}

impl<K> fmt::Debug for HandlerFuncs<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFuncs").finish_non_exhaustive()
    }
}

/// A closure that takes events by reference is a handler.
impl<K: Resource, F: FnMut(&Event<K>) + Send + 'static> EventHandler<K> for F {
    fn on_event(&mut self, event: &Event<K>) {
        self(event);
    }
}

/// A handler that passes on only the objects that match a filter.
///
/// An object that begins to match appears as added, and one that no longer matches appears as deleted.
#[doc(alias = "FilteringResourceEventHandler")]
#[derive(Debug)]
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> FilteringHandler<F, H> {
    /// Creates a handler that calls another one with the objects that match a filter.
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
    fn on_event(&mut self, event: &Event<K>) {
        let Event::Updated { old, new } = event else {
            if (self.filter)(event.object()) {
                self.handler.on_event(event);
            }
            return;
        };
        match ((self.filter)(old), (self.filter)(new)) {
            (true, true) => self.handler.on_event(event),
            (false, true) => self.handler.on_event(&Event::Added { object: new.clone(), in_initial_list: false }),
            (true, false) => self.handler.on_event(&Event::Deleted(Tombstone::Final(old.clone()))),
            (false, false) => {}
        }
    }
}
