//! The program that counts allocations. Counting takes time, so that another program is measured.

use std::alloc::System;

use anyhow::Result;
use bench_jobs::Allocations;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main]
async fn main() -> Result<()> {
    bench_jobs::count_with(|| {
        let stats = ALLOCATOR.stats();
        let live_bytes = stats.bytes_allocated.saturating_sub(stats.bytes_deallocated) as u64;
        Allocations { count: (stats.allocations + stats.reallocations) as u64, live_bytes }
    });
    bench_klient::run().await
}
