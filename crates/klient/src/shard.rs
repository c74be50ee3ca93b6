//! Shards: the replicas of a program share the keys of its controllers.
//!
//! Keys are divided into 256 [slots](Slot). A table says which replica owns each slot. It is stored in the Lease of the group, and
//! written by one replica, the coordinator; every replica is ready to coordinate. Each replica has a Lease of its own, by which
//! others see that it lives and which table it obeys.
//!
//! - **One owner.** A slot moves in two steps: its owner ends its reconciles and acknowledges that, and only then the next owner begins.
//!   A replica that is cut off stops by its own clock, before others take its keys. Then its Lease is emptied, so that it
//!   cannot come back.
//! - **No gap.** The slots of a replica that dies have another owner after the lease duration and about a second, 16 s by default.
//!   A replica that shuts down hands its slots over first. Work goes on while no replica coordinates.
//! - **Few moves.** A replica that joins takes its share and no more. When a replica leaves, only its slots move.
//! - **Clocks.** Other replicas are judged by how long this process has seen no change. Clocks may differ in any way, and run up to
//!   9 % apart.
//!
//! The first start of a group waits for one lease duration, as after a deletion of all Leases: replicas may still work that this
//! process cannot see.
//!
//! By default, every replica's caches hold all objects, so that a takeover needs no list. Handing over is about reconciles, and about the
//! requests that they wait for. With [`cache_own_shard`](crate::controller::ControllerBuilder::cache_own_shard), the cache of a controller's own
//! kind holds only the objects of the replica's slots. Such a slot is worked on only after a list that began when it belonged to the replica.

mod board;
mod cache;
mod coordinator;
mod grant;
mod group;
mod key;
mod lease;
mod lease_store;
mod member;
mod mutant;
mod options;
mod plan;
mod progress;
mod ranges;
mod shards;
mod slot;
mod status;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    board::{Board, SlotPermit, Turn},
    cache::ByShardKey,
    shards::SharedWork,
};
pub use self::{
    grant::Grant,
    key::ShardKey,
    options::ShardOptions,
    shards::Shards,
    slot::Slot,
    status::{MemberState, MemberStatus, MoveReason, ShardStatus, SlotMove},
};
