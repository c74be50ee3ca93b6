//! The state of controllers, informers and keys as data: what a manager's debug page, its JSON and `klient why` show.
//!
//! A [`KeyStory`] explains one key: its state now, or why it is not reconciled, and its recent turns. A [`Snapshot`] has the state of
//! a whole process. Both are plain values with a documented JSON form; [`VERSION`] is the version of that form. Fields may be
//! added within a version. Durations are in seconds, and times are ages at the moment of the snapshot: they need no
//! synchronised clocks.
//!
//! ```no_run
//! # fn print(controller: klient::Controller<k8s_openapi::api::core::v1::ConfigMap>) {
//! let story = controller.explain(&"shop/web".parse().unwrap());
//! println!("{}", story.summary); // "failed 3 times, retried in 4.2 s: quota exceeded"
//! # }
//! ```
//!
//! No value contains the content of an object: names, versions, numbers and messages of errors only.

mod snapshot;
mod story;
mod summary;

pub use self::{
    snapshot::{
        ConnectionReport, ControllerReport, HistoryReport, InformerReport, KeyReport, LeadershipReport, Phase,
        QueueReport, RunningReport, Sample, ShardReport, Snapshot, WebhookReport,
    },
    story::{
        Fight, FilteredReport, KeySearch, KeyState, KeyStory, ObjectReport, ReasonReport, Stories, TurnOutcome,
        TurnReport, WriteReport,
    },
};

/// The version of the JSON form. A change that readers have to know about increases it.
pub const VERSION: u32 = 1;
