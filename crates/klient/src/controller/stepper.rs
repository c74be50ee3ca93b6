//! A controller that is driven step by step: for replays, and for tests that decide the order of events and reconciles.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use klient_core::{ObjectKey, Resource};

use super::{
    Reason, Reasons,
    key_queue::{Held, HeldAdd, KeyQueue, Tap},
    run::{Controller, ControllerInner},
    source::Listening,
    worker,
};
use crate::{Error, ErrorKind, recording::TurnEnd, workqueue::AddOptions};

/// A controller without workers, which reconciles a key when it is told to.
///
/// Events of the informers are held until they are [released](Self::release) to the queue, and retries and requeues until their delay is
/// [ended](Self::end_delay). So no reconcile depends on a clock.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # async fn test(controller: klient::Controller<ConfigMap>) -> Result<(), klient::Error> {
/// use klient::ObjectKey;
///
/// let steps = controller.step_by_step().await?;
/// steps.release_all();
/// let web = ObjectKey::namespaced("shop", "web");
/// let (_, reconcile) = steps.begin(&web, None).expect("the first list has it");
/// println!("{}", reconcile.await.end);
/// # Ok(())
/// # }
/// ```
pub struct Stepper {
    controller: Box<dyn AnyStepped>,
    listening: Vec<Box<dyn Listening>>,
    held: Arc<Mutex<Held>>,
}

/// The number of the last reconcile of any stepper: several controllers may share a client.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// The report of one reconcile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnReport {
    /// The key.
    pub key: ObjectKey,
    /// The reasons.
    pub reasons: Reasons,
    /// The number of failures before.
    pub failures: u32,
    /// Whether the cache showed the writes of the last reconcile of this key.
    pub is_current: bool,
    /// How it ended.
    pub end: TurnEnd,
}

/// The future of a reconcile that a [`Stepper`] began.
pub type StepFuture = Pin<Box<dyn Future<Output = TurnReport> + Send>>;

/// A controller of any kind.
trait AnyStepped: Send + Sync {
    fn name(&self) -> &str;
    fn keys(&self) -> &Arc<KeyQueue>;
    fn begin(&self, key: &ObjectKey, failures: Option<u32>, id: u64) -> Option<StepFuture>;
}

impl<K: Resource> AnyStepped for Arc<ControllerInner<K>> {
    fn name(&self) -> &str {
        &self.name
    }

    fn keys(&self) -> &Arc<KeyQueue> {
        &self.keys
    }

    fn begin(&self, key: &ObjectKey, failures: Option<u32>, id: u64) -> Option<StepFuture> {
        let item = self.keys.queue.try_get_key(key)?;
        Some(Box::pin(worker::step(Arc::clone(self), item, failures, id)))
    }
}

impl<K: Resource> Controller<K> {
    /// Starts the informers, waits for their first lists, and returns a handle by which reconciles are started one by one. No worker runs.
    ///
    /// # Errors
    ///
    /// Returns an error if the controller is running, has run before or is recorded, or if an informer is stopped.
    pub async fn step_by_step(&self) -> Result<Stepper, Error> {
        let inner = &self.inner;
        let held = Arc::<Mutex<Held>>::default();
        let tapped = inner.keys.tap.set(Tap::Hold(Arc::clone(&held)));
        if tapped.is_err() || inner.keys.queue.is_shutting_down() {
            let message =
                format!("controller {:?} has run, is recorded or is stepped already: build a new one", self.name());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // It counts as running for as long as the stepper may exist.
        std::mem::forget(self.start_running("step_by_step")?);
        let mut listening = Vec::with_capacity(inner.sources.len());
        for source in &inner.sources {
            source.start();
            listening.push(source.listen(Arc::clone(&inner.keys), inner.metrics.filtered.clone()));
        }
        for source in &listening {
            source.wait_for_sync().await?;
        }
        Ok(Stepper { controller: Box::new(Arc::clone(inner)), listening, held })
    }
}

impl Stepper {
    /// Returns the name of the controller.
    pub fn name(&self) -> &str {
        self.controller.name()
    }

    /// Sets the mark of the keys that events add from now on; see [`held`](Self::held).
    pub fn set_mark(&self, mark: u64) {
        self.lock().mark = mark;
    }

    /// Returns the keys that events have added and that are not released, with their marks and reasons, oldest first.
    pub fn held(&self) -> Vec<(u64, ObjectKey, Reason)> {
        self.lock().adds.iter().map(|add| (add.mark, add.key.clone(), add.reason.clone())).collect()
    }

    /// Adds the first held key for which the function holds to the queue. Returns its mark, if there was one.
    pub fn release(&self, holds: impl Fn(&ObjectKey, &Reason) -> bool) -> Option<u64> {
        let HeldAdd { mark, key, reason, options } = {
            let mut held = self.lock();
            let found = held.adds.iter().position(|add| holds(&add.key, &add.reason))?;
            held.adds.remove(found)
        };
        self.controller.keys().add_untapped(key, reason, options);
        Some(mark)
    }

    /// Adds all held keys to the queue.
    pub fn release_all(&self) {
        while self.release(|_, _| true).is_some() {}
    }

    /// Drops the held keys for which the function holds. Returns their number.
    pub fn discard(&self, holds: impl Fn(&ObjectKey, &Reason) -> bool) -> usize {
        let mut held = self.lock();
        let before = held.adds.len();
        held.adds.retain(|add| !holds(&add.key, &add.reason));
        before - held.adds.len()
    }

    /// Adds a key to the queue.
    pub fn add(&self, key: ObjectKey, reason: Reason) {
        self.controller.keys().add_untapped(key, reason, AddOptions::default());
    }

    /// Makes a key ready that waits for a retry or requeue. Returns whether there was such a delay.
    pub fn end_delay(&self, key: &ObjectKey) -> bool {
        self.controller.keys().end_delay(key)
    }

    /// Takes a key that is ready, and returns the number and the future of its reconcile; `None` if the key is not ready.
    ///
    /// Inside of the reconcile, [`current_turn`](crate::recording::current_turn) returns the number. `failures` replaces the queue's count of
    /// earlier failures, which depends on when they happened.
    pub fn begin(&self, key: &ObjectKey, failures: Option<u32>) -> Option<(u64, StepFuture)> {
        let id = TURNS.fetch_add(1, Ordering::Relaxed) + 1;
        Some((id, self.controller.begin(key, failures, id)?))
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Stepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper")
            .field("controller", &self.name())
            .field("sources", &self.listening.len())
            .field("held", &self.lock().adds.len())
            .finish_non_exhaustive()
    }
}
