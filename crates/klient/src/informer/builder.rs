//! The builder of informers.

use std::{fmt, sync::Arc, time::Duration};

use klient_core::Resource;
use klient_proto::ManagedFields;

use super::{
    CachedObject, FirstRead, Handle, Indexers, ListWatch, ReflectorOptions, SharedInformer,
    metrics::InformerMetrics,
    processor::{Processor, Task, Transform},
    reflector::{Reflector, StatusBoard},
    run::{Lifecycle, run},
    scope::Scope,
};
use crate::{Error, metrics::Registry};

/// The form in which a cache stores objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectFormat {
    /// The bytes that arrived from the server. This needs the least memory; each read of a typed object decodes it.
    #[default]
    Wire,
    /// Typed objects. This needs more memory, and suits code that reads thousands of typed objects again and again.
    Decoded,
}

/// A builder of a [`SharedInformer`].
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Secret;
/// use klient::{Api, Client, SharedInformer};
///
/// # fn build() -> Result<(), klient::Error> {
/// let secrets = SharedInformer::builder(Api::<Secret>::all(Client::infer()?))
///     .labels("app=web")
///     .transform(|secret: &mut Secret| secret.data = None)
///     .on_error(|error| eprintln!("secrets: {error}"))
///     .build();
/// secrets.start();
/// # Ok(())
/// # }
/// ```
pub struct InformerBuilder<L: ListWatch> {
    source: L,
    options: ReflectorOptions,
    format: ObjectFormat,
    transform: Option<Transform<L::Kind>>,
    indexers: Indexers<CachedObject<L::Kind>>,
    metrics: Option<(Registry, String)>,
    is_shared: bool,
}

impl<L: ListWatch> InformerBuilder<L> {
    pub(super) fn new(source: L) -> Self {
        Self {
            source,
            options: ReflectorOptions::default(),
            format: ObjectFormat::default(),
            transform: None,
            indexers: Indexers::new(),
            metrics: None,
            is_shared: false,
        }
    }

    /// Selects objects by label. Takes a `LabelSelector` or its text.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and texts in place")]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.options.label_selector = Some(selector.to_string()).filter(|text| !text.is_empty());
        self
    }

    /// Selects objects by field value. Takes a `FieldSelector` or its text.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and texts in place")]
    pub fn fields(mut self, selector: impl ToString) -> Self {
        self.options.field_selector = Some(selector.to_string()).filter(|text| !text.is_empty());
        self
    }

    /// Sets the way in which the current state is read.
    #[must_use]
    pub fn first_read(mut self, first_read: FirstRead) -> Self {
        self.options.first_read = first_read;
        self
    }

    /// Sets whether even the first read must return the most recent state, at some cost for the server.
    #[must_use]
    pub fn consistent_first_read(mut self, consistent: bool) -> Self {
        self.options.consistent_first_read = consistent;
        self
    }

    /// Sets the number of objects per page of a list.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.options.page_size = Some(objects);
        self
    }

    /// Sets whether `managedFields` are kept. They are dropped by default.
    #[must_use]
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.options.managed_fields = managed_fields;
        self
    }

    /// Sets the time without an event or bookmark after which a watch is reopened, if the server sends bookmarks.
    #[must_use]
    pub fn max_silence(mut self, silence: Duration) -> Self {
        self.options.max_silence = silence;
        self
    }

    /// Sets all options of lists and watches.
    #[must_use]
    pub fn reflector_options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets a function that is called with every failure. It must return quickly.
    #[must_use]
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.options.on_error = Some(Arc::new(handler));
        self
    }

    /// Sets the form in which objects are stored.
    #[must_use]
    pub fn object_format(mut self, format: ObjectFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets a function that changes each object before it is stored, for example to remove large fields. Each object is decoded
    /// once for this.
    ///
    /// The function must not change name, namespace, UID and resource version.
    #[must_use]
    #[doc(alias = "SetTransform")]
    pub fn transform(mut self, transform: impl Fn(&mut L::Kind) + Send + Sync + 'static) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Sets the initial indices.
    ///
    /// Of two indices with the same name, the first is used.
    #[must_use]
    pub fn indexers(mut self, indexers: Indexers<CachedObject<L::Kind>>) -> Self {
        self.indexers = indexers;
        self
    }

    /// Records metrics in a registry, with a name as their `name` label.
    #[must_use]
    pub fn metrics(mut self, registry: &Registry, name: impl Into<String>) -> Self {
        self.metrics = Some((registry.clone(), name.into()));
        self
    }

    /// Notes that users that do not know of each other read the cache, so that it must have all objects.
    #[cfg(feature = "client")]
    pub(super) fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Creates the informer, which does nothing until it is started.
    pub fn build(self) -> SharedInformer<L::Kind> {
        let resource = self.source.describe();
        let metrics = self.metrics.map(|(registry, name)| InformerMetrics::new(&registry, &name, &resource));
        let board = Arc::new(StatusBoard::new(resource, metrics));
        let scope = Scope::new(&self.source, &self.options);
        let (processor, tasks) =
            Processor::new(Arc::clone(&board), scope, self.source.types(), self.format, self.transform);
        for (name, function) in self.indexers {
            if processor.store.add_index(name.as_str(), function).is_err() {
                tracing::warn!(name, "duplicate index name, ignoring the second index");
            }
        }
        let reflector = Reflector::new(self.source, Arc::clone(&processor)).options(self.options).board(board);
        let of_task = Arc::clone(&processor);
        let create_task = move |stopped| -> Task {
            let reflector = reflector.narrowed(of_task.narrow.get().cloned());
            Box::pin(run(of_task, reflector.run(), tasks, stopped))
        };
        let lifecycle = Lifecycle::NotStarted(Some(Box::new(create_task)));
        SharedInformer {
            handle: Arc::new(Handle { processor, lifecycle: lifecycle.into(), is_shared: self.is_shared }),
        }
    }
}

impl<L: ListWatch> fmt::Debug for InformerBuilder<L>
where
    L::Kind: Resource,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("options", &self.options)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
