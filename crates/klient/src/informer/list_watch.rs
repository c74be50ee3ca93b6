//! The interface between an informer and the source of its objects: anything that can be listed and watched.

use std::{future::Future, sync::Arc};

use klient_core::{ListOptions, Resource, TypeMeta, WatchEvent, WatchOptions};
use klient_proto::{ListEnd, ManagedFields, RawObject};

use crate::Error;

/// A source of objects that can be listed and watched: an [`Api`](crate::client::Api), or a test double.
#[doc(alias = "ListerWatcher")]
pub trait ListWatch: Send + Sync + 'static {
    /// The type of the objects.
    type Kind: Resource;
    /// The objects of one list.
    type List: ListItems;
    /// The events of one watch.
    type Watch: WatchEvents;

    /// Starts a list.
    fn list(
        &self,
        options: ListOptions,
        managed_fields: ManagedFields,
    ) -> impl Future<Output = Result<Self::List, Error>> + Send;

    /// Starts a watch.
    fn watch(
        &self,
        options: WatchOptions,
        managed_fields: ManagedFields,
    ) -> impl Future<Output = Result<Self::Watch, Error>> + Send;

    /// Returns the name of the resource for logs and metrics, such as `deployments.apps`.
    fn describe(&self) -> String;

    /// Returns the namespace of the objects, or `None` for all of them. A controller does not wait for a write to another
    /// namespace to appear in this cache.
    fn namespace(&self) -> Option<String> {
        None
    }

    /// Returns kind and version of the objects, for a kind known only at run time: the items of a list do not contain them.
    fn types(&self) -> Option<Arc<TypeMeta>> {
        None
    }

    /// Returns whether the server may support watches that begin with the current state.
    fn offers_watch_list(&self) -> bool {
        true
    }

    /// Records that the server does not support watches that begin with the current state.
    fn lacks_watch_list(&self) {}
}

/// The objects of one list, as they arrive.
pub trait ListItems: Send {
    /// Returns the next object, or `None` after the last one. After an error of one object, the others still follow.
    fn next(&mut self) -> impl Future<Output = Option<Result<RawObject, Error>>> + Send;

    /// Returns the metadata of the list after its last object, or `None` if the list is incomplete.
    fn end(&mut self) -> Option<ListEnd>;
}

/// The events of one watch, as they arrive.
pub trait WatchEvents: Send {
    /// Returns the next event, or `None` when the server has ended the watch. After an error of one event, the others still
    /// follow.
    ///
    /// Implementations must be cancel-safe: dropping the future loses no event.
    fn next(&mut self) -> impl Future<Output = Option<Result<WatchEvent<RawObject>, Error>>> + Send;

    /// Returns whether the watch has ended. After an error, this tells an error of the whole watch from that of one event.
    fn is_ended(&self) -> bool;
}

#[cfg(feature = "client")]
mod api {
    use klient_proto::SplitOptions;

    use super::{
        Arc, Error, ListEnd, ListItems, ListOptions, ListWatch, ManagedFields, RawObject, Resource, TypeMeta,
        WatchEvent, WatchEvents, WatchOptions,
    };
    use klient_core::Target;

    use crate::client::{Api, ListStream, Watch};

    impl<K: Resource> ListWatch for Api<K> {
        type Kind = K;
        type List = ListStream<K>;
        type Watch = Watch<K>;

        async fn list(&self, options: ListOptions, managed_fields: ManagedFields) -> Result<ListStream<K>, Error> {
            self.list().options(options).stream_with(SplitOptions::default().managed_fields(managed_fields)).await
        }

        async fn watch(&self, options: WatchOptions, managed_fields: ManagedFields) -> Result<Watch<K>, Error> {
            self.watch().options(options).split(SplitOptions::default().managed_fields(managed_fields)).await
        }

        fn describe(&self) -> String {
            self.resource().group_resource().to_string()
        }

        fn namespace(&self) -> Option<String> {
            match self.target() {
                Target::Namespace(namespace) => Some(namespace.clone()),
                _ => None,
            }
        }

        fn types(&self) -> Option<Arc<TypeMeta>> {
            // A static type knows its kind. For the others, the resource does.
            let dynamic = K::KIND.is_empty();
            dynamic.then(|| Arc::new(self.resource().types()))
        }

        fn offers_watch_list(&self) -> bool {
            self.client().offers_watch_list()
        }

        fn lacks_watch_list(&self) {
            self.client().lacks_watch_list();
        }
    }

    impl<K: Resource> ListItems for ListStream<K> {
        async fn next(&mut self) -> Option<Result<RawObject, Error>> {
            self.next_raw().await
        }

        fn end(&mut self) -> Option<ListEnd> {
            ListStream::end(self)
        }
    }

    impl<K: Resource> WatchEvents for Watch<K> {
        async fn next(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
            self.next_raw().await
        }

        fn is_ended(&self) -> bool {
            Watch::is_ended(self)
        }
    }
}
