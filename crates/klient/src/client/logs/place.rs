//! The place in a log that was reached, and what to skip after a reconnect.

use k8s_openapi::jiff::Timestamp;

/// The last line that was given out. Several lines can have the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    time: Timestamp,
    /// The number of lines with this time.
    lines: u64,
}

/// The lines that a new stream repeats. A server starts at the beginning of a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    until: Place,
    /// The number of lines with the last time that were seen again.
    seen: u64,
}

/// The fate of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was given out before.
    Repeated,
    New,
    /// It is new, and the last known line did not come before it.
    NewAfterGap,
}

impl Place {
    /// Returns the place after a line.
    pub(super) fn after(before: Option<Self>, time: Timestamp) -> Self {
        match before {
            Some(place) if place.time == time => Self { time, lines: place.lines + 1 },
            // Lines of both outputs can be swapped. What was given out counts.
            Some(place) if place.time > time => place,
            _ => Self { time, lines: 1 },
        }
    }

    /// Returns the time from which lines are requested again: servers know whole seconds only.
    pub(super) fn since(self) -> Timestamp {
        Timestamp::from_second(self.time.as_second()).unwrap_or(self.time)
    }

    /// Returns the lines that a new stream repeats.
    pub(super) fn repeated(self) -> Repeated {
        Repeated { until: self, seen: 0 }
    }
}

impl Repeated {
    /// Judges a line. After the first new one, no more are repeated.
    pub(super) fn judge(&mut self, time: Option<Timestamp>) -> Verdict {
        match time {
            Some(time) if time > self.until.time => {
                if self.seen < self.until.lines {
                    Verdict::NewAfterGap
                } else {
                    Verdict::New
                }
            }
            Some(time) if time == self.until.time => {
                self.seen += 1;
                if self.seen > self.until.lines { Verdict::New } else { Verdict::Repeated }
            }
            // A line without a time belongs to the one before it.
            _ => Verdict::Repeated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanosecond(1_700_000_000_000_000_000 + i128::from(nanos)).unwrap()
    }

    fn place(times: &[i64]) -> Place {
        times.iter().fold(None, |place, time| Some(Place::after(place, at(*time)))).unwrap()
    }

    #[test]
    fn lines_up_to_the_place_are_repeated() {
        let mut repeated = place(&[1, 2, 2]).repeated();
        let verdicts: Vec<_> = [1, 2, 2, 2, 3].iter().map(|time| repeated.judge(Some(at(*time)))).collect();
        use Verdict::{New, Repeated};
        assert_eq!(verdicts, [Repeated, Repeated, Repeated, New, New]);
    }

    #[test]
    fn missing_last_line_is_a_gap() {
        assert_eq!(place(&[1, 2]).repeated().judge(Some(at(3))), Verdict::NewAfterGap);
        let mut repeated = place(&[2, 2]).repeated();
        assert_eq!(repeated.judge(Some(at(2))), Verdict::Repeated);
        assert_eq!(repeated.judge(Some(at(3))), Verdict::NewAfterGap);
    }

    #[test]
    fn place_does_not_go_back() {
        assert_eq!(place(&[2, 1]), place(&[2]));
        assert_eq!(place(&[5]).since(), at(0));
    }
}
