//! Times as Kubernetes writes them: instants, durations, and ages for people.
//!
//! Instants are `k8s-openapi`'s `Time` (whole seconds when written) and `MicroTime` (microseconds, for leases and
//! events). Durations are Go's, `1h2m3.5s`, because configuration files and some API fields contain those.

mod age;
mod go_duration;
mod instant;

#[cfg(test)]
mod tests;

pub use age::{age, human_duration, short_human_duration};
pub use go_duration::{DurationRangeError, GoDuration, ParseGoDurationError};
pub use instant::{ParseTimeError, format_micro_time, format_time, parse_micro_time, parse_time};
