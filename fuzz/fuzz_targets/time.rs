//! Durations and instants: a parsed value prints as text that parses to the same value.

#![no_main]

use klient_core::{
    GoDuration, format_micro_time, format_time, human_duration, parse_micro_time, parse_time, short_human_duration,
};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(duration) = text.parse::<GoDuration>() {
        assert_eq!(duration.to_string().parse::<GoDuration>().as_ref(), Ok(&duration), "{text:?}");
        let _ = (human_duration(duration), short_human_duration(duration));
    }
    if let Ok(time) = parse_time(text) {
        // Fractions of a second are not printed.
        let printed = format_time(&time);
        let again = parse_time(&printed).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(format_time(&again), printed, "{text:?}");
    }
    if let Ok(time) = parse_micro_time(text) {
        let printed = format_micro_time(&time);
        let again = parse_micro_time(&printed).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(format_micro_time(&again), printed, "{text:?}");
    }
});
