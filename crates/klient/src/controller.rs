//! Controllers: a function runs for each object whose state may have changed, exactly as often as needed.
//!
//! A [`Controller`] connects informers, a [queue](crate::workqueue::WorkQueue) and workers. Events of its kind, of the objects
//! it owns and of other sources become keys. Each key is reconciled by one worker at a time, is retried after a failure with
//! growing delays, and is not reconciled before the cache shows the writes of its last reconcile. In controller-runtime:
//! `pkg/controller`.

mod added;
mod builder;
#[cfg(feature = "client")]
mod create_or_update;
#[cfg(feature = "client")]
mod definitions;
mod explain;
#[cfg(feature = "client")]
mod gate;
#[cfg(not(feature = "client"))]
#[path = "controller/no_gate.rs"]
mod gate;
mod history;
mod key_queue;
mod metrics;
mod own_writes;
mod permit;
mod predicate;
mod reason;
mod reconcile;
mod ring;
pub(crate) mod run;
#[cfg(feature = "client")]
mod sharding;
mod source;
mod stepper;
mod test_cache;
mod trigger;
mod worker;

#[cfg(feature = "client")]
pub use self::create_or_update::{Operation, create_or_update};
use self::run::ControllerInner;
pub use self::{
    builder::ControllerBuilder,
    history::HistoryLimits,
    predicate::Predicate,
    reason::{Reason, ReasonKind, Reasons},
    reconcile::{Outcome, Reconciler, Request, Retry, Terminal},
    run::ControllerStatus,
    source::{Keys, Source},
    stepper::{StepFuture, Stepper, TurnReport},
};
pub(crate) use self::{permit::Permit, run::Controller};
