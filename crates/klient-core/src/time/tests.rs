//! Times against Go's own answers, and parsing against printing.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use proptest::prelude::*;
use std::time::Duration;

use super::*;

#[test]
fn agrees_with_go_on_the_golden_file() {
    // Made by a Go program over k8s.io/apimachinery v0.37.0; one line per text: what is parsed|text|printed, or error.
    for line in include_str!("../../testdata/time_golden.txt").lines() {
        let columns: Vec<&str> = line.split('|').collect();
        let &[kind, text, expected] = &columns[..] else { panic!("{line}") };
        let duration = || text.parse::<GoDuration>();
        let printed = match kind {
            "duration" => duration().ok().map(|duration| duration.to_string()),
            "human" => duration().ok().map(human_duration),
            "short" => duration().ok().map(short_human_duration),
            "time" => parse_time(text).ok().map(|time| format_time(&time)),
            _ => parse_micro_time(text).ok().map(|time| format_micro_time(&time)),
        };
        assert_eq!(printed.as_deref().unwrap_or("error"), expected, "{line}");
    }
}

#[test]
fn says_where_and_why_a_text_is_no_time() {
    for (text, at, why) in [
        ("", 0, "expected a year of four digits"),
        ("2026-13-01T00:00:00Z", 5, "expected a month of two digits"),
        ("2026-02-30T00:00:00Z", 8, "no such day"),
        ("2026-02-03 00:00:00Z", 10, "expected `T`"),
        ("2026-02-03T00:00:00", 19, "expected Z or an offset such as +02:00"),
        ("2026-02-03T00:00:00.Z", 19, "expected Z or an offset such as +02:00"),
        ("2026-02-03T00:00:00Z ", 20, "expected the end"),
        ("9999-12-31T23:59:59Z", 0, "instant is out of range"),
    ] {
        assert_eq!(parse_time(text).unwrap_err().to_string(), format!("time {text:?} at byte {at}: {why}"));
    }
    let error = parse_micro_time("2026-02-03T00:00:00.12345Z").unwrap_err().to_string();
    assert!(error.ends_with("at byte 19: expected a fraction of six digits, such as .000000"), "{error}");
}

#[test]
fn says_where_and_why_a_text_is_no_duration() {
    for (text, at, why) in [
        ("", 0, "expected a number"),
        ("-", 1, "expected a number"),
        ("1h.m", 2, "expected a number"),
        ("1h5", 3, "expected a unit"),
        ("3d", 1, "unknown unit, expected one of ns us µs ms s m h"),
        ("1h3000000h", 2, "longer than 292 years"),
        ("9223372036854775808ns", 0, "longer than 292 years"),
    ] {
        let error = text.parse::<GoDuration>().unwrap_err().to_string();
        assert_eq!(error, format!("duration {text:?} at byte {at}: {why}"));
    }
}

#[test]
fn writes_times_as_k8s_openapi_does() {
    for text in ["1969-12-31T23:59:58.5Z", "2026-07-01T12:00:00.123456789Z", "0000-01-01T00:00:00Z"] {
        let timestamp: Timestamp = text.parse().unwrap();
        let (time, micro) = (Time(timestamp), MicroTime(timestamp));
        assert_eq!(serde_json::to_string(&time).unwrap(), format!("{:?}", format_time(&time)));
        assert_eq!(serde_json::to_string(&micro).unwrap(), format!("{:?}", format_micro_time(&micro)));
    }
}

#[test]
fn converts_durations_that_fit() {
    let second = GoDuration::from_nanos(1_000_000_000);
    assert_eq!(Duration::try_from(second), Ok(Duration::from_secs(1)));
    assert_eq!(GoDuration::try_from(Duration::from_secs(1)), Ok(second));
    assert_eq!(GoDuration::try_from(SignedDuration::from(second)), Ok(second));
    let error = Duration::try_from(GoDuration::from_nanos(-1)).unwrap_err();
    assert_eq!(error.to_string(), "duration is below zero");
    let error = GoDuration::try_from(Duration::MAX).unwrap_err();
    assert_eq!(error.to_string(), "duration is longer than 292 years");
}

#[test]
fn reads_and_writes_durations_as_json_strings() {
    let duration: GoDuration = serde_json::from_str("\"90m\"").unwrap();
    assert_eq!(serde_json::to_string(&duration).unwrap(), "\"1h30m0s\"");
    assert!(serde_json::from_str::<GoDuration>("90").is_err());
}

#[test]
fn shows_ages_even_where_clocks_disagree() {
    let at = |second| Timestamp::from_second(second).unwrap();
    assert_eq!(age(at(100), at(99)), "0s");
    assert_eq!(age(at(100), at(97)), "<invalid>");
    assert_eq!(age(Timestamp::MIN, Timestamp::MAX), "292y");
    assert_eq!(age(Timestamp::MAX, Timestamp::MIN), "<invalid>");
}

proptest! {
    #[test]
    fn parses_the_duration_it_prints(nanos: i64, shift in 0..63_u32) {
        // Parsing goes through floats, which is exact here: a unit over the power of ten it printed with is whole.
        let duration = GoDuration::from_nanos(nanos >> shift);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn parses_the_time_it_prints(micros in -62_000_000_000_000_000_i64..250_000_000_000_000_000) {
        let micro = MicroTime(Timestamp::from_microsecond(micros).unwrap());
        prop_assert_eq!(parse_micro_time(&format_micro_time(&micro)), Ok(micro));
        let time = Time(Timestamp::from_second(micros / 1_000_000).unwrap());
        prop_assert_eq!(parse_time(&format_time(&time)), Ok(time));
    }

    #[test]
    fn never_panics_on_any_text(text in "\\PC*", near in "[-+.,:TZ0-9hmsnuµ]{0,30}") {
        for text in [text, near] {
            let _ = (parse_time(&text), parse_micro_time(&text));
            if let Ok(duration) = text.parse::<GoDuration>() {
                let _ = (human_duration(duration), short_human_duration(duration));
                prop_assert_eq!(duration.to_string().parse(), Ok(duration));
            }
        }
    }
}
