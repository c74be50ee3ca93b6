//! A whole run as a Markdown page: its command and conditions, a table of all ratios, and all measurements.

use std::{fs, path::Path, thread};

use klient_harness::Programs;

use super::{sample::Measurement, table};
use crate::run::output;

/// Returns the page.
pub(super) fn page(
    command: &str,
    conditions: &str,
    measurements: &[Measurement],
    footprints: &str,
    agreement: Option<&str>,
) -> String {
    let tables: Vec<String> = measurements.iter().map(table::whole).collect();
    let parts = [
        "# One run of the benchmark".to_owned(),
        "Written by the command below; what it means is in [benchmarks.md](../benchmarks.md).".to_owned(),
        format!("    {command}"),
        conditions.to_owned(),
        "## All ratios".to_owned(),
        table::summary(measurements),
        agreement.unwrap_or_default().trim_end().to_owned(),
        "## Everything".to_owned(),
        tables.join("\n\n"),
        footprints.to_owned(),
    ];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Describes the machine, the versions and the time at the start of a run.
pub(super) fn conditions(root: &Path) -> String {
    // The load averages of the last 1, 5 and 15 minutes.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().take(3).collect::<Vec<_>>().join(", ");
    let said = |program: &str, arguments: &[&str]| {
        output(root, program, arguments).map_or_else(|_| format!("{program}: unknown"), |text| text.trim().to_owned())
    };
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown memory".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let lines = [
        format!("- {}, {cores} cores of {processor}, {memory}", said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        format!("- load average when it began: {load}"),
        format!("- Linux {}, {}, {}", kernel.trim(), said("rustc", &["--version"]), said("go", &["version"])),
        format!("- commit {}", said("git", &["describe", "--always", "--dirty", "--exclude", "*"])),
    ];
    lines.join("\n")
}

/// Describes the real server. Its version is known only at the end, because the first run builds the server.
pub(super) fn server() -> String {
    let version = Programs::find().ok().flatten().and_then(|programs| programs.kubernetes_version().ok());
    format!("- kube-apiserver {}", version.as_deref().unwrap_or("unknown"))
}

/// Returns the first value of a key in a file of `key: value` lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{job::Job, program::Library, sample::Sample},
        *,
    };

    #[test]
    fn a_page_has_the_command_the_ratios_and_every_table() {
        let mut measurement = Measurement::new(Job::ALL[0], 10, 5);
        let sample = |cpu_seconds| Sample { wall_seconds: 1.0, cpu_seconds, ..Sample::default() };
        measurement.add(Library::Klient, sample(0.1));
        measurement.add(Library::ClientGo, sample(0.25));
        measurement.missing(Library::KubeRs, "cannot be built");
        let conditions = conditions(Path::new("."));
        assert!(conditions.contains("- commit ") && conditions.contains("rustc 1."), "{conditions}");
        let page = page("bench --job get", "a machine", &[measurement], "programs", Some("agreed\n"));
        for part in [
            "a machine\n",
            "    bench --job get\n",
            "2.50 (2.50-2.50)",
            "| cannot be built |",
            "\n\nagreed\n\n",
            "programs\n",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert_eq!(page.matches("**get: get of a pod").count(), 1);
    }
}
