//! Durations for people, as `kubectl get` shows ages: `45s`, `3m10s`, `5h`, `3d4h`, `2y`.
//!
//! Two units while the first is small, then one; always truncated, never rounded.

use jiff::Timestamp;

use super::GoDuration;

/// Returns the time from one instant to another, as `kubectl get` shows it.
///
/// ```
/// use klient_core::age;
///
/// let created = "2026-07-01T12:00:00Z".parse()?;
/// assert_eq!(age(created, "2026-07-04T16:30:00Z".parse()?), "3d4h");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(since);
    let longest = if passed.is_negative() { i64::MIN } else { i64::MAX };
    human_duration(GoDuration::try_from(passed).unwrap_or(GoDuration::from_nanos(longest)))
}

/// Formats a duration with two or three significant figures.
///
/// Clocks may differ slightly, so negative durations down to two seconds are shown as zero; others are `<invalid>`.
#[doc(alias = "HumanDuration")]
pub fn human_duration(duration: GoDuration) -> String {
    let seconds = duration.as_nanos() / NANOS;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    if seconds < -1 {
        INVALID.to_owned()
    } else if seconds < 120 {
        format!("{}s", seconds.max(0))
    } else if minutes < 10 {
        two(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, "d", hours % 24, "h")
    } else if years < 2 {
        format!("{days}d")
    } else if years < 8 {
        two(years, "y", days % 365, "d")
    } else {
        format!("{years}y")
    }
}

/// Formats a duration in its largest unit only: `3d` where [`human_duration`] returns `3d4h`.
#[doc(alias = "ShortHumanDuration")]
pub fn short_human_duration(duration: GoDuration) -> String {
    let seconds = duration.as_nanos() / NANOS;
    let hours = seconds / 3600;
    match seconds {
        ..-1 => INVALID.to_owned(),
        -1 => "0s".to_owned(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{hours}h"),
        _ if hours < 24 * 365 => format!("{}d", hours / 24),
        _ => format!("{}y", hours / 24 / 365),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}

const NANOS: i64 = 1_000_000_000;
const INVALID: &str = "<invalid>";
