//! Checks of the process: tasks that are left after a world, and memory that did not come back.

use std::{alloc::System, time::Duration};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the number of bytes that are allocated now.
pub(crate) fn live_bytes() -> i64 {
    let stats = ALLOCATOR.stats();
    i64::try_from(stats.bytes_allocated).unwrap_or(i64::MAX) - i64::try_from(stats.bytes_deallocated).unwrap_or(0)
}

/// Returns a problem if tasks are left on the current runtime. Tasks that were aborted get time to end.
pub(crate) async fn tasks_left() -> Option<String> {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..100 {
        if alive() == 0 {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Some(format!("{} tasks are left", alive()))
}

/// The number of worlds after which memory has reached its level: caches of the process are filled by then.
pub(crate) const WARM_UP: usize = 10;
/// The number of bytes that one world may leave behind: tables of the process that grow by doubling.
pub(crate) const TOLERANCE: i64 = 128 << 10;
