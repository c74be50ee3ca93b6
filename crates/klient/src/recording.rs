//! Recordings: what a controller saw and did, to be replayed as a test.
//!
//! A [`Recorder`] stores the changes that reached the caches, the keys that were queued and why, and the reconciles with their requests. It holds
//! the last minutes in bounded memory, or writes everything to a file. The crate `klient-replay` runs the controller's own code on a
//! recording, on the embedded API server and under a paused clock.
//!
//! ```no_run
//! use std::time::Duration;
//! use klient::{Controller, Manager, recording::Recorder};
//! # use k8s_openapi::api::apps::v1::Deployment;
//! # async fn run(controller: Controller<Deployment>) -> Result<(), klient::Error> {
//! let recorder = Recorder::builder().last(Duration::from_secs(600)).max_bytes(64 << 20).build();
//! let manager = Manager::builder().recorder(&recorder).controller(controller).build().await?;
//! manager.run().await?;
//! recorder.save("night.klient")?; // or when a reconcile failed
//! # Ok(())
//! # }
//! ```
//!
//! Contents of Secrets and tokens are left out, unless [`with_secrets`](RecorderBuilder::with_secrets) asks for them. Custom kinds that hold
//! secrets are named with [`without_contents_of`](RecorderBuilder::without_contents_of).
//!
//! # The file
//!
//! One JSON object per line. The first one is the [`Header`], the others are [`Entry`]s in the order in which they happened.

mod entry;
mod file;
mod object;
mod recorder;
mod turn;

#[cfg(feature = "client")]
pub(crate) use self::turn::RequestNote;
pub use self::{
    entry::{Change, Entry, Header, Recording, Step, StepReason, TurnEnd},
    recorder::{Recorder, RecorderBuilder},
    turn::current_turn,
};
pub(crate) use self::{object::RecordedObject, turn::TurnMark};
