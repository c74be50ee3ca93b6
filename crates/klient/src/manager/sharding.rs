//! Sharded controllers as a part of a manager, beside controllers that run while this process leads.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::watch, task::JoinSet};

use super::{
    Stop,
    part::{AnyController, AnyElector, BoxFuture},
    run,
};
use crate::{
    Error, ErrorKind,
    controller::Permit,
    informer::narrow::SlotSet,
    shard::{Shards, SharedWork, Slot},
};

/// Checks that sharded controllers have shards, and the other way round. Narrows the caches of controllers that want that, before they are
/// started.
pub(super) fn prepare(controllers: &[Arc<dyn AnyController>], shards: Option<&Shards>) -> Result<(), Error> {
    let sharded = controllers.iter().find(|controller| controller.shard_key().is_some());
    match (sharded, shards) {
        (Some(controller), None) => {
            let message = format!(
                "{} is sharded, and the manager has no shards: call `shards` on its builder",
                controller.name()
            );
            Err(Error::new(ErrorKind::Config, message))
        }
        (None, Some(_)) => {
            let message = "the manager has shards, and none of its controllers is sharded: call `sharded` on a builder";
            Err(Error::new(ErrorKind::Config, message))
        }
        (_, None) => Ok(()),
        (Some(_), Some(shards)) => controllers.iter().try_for_each(|controller| controller.narrow(shards.board())),
    }
}

/// Runs all controllers until the signal is ready or one fails: those that are sharded, and those that may need leadership.
pub(super) async fn control(
    controllers: &[Arc<dyn AnyController>],
    elector: Option<&dyn AnyElector>,
    shards: Option<&Shards>,
    signal: BoxFuture<'_, ()>,
) -> Result<(), Error> {
    let Some(shards) = shards else { return run::control(controllers, elector, signal).await };
    let (sharded, led): (Vec<_>, Vec<_>) =
        controllers.iter().cloned().partition(|controller| controller.shard_key().is_some());
    let (stopping, requested) = watch::channel(false);
    let stop = || Box::pin(Stop { requested: requested.clone() }.requested()) as BoxFuture<'_, ()>;
    // If one half fails, the other one stops as well.
    let led = async {
        let outcome = run::control(&led, elector, stop()).await;
        stopping.send_replace(true);
        outcome
    };
    let sharded = async {
        let outcome = run_sharded(&sharded, shards, stop()).await;
        stopping.send_replace(true);
        outcome
    };
    let signalled = async {
        tokio::select! {
            () = signal => drop(stopping.send_replace(true)),
            () = stop() => {}
        }
    };
    let (mut outcome, sharded, ()) = tokio::join!(led, sharded, signalled);
    run::merge(&mut outcome, sharded);
    outcome
}

/// Runs sharded controllers until the signal is ready or one fails, and hands their keys over before they stop.
async fn run_sharded(
    controllers: &[Arc<dyn AnyController>],
    shards: &Shards,
    signal: BoxFuture<'_, ()>,
) -> Result<(), Error> {
    let keys = controllers.iter().filter_map(|controller| Some((controller.name(), controller.shard_key()?))).collect();
    let (stopping, requested) = watch::channel(false);
    let mut running = JoinSet::new();
    for controller in controllers {
        controller.share(shards.board());
        let (stop, name) = (Stop { requested: requested.clone() }, controller.name());
        let run = Arc::clone(controller).run(stop, Permit::default());
        running.spawn(async move { (name, run.await.map_err(Into::into)) });
    }
    let (leaving, leave) = watch::channel(false);
    let work = Controllers(controllers);
    let mut group = std::pin::pin!(shards.run(&work, &keys, leave));
    let mut outcome = Ok(());
    let ended = tokio::select! {
        () = signal => None,
        error = run::first_failure(&mut running) => {
            outcome = Err(error);
            None
        }
        ended = &mut group => Some(ended),
    };
    leaving.send_replace(true);
    let left = match ended {
        Some(ended) => ended,
        None => group.await,
    };
    run::merge(&mut outcome, left);
    stopping.send_replace(true);
    while let Some(joined) = running.join_next().await {
        run::merge(&mut outcome, run::result_of(joined));
    }
    outcome
}

/// The sharded controllers of a manager.
struct Controllers<'a>(&'a [Arc<dyn AnyController>]);

impl SharedWork for Controllers<'_> {
    fn hold(&self, slots: SlotSet) {
        for controller in self.0 {
            controller.hold(slots);
        }
    }

    async fn fill(&self, slots: SlotSet) {
        for controller in self.0 {
            controller.fill(slots).await;
        }
    }

    fn awaited(&self, slots: SlotSet) -> Option<String> {
        self.0.iter().find_map(|controller| controller.awaited(slots))
    }

    async fn catch_up(&self, wrote: BTreeMap<String, u64>) {
        for controller in self.0 {
            controller.catch_up(&wrote).await;
        }
    }

    fn gained(&self, slots: &[Slot]) {
        for controller in self.0 {
            controller.gained(slots);
        }
    }
}
