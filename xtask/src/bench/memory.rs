//! A check for enough memory before a run, estimated from runs with fewer objects.

use std::{fs, path::Path};

use super::sample::Sample;

/// Returns the amount of memory that is available now, if known: the smaller of the machine's and the container's.
pub(super) fn available() -> Option<u64> {
    let number = |name: &str| fs::read_to_string(Path::new(CGROUP).join(name)).ok()?.trim().parse::<u64>().ok();
    let left = number("memory.max").zip(number("memory.current")).map(|(most, now)| most.saturating_sub(now));
    machine().into_iter().chain(left).min()
}

/// Returns the available memory of the machine, without the limit of a container.
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Returns the reason if there is too little memory for a size.
///
/// The estimate assumes that memory is proportional to the number of objects, and starts from a run with fewer objects.
pub(super) fn too_little(smaller: (usize, &[Sample]), size: usize, available: Option<u64>) -> Option<String> {
    let (known_size, samples) = smaller;
    let peak = samples.iter().map(|sample| sample.peak_rss_bytes).fold(0.0, f64::max);
    let needed = peak * size as f64 / known_size as f64;
    let available = available? as f64;
    (needed > available * USABLE)
        .then(|| format!("too little memory: about {:.1} GB needed, {:.1} GB available", needed / 1e9, available / 1e9))
}

/// The folder with the memory limit of the container that this process runs in.
const CGROUP: &str = "/sys/fs/cgroup";

/// The usable part of the available memory. Other processes need the rest.
const USABLE: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_does_not_fit_is_told_with_numbers() {
        let samples = [Sample { peak_rss_bytes: 2e9, ..Sample::default() }];
        let why = too_little((20_000, &samples), 200_000, Some(16_000_000_000));
        assert_eq!(why.as_deref(), Some("too little memory: about 20.0 GB needed, 16.0 GB available"));
        assert_eq!(too_little((20_000, &samples), 50_000, Some(16_000_000_000)), None);
        assert_eq!(too_little((20_000, &samples), 200_000, None), None);
    }
}
