//! The seam between an informer and where its objects come from: anything that can be listed and watched.

use std::{future::Future, sync::Arc};

use klient_core::{ListOptions, Resource, TypeMeta, WatchEvent, WatchOptions};
use klient_proto::{ListEnd, ManagedFields, RawObject};

use crate::Error;

/// Something that can be listed and watched: an [`Api`](crate::client::Api), a part of one that selectors choose, or a double in
/// a test.
pub trait ListWatch: Send + Sync + 'static {
    /// What the objects are.
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

    /// What is listed, for logs and metrics: `deployments.apps`, say.
    fn describe(&self) -> String;

    /// What the objects are, for a kind known at run time: items of a list do not say.
    fn types(&self) -> Option<Arc<TypeMeta>> {
        None
    }

    /// Whether the server is not known to lack initial events in watches.
    fn offers_watch_list(&self) -> bool {
        true
    }

    /// The server lacks initial events in watches: others that ask the same server need not try.
    fn lacks_watch_list(&self) {}
}

/// The objects of one list, as they arrive.
pub trait ListItems: Send {
    /// The next object; `None` after the last. An error may be about one object, and others follow.
    fn next(&mut self) -> impl Future<Output = Option<Result<RawObject, Error>>> + Send;

    /// What the list says of itself, after its last object; nothing, if it broke off.
    fn end(&mut self) -> Option<ListEnd>;
}

/// The events of one watch, as they arrive.
pub trait WatchEvents: Send {
    /// The next event; `None` when the server has ended the watch. An error may be about one event, and others follow.
    ///
    /// Must be cancel-safe: dropping the future loses no event.
    fn next(&mut self) -> impl Future<Output = Option<Result<WatchEvent<RawObject>, Error>>> + Send;

    /// Whether the stream is at its end: after an error, this tells one that is about the whole stream.
    fn is_ended(&self) -> bool;
}

#[cfg(feature = "client")]
mod api {
    use klient_proto::SplitOptions;

    use super::{
        Arc, Error, ListEnd, ListItems, ListOptions, ListWatch, ManagedFields, RawObject, Resource, TypeMeta,
        WatchEvent, WatchEvents, WatchOptions,
    };
    use crate::client::{Api, ListStream, Watch};

    impl<K: Resource> ListWatch for Api<K> {
        type Kind = K;
        type List = ListStream<K>;
        type Watch = Watch<K>;

        async fn list(&self, options: ListOptions, managed_fields: ManagedFields) -> Result<ListStream<K>, Error> {
            self.list()
                .options(options.clone())
                .stream_with(SplitOptions::default().managed_fields(managed_fields))
                .await
        }

        async fn watch(&self, options: WatchOptions, managed_fields: ManagedFields) -> Result<Watch<K>, Error> {
            self.watch().options(options.clone()).split(SplitOptions::default().managed_fields(managed_fields)).await
        }

        fn describe(&self) -> String {
            self.resource().group_resource().to_string()
        }

        fn types(&self) -> Option<Arc<TypeMeta>> {
            // A type of its own says what it is; for the others, the resource does.
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
