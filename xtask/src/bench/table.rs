//! The table: medians over the repetitions, and ratios with their spread.

use serde_json::{Value, json};

use super::{
    job::Place,
    options::Options,
    sample::{Measurement, Sample},
};

/// The middle of some numbers, and how far they reach.
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
}

/// What the table says of one library at one job.
struct Row {
    cpu_microseconds: Spread,
    per_second: Spread,
    peak_rss_megabytes: Spread,
    /// Where the job is about that.
    rss_megabytes: Option<Spread>,
    /// CPU over klient's, of runs that followed each other.
    ratio: Spread,
}

impl Row {
    fn of(samples: &[Sample], klient: &[Sample], count: usize) -> Option<Self> {
        let count = count as f64;
        Some(Self {
            cpu_microseconds: Spread::of(samples.iter().map(|sample| sample.cpu_seconds / count * 1e6))?,
            per_second: Spread::of(samples.iter().map(|sample| count / sample.wall_seconds))?,
            peak_rss_megabytes: Spread::of(samples.iter().map(|sample| sample.peak_rss_bytes / 1e6))?,
            rss_megabytes: Spread::of(samples.iter().filter_map(|sample| Some(sample.rss_bytes? / 1e6))),
            ratio: Spread::of(samples.iter().zip(klient).map(|(other, ours)| other.cpu_seconds / ours.cpu_seconds))?,
        })
    }
}

/// Prints the rows of one job.
pub(super) fn print(measurement: &Measurement) {
    let Measurement { job, count, size, .. } = measurement;
    let objects = if job.place == Place::Process { String::new() } else { format!(", {size} objects") };
    println!("\n{}: {}{objects}, {count} times", job.name, job.operation);
    println!("| library | CPU us (min-max) | per second | peak RSS MB | RSS MB | CPU / klient's (min-max) |");
    println!("|---|---|---|---|---|---|");
    for (library, row) in rows(measurement) {
        match row {
            Ok(Row { cpu_microseconds: cpu, per_second, peak_rss_megabytes: memory, rss_megabytes, ratio }) => {
                println!(
                    "| {library} | {:.2} ({:.2}-{:.2}) | {:.0} | {:.0} | {} | {:.2} ({:.2}-{:.2}) |",
                    cpu.median,
                    cpu.min,
                    cpu.max,
                    per_second.median,
                    memory.median,
                    rss_megabytes.map_or_else(String::new, |rss| format!("{:.0}", rss.median)),
                    ratio.median,
                    ratio.min,
                    ratio.max
                );
            }
            Err(why) => println!("| {library} | {} | | | | |", why.lines().next().unwrap_or_default()),
        }
    }
}

/// Everything that was measured.
pub(super) fn to_json(measurements: &[Measurement], options: &Options) -> Value {
    let jobs: Vec<Value> = measurements
        .iter()
        .map(|measurement| {
            let libraries: serde_json::Map<String, Value> = rows(measurement)
                .map(|(library, row)| {
                    let value = row.map_or_else(|why| json!({"missing": why}), |row| row_to_json(&row));
                    (library.to_owned(), value)
                })
                .collect();
            let job = measurement.job;
            json!({
                "job": job.name,
                "concurrency": job.concurrency,
                "count": measurement.count,
                "size": measurement.size,
                "libraries": libraries,
            })
        })
        .collect();
    json!({"repetitions": options.repetitions, "jobs": jobs})
}

fn row_to_json(row: &Row) -> Value {
    json!({
        "cpu_microseconds": row.cpu_microseconds.to_json(),
        "per_second": row.per_second.to_json(),
        "peak_rss_megabytes": row.peak_rss_megabytes.to_json(),
        "rss_megabytes": row.rss_megabytes.map(Spread::to_json),
        "cpu_over_klients": row.ratio.to_json(),
    })
}

fn rows(measurement: &Measurement) -> impl Iterator<Item = (&'static str, Result<Row, String>)> + '_ {
    let klient = measurement.samples[0].1.as_deref().unwrap_or_default();
    measurement.samples.iter().map(move |(library, samples)| {
        let row = samples
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|samples| Row::of(samples, klient, measurement.count).ok_or_else(|| "no samples".to_owned()));
        (library.name(), row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    }
}
