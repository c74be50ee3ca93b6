//! How an informer is set up.

use std::{fmt, sync::Arc, time::Duration};

use klient_core::Resource;
use klient_proto::ManagedFields;

use super::{
    CachedObject, FirstRead, Handle, Indexers, ListWatch, ReflectorOptions, SharedInformer,
    metrics::InformerMetrics,
    processor::{Feed, Shared, Transform},
    reflector::{Reflector, StatusBoard},
    run::{Running, run},
};
use crate::{Error, metrics::Registry};

/// In what form a cache keeps objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As they arrived. The smallest; each read of a typed object decodes it.
    #[default]
    Wire,
    /// Decoded: for code that reads thousands of typed objects again and again, and has the memory.
    Decoded,
}

/// Sets up an informer.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Secret;
/// use klient::{Api, Client};
/// use klient::informer::SharedInformer;
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
    form: Form,
    transform: Option<Transform<L::Kind>>,
    indexers: Indexers<CachedObject<L::Kind>>,
    metrics: Option<(Registry, String)>,
}

impl<L: ListWatch> InformerBuilder<L> {
    pub(super) fn new(source: L) -> Self {
        Self {
            source,
            options: ReflectorOptions::default(),
            form: Form::default(),
            transform: None,
            indexers: Indexers::new(),
            metrics: None,
        }
    }

    /// Only objects with these labels: a `LabelSelector`, or any text that is one.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that selectors and texts can be given in place")]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.options.label_selector = Some(selector.to_string()).filter(|text| !text.is_empty());
        self
    }

    /// Only objects with these field values: a `FieldSelector`, or any text that is one.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that selectors and texts can be given in place")]
    pub fn fields(mut self, selector: impl ToString) -> Self {
        self.options.field_selector = Some(selector.to_string()).filter(|text| !text.is_empty());
        self
    }

    /// Sets how the current state is read.
    #[must_use]
    pub fn first_read(mut self, first_read: FirstRead) -> Self {
        self.options.first_read = first_read;
        self
    }

    /// Sets whether even the first read must be of the newest state, at some cost for the server.
    #[must_use]
    pub fn consistent_first_read(mut self, consistent: bool) -> Self {
        self.options.consistent_first_read = consistent;
        self
    }

    /// Sets how many objects a list asks for at once.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.options.page_size = Some(objects);
        self
    }

    /// Sets what becomes of `managedFields`: left out unless set.
    #[must_use]
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.options.managed_fields = managed_fields;
        self
    }

    /// Sets how long a watch may be without a sign of life, from a server that sends bookmarks.
    #[must_use]
    pub fn max_silence(mut self, silence: Duration) -> Self {
        self.options.max_silence = silence;
        self
    }

    /// Sets all options of listing and watching.
    #[must_use]
    pub fn reflector_options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets who is told of failures. It must return quickly.
    #[must_use]
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.options.on_error = Some(Arc::new(handler));
        self
    }

    /// Sets in what form objects are kept.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Changes each object before it is kept: to leave out what nobody needs. It is decoded for that, once.
    ///
    /// Name, namespace, UID and version must stay as they are.
    #[must_use]
    #[doc(alias = "SetTransform")]
    pub fn transform(mut self, transform: impl Fn(&mut L::Kind) + Send + Sync + 'static) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Sets the indices that it has from the beginning.
    ///
    /// Of two with one name, the first counts.
    #[must_use]
    pub fn indexers(mut self, indexers: Indexers<CachedObject<L::Kind>>) -> Self {
        self.indexers = indexers;
        self
    }

    /// Counts under a name in a registry.
    #[must_use]
    pub fn metrics(mut self, registry: &Registry, name: impl Into<String>) -> Self {
        self.metrics = Some((registry.clone(), name.into()));
        self
    }

    /// The informer. It does nothing until it is started.
    pub fn build(self) -> SharedInformer<L::Kind> {
        let resource = self.source.describe();
        let metrics = self.metrics.map(|(registry, name)| InformerMetrics::new(&registry, &name, &resource));
        let board = Arc::new(StatusBoard::new(resource, metrics));
        let (shared, tasks) = Shared::new(Arc::clone(&board), self.source.types(), self.form, self.transform);
        for (name, function) in self.indexers {
            if shared.store.add_index(name.as_str(), function).is_err() {
                tracing::warn!("two indices are called {name:?}; the second one is left out");
            }
        }
        let reflector = Reflector::new(self.source, Feed(Arc::clone(&shared))).options(self.options).board(board);
        let for_task = Arc::clone(&shared);
        let running =
            Running::No(Some(Box::new(move |stopped| Box::pin(run(for_task, reflector.run(), tasks, stopped)))));
        SharedInformer { handle: Arc::new(Handle { shared, running: running.into() }) }
    }
}

impl<L: ListWatch> fmt::Debug for InformerBuilder<L>
where
    L::Kind: Resource,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("options", &self.options)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}
