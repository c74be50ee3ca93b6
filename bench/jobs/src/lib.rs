//! The parts that the Rust programs of the benchmark share: arguments, measuring, and the result by which they are compared.
//!
//! The Go program does the same by itself; `xtask/src/bench/` reads what all of them print.

#![allow(clippy::print_stdout)]

mod answer;
mod arguments;
mod connections;
mod mark;
mod reads;
mod reconciles;
mod replay;
mod spread;
mod streams;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

pub use self::{
    answer::Answer,
    arguments::{Arguments, Job},
    connections::make_connections,
    mark::{Allocations, Mark, Measured, count_with, forget_peak, peak},
    reads::{Reads, group_of, last_of},
    reconciles::{Reconciles, TOLD_AT},
    replay::{replay_changes, replay_expiry},
    spread::spread,
    streams::{MEGABYTE, TURN, forwarded_port, forwarded_request, moved},
};

/// The namespace of the objects that are read.
pub const FLEET: &str = "fleet";
/// The namespace in which objects are created and deleted.
pub const MADE: &str = "made";

/// The kind of the custom resources.
pub const CUSTOM_GROUP: &str = "bench.klient.invalid";
pub const CUSTOM_VERSION: &str = "v1";
pub const CUSTOM_KIND: &str = "Rollout";
pub const CUSTOM_PLURAL: &str = "rollouts";

/// Returns the name of an object by its number.
pub fn name(number: usize) -> String {
    format!("web-{number:06}")
}

/// Returns the objects to create, in order.
pub fn made(arguments: &Arguments) -> Result<Vec<Pod>> {
    let template = Pod { status: None, ..arguments.pod()? };
    let numbered = |number| {
        let mut pod = template.clone();
        pod.metadata.name = Some(name(number));
        pod
    };
    Ok((0..arguments.count).map(numbered).collect())
}

/// Checks that a response contains the requested object.
pub fn check(pod: &Pod, name: &str) -> Result<()> {
    ensure!(pod.metadata.name.as_deref() == Some(name), "asked for {name}, got {:?}", pod.metadata.name);
    Ok(())
}

/// Returns the body of a patch. It differs in every process, so that every patch changes the object.
pub fn change(number: usize) -> Value {
    let step = format!("{}-{number}", std::process::id());
    // The replay server replaces these nineteen digits with the time.
    let annotations = serde_json::json!({"bench.klient.invalid/step": step, TOLD_AT: "8888888888888888888"});
    serde_json::json!({"metadata": {"annotations": annotations}})
}

/// The field manager, set because libraries would choose different names.
pub const FIELD_MANAGER: &str = "bench";

/// Prints the outcome as one line of JSON, which `xtask` parses.
pub fn report(library: &str, arguments: &Arguments, measured: &Measured, answer: &Answer) {
    let line = serde_json::json!({
        "library": library,
        "job": arguments.job.name(),
        "count": arguments.count,
        "wall_seconds": measured.wall_seconds,
        "cpu_seconds": measured.cpu_seconds,
        "peak_rss_bytes": measured.peak_rss_bytes,
        "rss_bytes": measured.rss_bytes,
        "heap_bytes": measured.heap_bytes,
        "allocations": measured.allocations,
        "latency_p50_microseconds": measured.latency.map(|(middle, _)| middle),
        "latency_p99_microseconds": measured.latency.map(|(_, most)| most),
        "writes": measured.writes,
        "answer": answer.to_string(),
    });
    println!("{line}");
}
