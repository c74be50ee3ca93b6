//! One process of a group, from its start to its end: a member, and beside it a coordinator.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;
use tracing::info;

use super::{
    board::Board,
    coordinator::Coordinator,
    lease::{GroupStore, Record, View},
    member::{End, Member, Parts, Work},
    options::ShardOptions,
    progress::Progress,
};
use crate::{Error, ErrorKind};

/// The name of a process in its group.
pub(super) struct Name<'a> {
    pub(super) group: &'a str,
    /// The name of the process's first member, which no other process ever has.
    pub(super) process: &'a str,
    /// The name of the process for people.
    pub(super) identity: &'a str,
}

/// Takes part in a group until `leave` is set and the slots of this process are handed over.
pub(super) async fn run<S: GroupStore, W: Work>(
    (store, work): (&S, &W),
    name: Name<'_>,
    keys: &BTreeMap<String, String>,
    options: &ShardOptions,
    (board, progress): (&Arc<Board>, &Progress),
    mut leave: watch::Receiver<bool>,
) -> Result<(), Error> {
    let stopped = {
        let mut leave = leave.clone();
        async move { drop(leave.wait_for(|leave| *leave).await) }
    };
    tokio::select! {
        biased;
        () = stopped => return Ok(()),
        ready = store.ready() => ready?,
    }
    check_keys(&store.view(), name.group, keys)?;
    let parts = Parts { store, work, options, board, progress, group: name.group, identity: name.identity, keys };
    let mut coordinator = Coordinator::new(store, options, progress, name.group, name.process, keys);
    let membership = async {
        for number in 1u64.. {
            // A name is never used again: its Lease may be fenced.
            let id = if number == 1 { name.process.to_owned() } else { format!("{}-{number}", name.process) };
            info!(group = name.group, member = id, "joining the group");
            if Member::new(&parts, id).run(&mut leave).await == End::Left || *leave.borrow() {
                break;
            }
            progress.rejoined();
        }
    };
    tokio::select! {
        biased;
        () = membership => {}
        never = coordinator.run() => match never {},
    }
    coordinator.release().await;
    Ok(())
}

/// Checks that the living members compute the keys of their controllers in the same way.
fn check_keys(view: &View, group: &str, keys: &BTreeMap<String, String>) -> Result<(), Error> {
    for lease in view.values().filter(|lease| !lease.holder.is_empty()) {
        let theirs = Record::decode(&lease.data).unwrap_or_default().keys;
        for (controller, key) in keys {
            if let Some(other) = theirs.get(controller).filter(|other| *other != key) {
                let message = format!(
                    "cannot join the group {group:?}: controller {controller:?} is sharded by {key}, and in member {:?} by \
                     {other}: stop the other replicas first, or use another group",
                    lease.name
                );
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
    }
    Ok(())
}
