//! Plots of time and memory against the number of objects: SVG, both axes logarithmic, one line per library.

use std::fmt::Write as _;

use super::{
    job::Job,
    program::Library,
    sample::{METRICS, Measurement, Sample},
    table::median,
};

/// The plots of jobs with several sizes.
const PLOTS: [Plot; 7] = [
    Plot { file: "sync-cpu.svg", job: "sync-replay", what: "CPU seconds of a sync", value: |s, _| Some(s.cpu_seconds) },
    Plot { file: "sync-time.svg", job: "sync-replay", what: "seconds of a sync", value: |s, _| Some(s.wall_seconds) },
    Plot { file: "sync-memory.svg", job: "sync-replay", what: "MB resident after a sync", value: |s, _| rss(s) },
    Plot {
        file: "sync-peak.svg",
        job: "sync-replay",
        what: "MB at most during a sync",
        value: |s, _| Some(s.peak_rss_bytes / 1e6),
    },
    Plot {
        file: "custom-cpu.svg",
        job: "sync-custom-replay",
        what: "CPU seconds of a sync of custom resources",
        value: |s, _| Some(s.cpu_seconds),
    },
    Plot {
        file: "custom-memory.svg",
        job: "sync-custom-replay",
        what: "MB resident after a sync of custom resources",
        value: |s, _| rss(s),
    },
    Plot {
        file: "events-cpu.svg",
        job: "events-replay",
        what: "CPU microseconds of an event",
        value: |s, count| Some(s.cpu_seconds / count as f64 * 1e6),
    },
];

/// A plot of one value of one job: its file name, job, title and value.
struct Plot {
    file: &'static str,
    job: &'static str,
    what: &'static str,
    /// The function that returns the value to plot from a sample and the number of operations.
    value: fn(&Sample, usize) -> Option<f64>,
}

fn rss(sample: &Sample) -> Option<f64> {
    let place = METRICS.iter().position(|metric| metric.key == "rss_bytes")?;
    sample.more[place]
}

/// Draws the plots that have enough data. Returns file names and contents.
pub(super) fn plots(measurements: &[Measurement]) -> Vec<(&'static str, String)> {
    PLOTS.iter().filter_map(|plot| Some((plot.file, plot.draw(measurements)?))).collect()
}

/// Returns the file names of all plots of these jobs.
pub(super) fn names(jobs: &[Job]) -> impl Iterator<Item = &'static str> {
    PLOTS.iter().filter(|plot| jobs.iter().any(|job| job.name == plot.job)).map(|plot| plot.file)
}

impl Plot {
    fn draw(&self, measurements: &[Measurement]) -> Option<String> {
        let of_job: Vec<_> = measurements.iter().filter(|measurement| measurement.job.name == self.job).collect();
        let line = |library: Library| {
            let point = |measurement: &&Measurement| {
                let samples = measurement.samples_of(library)?;
                let values = samples.iter().filter_map(|sample| (self.value)(sample, measurement.count));
                Some((measurement.size as f64, median(values)?))
            };
            (library, of_job.iter().filter_map(point).collect::<Vec<_>>())
        };
        draw(self.what, &Library::ALL.map(line))
    }
}

type Line = (Library, Vec<(f64, f64)>);

/// Draws a plot as SVG. Returns `None` if there are fewer than two sizes.
fn draw(what: &str, lines: &[Line]) -> Option<String> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let mut sizes: Vec<f64> = points().map(|(size, _)| *size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let x = Axis::of(*sizes.first()?, *sizes.last()?, LEFT, WIDTH - RIGHT)?;
    let lowest = points().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    let highest = points().map(|(_, value)| *value).fold(0.0, f64::max);
    let (low, high) = (decade(lowest).0, decade(highest).1.max(decade(lowest).0 * 10.0));
    let y = Axis::of(low, high, HEIGHT - BOTTOM, TOP)?;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{what}, against the number of objects</text>\n"
    );
    let mut value = low;
    while value <= high * 1.001 {
        let (at, end, label) = (y.place(value), WIDTH - RIGHT, number(value));
        let text = LEFT - 6.0;
        let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{end}\" stroke=\"#ddd\"/>");
        let _ = writeln!(svg, "<text x=\"{text}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", at + 4.0);
        value *= 10.0;
    }
    for size in &sizes {
        let (at, bottom, label) = (x.place(*size), HEIGHT - BOTTOM, number(*size));
        let _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#eee\"/>");
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", bottom + 18.0);
    }
    let mut labels = Vec::new();
    for (library, points) in lines.iter().filter(|(_, points)| !points.is_empty()) {
        let colour = colour(*library);
        let places: Vec<_> = points.iter().map(|(size, value)| (x.place(*size), y.place(*value))).collect();
        let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in &places {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
        }
        if let (Some((x, y)), Some((_, value))) = (places.last(), points.last()) {
            labels.push((x + 8.0, y + 4.0, colour, format!("{}: {}", library.name(), number(*value))));
        }
    }
    labels.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut above = 0.0;
    for (x, y, colour, text) in labels {
        // Lines may end at the same point, but their labels must not overlap.
        above = f64::max(y, above + LABEL);
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{above:.1}\" fill=\"{colour}\">{text}</text>");
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Returns the powers of ten below and above a number.
fn decade(value: f64) -> (f64, f64) {
    let exponent = value.max(f64::MIN_POSITIVE).log10();
    (10f64.powf(exponent.floor()), 10f64.powf(exponent.ceil()))
}

/// A logarithmic axis, which maps values to coordinates.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn of(low: f64, high: f64, from: f64, to: f64) -> Option<Self> {
        (low > 0.0 && high > low && high.is_finite()).then_some(Self { low, high, from, to })
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + (self.to - self.from) * part
    }
}

/// Formats a number briefly. The labels of an axis are exact.
fn number(value: f64) -> String {
    if value >= 1000.0 {
        let digits = format!("{value:.0}");
        let grouped: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
        grouped.join(",")
    } else if value >= 10.0 {
        format!("{value:.0}")
    } else {
        let text = if value >= 1.0 { format!("{value:.1}") } else { format!("{value:.3}") };
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

fn colour(library: Library) -> &'static str {
    match library {
        Library::Klient => "#c2410c",
        Library::ClientGo => "#0369a1",
        Library::KubeRs => "#4d7c0f",
    }
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 36.0;
/// The minimum vertical distance between labels.
const LABEL: f64 = 14.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_higher_and_further_to_the_right() {
        let lines = [
            (Library::Klient, vec![(1000.0, 0.02), (10_000.0, 0.2)]),
            (Library::ClientGo, vec![(1000.0, 0.3)]),
            (Library::KubeRs, vec![]),
        ];
        let svg = draw("CPU seconds", &lines).unwrap();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">klient: 0.2</text>") && svg.contains(">10,000</text>"), "{svg}");
        assert!(!svg.contains("kube-rs"), "a library without points has no line");
        let x = Axis::of(1000.0, 10_000.0, 0.0, 100.0).unwrap();
        assert!((x.place(1000.0), x.place(10_000.0)) == (0.0, 100.0) && x.place(3000.0) > 40.0);
    }

    #[test]
    fn one_size_is_no_plot() {
        assert_eq!(draw("CPU seconds", &[(Library::Klient, vec![(1000.0, 0.02)])]), None);
        assert_eq!(draw("CPU seconds", &[]), None);
    }
}
