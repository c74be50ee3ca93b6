//! The tables: medians over the repetitions, and ratios with their spread.

use serde_json::{Map, Value, json};

use super::{
    job::Place,
    options::Options,
    program::Library,
    sample::{METRICS, Measurement, Sample},
};

/// The median, the minimum and the maximum of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut numbers: Vec<f64> = numbers.into_iter().collect();
        numbers.sort_by(f64::total_cmp);
        let median = (numbers.get((numbers.len().checked_sub(1)?) / 2)? + numbers[numbers.len() / 2]) / 2.0;
        Some(Self { median, min: numbers[0], max: numbers[numbers.len() - 1] })
    }

    fn to_json(self) -> Value {
        json!({"median": self.median, "min": self.min, "max": self.max})
    }

    /// Formats the median alone.
    fn short(self) -> String {
        short(self.median)
    }

    /// Formats the median with the minimum and the maximum.
    fn long(self) -> String {
        format!("{} ({}-{})", short(self.median), short(self.min), short(self.max))
    }

    fn ratio(self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.median, self.min, self.max)
    }
}

/// Returns the median of some numbers.
pub(super) fn median(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(numbers).map(|spread| spread.median)
}

/// Formats a number with its significant digits only.
fn short(number: f64) -> String {
    let digits = match number {
        _ if number >= 100.0 => 0,
        _ if number >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.digits$}")
}

/// The cells of one library for one job.
struct Row {
    cpu_microseconds: Spread,
    per_second: Spread,
    peak_rss_megabytes: Spread,
    more: [Option<Spread>; METRICS.len()],
    /// The ratio to klient's CPU, of runs in the same round.
    cpu_ratio: Option<Spread>,
    wall_ratio: Option<Spread>,
}

impl Row {
    fn of(
        samples: &[Sample],
        counted: Option<&Sample>,
        klient: &[Sample],
        count: usize,
        pace: Option<u32>,
    ) -> Option<Self> {
        let count = count as f64;
        let ratio = |value: fn(&Sample) -> f64| {
            Spread::of(samples.iter().zip(klient).map(|(other, ours)| value(other) / value(ours)))
        };
        let metric = |place: usize| {
            let measured = Spread::of(samples.iter().filter_map(|sample| sample.more[place]));
            measured.or_else(|| Spread::of(counted.and_then(|sample| sample.more[place])))
        };
        Some(Self {
            cpu_microseconds: Spread::of(samples.iter().map(|sample| sample.cpu_seconds / count * 1e6))?,
            per_second: Spread::of(samples.iter().map(|sample| count / sample.wall_seconds))?,
            peak_rss_megabytes: Spread::of(samples.iter().map(|sample| sample.peak_rss_bytes / 1e6))?,
            more: std::array::from_fn(metric),
            cpu_ratio: ratio(|sample| sample.cpu_seconds),
            // The pace alone determines the time of a job that has one.
            wall_ratio: ratio(|sample| sample.wall_seconds).filter(|_| pace.is_none()),
        })
    }

    /// Returns one cell for each column.
    fn cells(&self) -> Vec<String> {
        let optional = |spread: Option<Spread>, show: fn(Spread) -> String| spread.map(show).unwrap_or_default();
        let mut cells = vec![self.cpu_microseconds.long(), self.per_second.short(), self.peak_rss_megabytes.short()];
        cells.extend(self.more.iter().map(|spread| optional(*spread, Spread::short)));
        cells.extend([optional(self.cpu_ratio, Spread::ratio), optional(self.wall_ratio, Spread::ratio)]);
        cells
    }

    fn to_json(&self) -> Value {
        let mut all = Map::new();
        let optional = |spread: Option<Spread>| spread.map(Spread::to_json).unwrap_or_default();
        all.insert("cpu_microseconds".to_owned(), self.cpu_microseconds.to_json());
        all.insert("per_second".to_owned(), self.per_second.to_json());
        all.insert("peak_rss_megabytes".to_owned(), self.peak_rss_megabytes.to_json());
        for (metric, spread) in METRICS.iter().zip(self.more) {
            all.insert(metric.title.to_lowercase().replace(' ', "_"), optional(spread));
        }
        all.insert("cpu_over_klients".to_owned(), optional(self.cpu_ratio));
        all.insert("wall_over_klients".to_owned(), optional(self.wall_ratio));
        Value::Object(all)
    }
}

/// Prints the rows of one job.
pub(super) fn print(measurement: &Measurement) {
    println!("\n{}", whole(measurement));
}

/// Returns the title and the table of one job.
pub(super) fn whole(measurement: &Measurement) -> String {
    format!("{}\n{}", title(measurement), render(measurement))
}

/// Describes the CPU of each library in the last round.
pub(super) fn last(measurement: &Measurement) -> String {
    let took = |library: &Library| {
        let sample = measurement.samples_of(*library)?.last()?;
        Some(format!("{} {:.3} s", library.name(), sample.cpu_seconds))
    };
    let all: Vec<_> = Library::ALL.iter().filter_map(took).collect();
    let Measurement { job, size, .. } = measurement;
    format!("{}, {} at a time, {size} objects: CPU {}", job.full_name(), job.concurrency, all.join(", "))
}

/// Returns a table with one row for each job: klient's CPU, and the ratios of the other libraries.
pub(super) fn summary(measurements: &[Measurement]) -> String {
    let mut lines = vec![
        "| job | at a time | objects | klient's CPU us | client-go's CPU / klient's | kube-rs's CPU / klient's \
         | client-go's time / klient's | kube-rs's time / klient's | peak RSS MB: klient, client-go, kube-rs |"
            .to_owned(),
        format!("|{}", "---|".repeat(9)),
    ];
    for measurement in measurements {
        let rows: Vec<_> = rows(measurement).map(|(_, row)| row).collect();
        let cell = |library: usize, show: &dyn Fn(&Row) -> Option<String>| {
            rows[library].as_ref().ok().and_then(show).unwrap_or_else(|| "-".to_owned())
        };
        let ratio =
            |library: usize, value: fn(&Row) -> Option<Spread>| cell(library, &|row| value(row).map(Spread::ratio));
        let peaks: Vec<_> =
            (0..rows.len()).map(|library| cell(library, &|row| Some(row.peak_rss_megabytes.short()))).collect();
        let cells = [
            measurement.job.full_name(),
            measurement.job.concurrency.to_string(),
            measurement.size.to_string(),
            cell(0, &|row| Some(row.cpu_microseconds.short())),
            ratio(1, |row| row.cpu_ratio),
            ratio(2, |row| row.cpu_ratio),
            ratio(1, |row| row.wall_ratio),
            ratio(2, |row| row.wall_ratio),
            peaks.join(", "),
        ];
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

fn title(measurement: &Measurement) -> String {
    let Measurement { job, count, size, .. } = measurement;
    let objects = if job.place == Place::Process && job.task.starts_with("queue") {
        String::new()
    } else {
        format!(", {size} objects")
    };
    format!("**{}: {}{objects}, {count} times**\n", job.name, job.operation)
}

/// Returns the table of one job as Markdown, without empty columns.
fn render(measurement: &Measurement) -> String {
    let mut titles = vec!["CPU us (min-max)", "per second", "peak RSS MB"];
    titles.extend(METRICS.iter().map(|metric| metric.title));
    titles.extend(["CPU / klient's (min-max)", "wall / klient's (min-max)"]);
    let rows: Vec<_> = rows(measurement).map(|(library, row)| (library, row.map(|row| row.cells()))).collect();
    let said = |column: usize| rows.iter().any(|(_, row)| row.as_ref().is_ok_and(|cells| !cells[column].is_empty()));
    let columns: Vec<usize> = (0..titles.len()).filter(|column| said(*column)).collect();
    let chosen = |cells: &[String]| columns.iter().map(|column| cells[*column].clone()).collect::<Vec<_>>().join(" | ");
    let titles: Vec<String> = titles.into_iter().map(str::to_owned).collect();
    let mut lines =
        vec![format!("| library | {} |", chosen(&titles)), format!("|{}", "---|".repeat(columns.len() + 1))];
    for (library, row) in &rows {
        lines.push(match row {
            Ok(cells) => format!("| {library} | {} |", chosen(cells)),
            Err(why) => format!(
                "| {library} | {} |{}",
                why.lines().next().unwrap_or_default(),
                " |".repeat(columns.len().saturating_sub(1))
            ),
        });
    }
    lines.join("\n")
}

/// Returns all measurements as JSON.
pub(super) fn to_json(measurements: &[Measurement], options: &Options) -> Value {
    let jobs: Vec<Value> = measurements
        .iter()
        .map(|measurement| {
            let libraries: Map<String, Value> = rows(measurement)
                .map(|(library, row)| {
                    let value = row.map_or_else(|why| json!({"missing": why}), |row| row.to_json());
                    (library.to_owned(), value)
                })
                .collect();
            let job = measurement.job;
            json!({
                "job": job.name,
                "concurrency": job.concurrency,
                "pace": job.pace,
                "count": measurement.count,
                "size": measurement.size,
                "libraries": libraries,
            })
        })
        .collect();
    json!({"repetitions": options.repetitions, "slow_klient_percent": options.slow_klient, "jobs": jobs})
}

fn rows(measurement: &Measurement) -> impl Iterator<Item = (&'static str, Result<Row, String>)> + '_ {
    let klient = measurement.samples_of(Library::Klient).unwrap_or_default();
    measurement.samples.iter().map(move |(library, samples)| {
        let counted = measurement.counted.iter().find(|(known, _)| known == library).map(|(_, sample)| sample);
        let row = samples.as_ref().map_err(Clone::clone).and_then(|samples| {
            Row::of(samples, counted, klient, measurement.count, measurement.job.pace)
                .ok_or_else(|| "no samples".to_owned())
        });
        (library.name(), row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::job::Job;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    }

    #[test]
    fn table_has_ratios_and_reasons_of_missing_libraries() {
        let mut measurement = Measurement::new(Job::ALL[0], 10, 5);
        let sample = |cpu_seconds| Sample { wall_seconds: 1.0, cpu_seconds, ..Sample::default() };
        measurement.add(Library::Klient, sample(0.1));
        measurement.add(Library::ClientGo, sample(0.25));
        measurement.missing(Library::KubeRs, "cannot be built\nfor many reasons");
        let table = render(&measurement);
        assert!(table.contains("| 2.50 (2.50-2.50) | 1.00 (1.00-1.00) |"), "{table}");
        assert!(table.contains("| kube-rs | cannot be built |"), "{table}");
        assert!(!table.contains("heap MB"), "no library reports it: {table}");
    }
}
