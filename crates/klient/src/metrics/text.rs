//! Prometheus' text format, and OpenMetrics, which has exemplars.

use std::fmt::{Display, Write as _};

use super::{Family, Labels, Metric};

/// Appends all metrics with one name.
pub(super) fn family(out: &mut String, name: &str, family: &Family) {
    let Some(type_name) = type_of(family) else { return };
    // Writing to a `String` cannot fail.
    let _ = write!(out, "# HELP {name} {}\n# TYPE {name} {type_name}\n", family.help);
    lines(out, name, family, false);
}

/// Appends all metrics with one name, as OpenMetrics.
pub(super) fn open_metrics_family(out: &mut String, name: &str, family: &Family) {
    let Some(type_name) = type_of(family) else { return };
    // The name of a counter is that without its suffix. A counter without the suffix is not allowed.
    let (short, type_name) = match (type_name, name.strip_suffix("_total")) {
        ("counter", Some(short)) => (short, "counter"),
        ("counter", None) => (name, "unknown"),
        (other, _) => (name, other),
    };
    let _ = write!(out, "# HELP {short} {}\n# TYPE {short} {type_name}\n", family.help);
    lines(out, name, family, true);
}

fn type_of(family: &Family) -> Option<&'static str> {
    Some(match family.metrics.values().next()? {
        Metric::Counter(_) => "counter",
        Metric::Gauge(_) | Metric::Observed(_) => "gauge",
        Metric::Histogram(_) => "histogram",
    })
}

fn lines(out: &mut String, name: &str, family: &Family, with_exemplars: bool) {
    for (labels, metric) in &family.metrics {
        match metric {
            Metric::Counter(counter) => line(out, name, "", labels, None, counter.value()),
            Metric::Gauge(gauge) => line(out, name, "", labels, None, gauge.value()),
            Metric::Observed(observe) => {
                if let Some(value) = observe() {
                    line(out, name, "", labels, None, value);
                }
            }
            Metric::Histogram(histogram) => {
                for (index, (bound, count)) in histogram.buckets().enumerate() {
                    let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
                    line(out, name, "_bucket", labels, Some(&bound), count);
                    if let Some(exemplar) = histogram.exemplar(index).filter(|_| with_exemplars) {
                        out.pop();
                        let (value, time) = (exemplar.value, exemplar.time.as_secs_f64());
                        let id: String = exemplar.trace_id.chars().filter(char::is_ascii_alphanumeric).collect();
                        let _ = writeln!(out, " # {{trace_id=\"{id}\"}} {value} {time:.3}");
                    }
                }
                line(out, name, "_sum", labels, None, histogram.sum());
                line(out, name, "_count", labels, None, histogram.count());
            }
        }
    }
}

fn line(out: &mut String, name: &str, suffix: &str, labels: &Labels, bound: Option<&str>, value: impl Display) {
    out.push_str(name);
    out.push_str(suffix);
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound.map(|bound| ("le", bound)));
    let mut before = '{';
    for (name, value) in labels {
        out.push(before);
        out.push_str(name);
        out.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
        before = ',';
    }
    out.push_str(if before == ',' { "} " } else { " " });
    let _ = write!(out, "{value}");
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::Registry;

    #[test]
    fn histogram_renders_buckets_sum_and_count() {
        let registry = Registry::new();
        registry.histogram("wait_seconds", "Wait.", &[("verb", "GET")], &[0.5, 2.0]).observe(1.5);
        assert_eq!(
            registry.render(),
            "# HELP wait_seconds Wait.\n# TYPE wait_seconds histogram\n\
             wait_seconds_bucket{verb=\"GET\",le=\"0.5\"} 0\n\
             wait_seconds_bucket{verb=\"GET\",le=\"2\"} 1\n\
             wait_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 1\n\
             wait_seconds_sum{verb=\"GET\"} 1.5\n\
             wait_seconds_count{verb=\"GET\"} 1\n"
        );
    }
}
