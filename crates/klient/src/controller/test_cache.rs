//! A cache with fixed objects, for unit tests of reconcilers.
//!
//! The informer is never started, so that no list or watch is ever sent.

use std::{convert::Infallible, future::pending, marker::PhantomData};

use klient_core::{GroupVersionKind, ListOptions, Resource, WatchEvent, WatchOptions};
use klient_proto::{ListEnd, ManagedFields, RawObject};

use crate::{
    Error,
    informer::{CachedObject, ListItems, ListWatch, Lister, SharedInformer, WatchEvents},
};

/// Returns a lister of exactly these objects.
pub(super) fn lister_of<K: Resource>(objects: impl IntoIterator<Item = K>) -> Lister<K> {
    let informer = SharedInformer::new(FixedObjects(PhantomData));
    for object in objects {
        informer.store().insert(CachedObject::from_object(object));
    }
    informer.lister()
}

/// A source whose lists and watches never begin.
struct FixedObjects<K>(PhantomData<fn() -> K>);

/// A list or watch, of which none exists.
struct Never(Infallible);

impl<K: Resource> ListWatch for FixedObjects<K> {
    type Kind = K;
    type List = Never;
    type Watch = Never;

    async fn list(&self, _options: ListOptions, _managed_fields: ManagedFields) -> Result<Never, Error> {
        pending().await
    }

    async fn watch(&self, _options: WatchOptions, _managed_fields: ManagedFields) -> Result<Never, Error> {
        pending().await
    }

    fn describe(&self) -> String {
        GroupVersionKind::of::<K>().kind.into_owned()
    }
}

impl ListItems for Never {
    async fn next(&mut self) -> Option<Result<RawObject, Error>> {
        match self.0 {}
    }

    fn end(&mut self) -> Option<ListEnd> {
        match self.0 {}
    }
}

impl WatchEvents for Never {
    async fn next(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        match self.0 {}
    }

    fn is_ended(&self) -> bool {
        match self.0 {}
    }
}
