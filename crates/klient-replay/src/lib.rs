//! Replays recordings of controllers: the same changes, the same failures, the controller's own code.
//!
//! A [`Recorder`](klient::recording::Recorder) stores what a manager saw and did. A [`Replay`] starts an embedded API server with the
//! recorded state, and goes through the recording entry by entry under a paused clock: it stores the changes that came from elsewhere, lets events
//! into the queue, starts reconciles, and lets their requests through, in the recorded order. Requests that failed receive the recorded error.
//! Others are executed by the server, whose objects have the recorded UIDs, resource versions and times.
//!
//! Where the code does something else than it did when it was recorded, the [`Report`] has a [`Difference`]. The replay then goes on, so
//! that a fixed program shows what it does instead.
//!
//! ```no_run
//! use klient_replay::Replay;
//! # use klient::{Client, Controller};
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # fn websites(client: Client) -> Controller<ConfigMap> { Controller::builder("websites", klient::Api::all(client)).reconcile(async |_| Ok::<_, klient::Error>(klient::controller::Outcome::Done)) }
//!
//! # async fn test() {
//! // In a test with #[tokio::test(start_paused = true)].
//! let mut replay = Replay::open("night.klient").await.unwrap();
//! let controller = websites(replay.client());
//! replay.controller(&controller).await.unwrap();
//! let report = replay.run().await.unwrap();
//! assert!(report.is_same(), "{report}");
//! # }
//! ```
//!
//! # Limits
//!
//! Only what went through klient is recorded. The replay cannot know the clock of the machine, random numbers or other services that
//! a reconciler reads. Lists that a reconciler requests are answered from what the caches had seen. Requests of tasks that a reconciler spawned are executed at once.
//! A name that the server generated is another one in a replay.

mod gate;
mod player;
mod report;
mod script;
mod world;

pub use self::{
    player::Replay,
    report::{Difference, DifferenceKind, Report, Turn},
};
