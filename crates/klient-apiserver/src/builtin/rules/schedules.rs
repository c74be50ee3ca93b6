//! Validation of the schedules and time zones of cron jobs.

/// Returns the problem of a schedule.
pub(super) fn problem(schedule: &str) -> Option<String> {
    let mut rest = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let zone = schedule.split_once('=').map_or("", |(_, zone)| zone);
        let Some((zone, after)) = zone.split_once(' ') else {
            return Some("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
        };
        if !is_zone(zone) {
            return Some(format!("provided bad location {zone}: {}", zone_error(zone)));
        }
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let ranges = fields.iter().zip(FIELDS).flat_map(|(field, bounds)| {
        field.split(',').filter(|range| !range.is_empty()).map(move |range| (range, bounds))
    });
    ranges.into_iter().find_map(|(range, bounds)| range_problem(range, bounds).err())
}

fn descriptor(text: &str) -> Option<String> {
    let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    match text.strip_prefix("@every ") {
        _ if known.contains(&text) => None,
        Some(duration) => {
            duration_problem(duration).map(|problem| format!("failed to parse duration {text}: {problem}"))
        }
        None => Some(format!("unrecognized descriptor: {text}")),
    }
}

/// Returns the problem of a duration such as `1h30m`.
fn duration_problem(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("time: invalid duration {text:?}"));
    }
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if number.len() == rest.len() {
            return Some(format!("time: invalid duration {text:?}"));
        }
        let unit_end = number.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(number.len());
        let unit = &number[..unit_end];
        if unit.is_empty() {
            return Some(format!("time: missing unit in duration {text:?}"));
        }
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return Some(format!("time: unknown unit {unit:?} in duration {text:?}"));
        }
        rest = &number[unit_end..];
    }
    None
}

/// The least and the greatest number of a field, and the names of its numbers.
#[derive(Clone, Copy)]
struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

fn range_problem(range: &str, bounds: Bounds) -> Result<(), String> {
    let parts: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.least, bounds.most),
        [only] => {
            let start = number_or_name(only, bounds)?;
            (start, start)
        }
        [first, last] => (number_or_name(first, bounds)?, number_or_name(last, bounds)?),
        [first, ..] => {
            number_or_name(first, bounds)?;
            return Err(format!("too many hyphens: {range}"));
        }
        [] => return Ok(()),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.most;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    let Bounds { least, most, .. } = bounds;
    if start < least {
        Err(format!("beginning of range ({start}) below minimum ({least}): {range}"))
    } else if end > most {
        Err(format!("end of range ({end}) above maximum ({most}): {range}"))
    } else if start > end {
        Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"))
    } else if step == 0 {
        Err(format!("step of range should be a positive number: {range}"))
    } else {
        Ok(())
    }
}

fn number_or_name(text: &str, bounds: Bounds) -> Result<u64, String> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named {
        Some(at) => Ok(bounds.least + at as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(error) => {
            let is_long =
                matches!(error.kind(), std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow);
            let why = if is_long { "value out of range" } else { "invalid syntax" };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"))
        }
    }
}

/// Returns the problem of the time zone of a cron job.
pub(super) fn zone_problem(zone: &str) -> Option<String> {
    let is_part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
    };
    if !zone.split('/').all(is_part) {
        return Some(format!("unknown time zone {zone}"));
    }
    (!is_zone(zone)).then(|| zone_error(zone))
}

/// Returns whether a time zone is known. Names are looked up as Go does: with their case. A system without time zones accepts all.
fn is_zone(zone: &str) -> bool {
    let zones = jiff::tz::db();
    matches!(zone, "" | "UTC" | "Local")
        || zones.is_definitively_empty()
        || zones.get(zone).is_ok_and(|found| found.iana_name() == Some(zone))
}

fn zone_error(zone: &str) -> String {
    format!("unknown time zone {zone}")
}

/// Minutes, hours, days of the month, months, and days of the week.
const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds {
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];
