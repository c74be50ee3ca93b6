//! Managers: several controllers and informers as one process, with one start, one shutdown and one health endpoint.
//!
//! The parts start in this order: HTTP endpoints, informers, other tasks, leader election, controllers. They stop in the opposite
//! order: controllers finish their reconciles, the lease is released, tasks end, informers stop, and the endpoints respond
//! until the end. In controller-runtime: `pkg/manager`.

mod builder;
mod debug;
mod health;
mod inspect;
mod part;
mod route;
pub(crate) mod run;
mod serve;
mod sharding;
#[cfg(feature = "webhook")]
mod webhooks;

pub use self::{builder::ManagerBuilder, debug::DebugPage, part::Stop};
pub(crate) use self::{
    inspect::Inspect,
    part::{AnyController, BoxFuture, Part},
    run::Manager,
};
