//! The translation of Go's regular expressions to those of the `regex` crate.

use std::fmt::Write as _;

use super::class;

/// Returns the expression in the syntax of `regex`, or Go's error.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut parser = Parser { whole: pattern, rest: pattern, out: String::new(), groups: vec![Vec::new()], last: None };
    while !parser.rest.is_empty() {
        parser.step().map_err(|what| format!("error parsing regexp: {what}"))?;
    }
    match parser.groups.len() {
        1 => Ok(parser.out),
        _ => Err(format!("error parsing regexp: {}", told("missing closing )", pattern))),
    }
}

/// Returns an error with the part of the expression that it is about.
pub(super) fn told(what: &str, part: &str) -> String {
    format!("{what}: `{part}`")
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    /// The parts of each open group that can be repeated, and `None` for the start of a group or of an alternative.
    groups: Vec<Vec<Option<Repeats>>>,
    /// The text from the start of the last repetition, if it is just before the rest.
    last: Option<&'a str>,
}

/// The repetitions with a count inside of a part, as a tree.
#[derive(Default)]
struct Repeats {
    count: Option<(i64, i64)>,
    inner: Vec<Repeats>,
}

impl Repeats {
    /// Returns whether nested counts stay within a limit.
    fn fit(&self, mut limit: i64) -> bool {
        if let Some((least, most)) = self.count {
            let most = if most < 0 { least } else { most };
            if most == 0 {
                return true;
            }
            if most > limit {
                return false;
            }
            limit /= most;
        }
        self.inner.iter().all(|inner| inner.fit(limit))
    }
}

impl<'a> Parser<'a> {
    fn step(&mut self) -> Result<(), String> {
        let last = self.last.take();
        let Some(first) = self.rest.chars().next() else { return Ok(()) };
        match first {
            '(' if self.rest.starts_with("(?") => self.flags()?,
            '(' => {
                self.take(1);
                self.open("(?:")?;
            }
            '|' => {
                self.take(1);
                self.part(None);
                self.out.push('|');
            }
            ')' => self.close()?,
            '^' | '$' | '.' => {
                let text = self.take(1);
                self.out.push_str(text);
                self.part(Some(Repeats::default()));
            }
            '[' => {
                self.rest = class::class(self.rest, &mut self.out)?;
                self.part(Some(Repeats::default()));
            }
            '*' | '+' | '?' => {
                let before = self.rest;
                self.take(1);
                self.repeat(before, None, last)?;
            }
            '{' => match counts(self.rest) {
                None => self.literal('{', 1),
                Some((least, most, length)) => {
                    let before = self.rest;
                    self.take(length);
                    if !(0..=MAX_COUNT).contains(&least) || most > MAX_COUNT || (most >= 0 && least > most) {
                        return Err(told("invalid repeat count", &before[..length]));
                    }
                    self.repeat(before, Some((least, most)), last)?;
                }
            },
            '\\' => self.escape()?,
            other => self.literal(other, other.len_utf8()),
        }
        Ok(())
    }

    /// Removes and returns a part of the rest.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn part(&mut self, part: Option<Repeats>) {
        if let Some(group) = self.groups.last_mut() {
            group.push(part);
        }
    }

    fn literal(&mut self, c: char, length: usize) {
        self.take(length);
        class::write_char(&mut self.out, c);
        self.part(Some(Repeats::default()));
    }

    fn open(&mut self, start: &str) -> Result<(), String> {
        if self.groups.len() >= MAX_NESTING {
            return Err(told("expression nests too deeply", self.whole));
        }
        self.out.push_str(start);
        self.groups.push(Vec::new());
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.groups.len() == 1 {
            return Err(told("unexpected )", self.whole));
        }
        self.take(1);
        self.out.push(')');
        let inner = self.groups.pop().unwrap_or_default().into_iter().flatten();
        // Only counts matter.
        let inner = inner.filter(|part| part.count.is_some() || !part.inner.is_empty()).collect();
        self.part(Some(Repeats { count: None, inner }));
        Ok(())
    }

    /// Translates a repetition, of which the sign or the count is read already.
    fn repeat(&mut self, before: &'a str, count: Option<(i64, i64)>, last: Option<&'a str>) -> Result<(), String> {
        if self.rest.starts_with('?') {
            self.take(1);
        }
        let sign = &before[..before.len() - self.rest.len()];
        if let Some(last) = last {
            return Err(told("invalid nested repetition operator", &last[..last.len() - self.rest.len()]));
        }
        let Some(Some(part)) = self.groups.last_mut().and_then(|group| group.last_mut()) else {
            return Err(told("missing argument to repetition operator", sign));
        };
        if let Some((least, most)) = count {
            let inner = std::mem::take(part);
            *part = Repeats { count: Some((least, most)), inner: vec![inner] };
            if (least >= 2 || most >= 2) && !part.fit(MAX_COUNT) {
                return Err(told("invalid repeat count", sign));
            }
        }
        self.out.push_str(sign);
        self.last = Some(before);
        Ok(())
    }

    /// Translates a group with a name or with flags, or a change of flags.
    fn flags(&mut self) -> Result<(), String> {
        let start = self.rest;
        let named = if start.len() > 4 && start.starts_with("(?P<") {
            Some(4)
        } else if start.len() > 3 && start.starts_with("(?<") {
            Some(3)
        } else {
            None
        };
        if let Some(at) = named {
            let end = start.find('>').ok_or_else(|| told("invalid named capture", start))?;
            let name = &start[at..end.max(at)];
            if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                return Err(told("invalid named capture", &start[..=end]));
            }
            self.take(end + 1);
            return self.open("(?:");
        }
        self.take(2);
        let (mut on, mut off, mut is_negative, mut has_flag) = (String::new(), String::new(), false, false);
        while let Some(c) = self.rest.chars().next() {
            self.take(c.len_utf8());
            match c {
                'i' | 'm' | 's' | 'U' => {
                    has_flag = true;
                    on.retain(|flag| flag != c);
                    off.retain(|flag| flag != c);
                    if is_negative { off.push(c) } else { on.push(c) }
                }
                '-' if !is_negative => (is_negative, has_flag) = (true, false),
                ':' | ')' if !is_negative || has_flag => {
                    let minus = if off.is_empty() { "" } else { "-" };
                    return match c {
                        ':' => self.open(&format!("(?{on}{minus}{off}:")),
                        // The syntax of `regex` has no empty change.
                        _ if on.is_empty() && off.is_empty() => Ok(()),
                        _ => write!(self.out, "(?{on}{minus}{off})").map_err(|error| error.to_string()),
                    };
                }
                _ => break,
            }
        }
        Err(told("invalid or unsupported Perl syntax", &start[..start.len() - self.rest.len()]))
    }

    fn escape(&mut self) -> Result<(), String> {
        let assertion = match self.rest.as_bytes().get(1) {
            Some(b'A') => r"\A",
            Some(b'z') => r"\z",
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"(?-u:\B)",
            Some(b'C') => return Err(told("invalid escape sequence", r"\C")),
            Some(b'Q') => {
                self.take(2);
                let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                for c in quoted.chars() {
                    self.literal(c, c.len_utf8());
                }
                self.rest = rest;
                return Ok(());
            }
            _ => {
                self.rest = match class::named(self.rest, &mut self.out, false)? {
                    Some(rest) => rest,
                    None => {
                        let (c, rest) = class::escaped(self.rest)?;
                        class::write_rune(&mut self.out, c);
                        rest
                    }
                };
                self.part(Some(Repeats::default()));
                return Ok(());
            }
        };
        self.take(2);
        self.out.push_str(assertion);
        self.part(Some(Repeats::default()));
        Ok(())
    }
}

/// Reads `{2}`, `{2,}` or `{2,3}`. Returns the least and the most number, or -1 for none, and the length. The least number is -1 if
/// one of them is too large.
fn counts(text: &str) -> Option<(i64, i64, usize)> {
    let inside = text.strip_prefix('{')?.split_once('}')?.0;
    let number = |digits: &str| -> Option<i64> {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_padded = digits.len() > 1 && digits.starts_with('0');
        // Larger numbers are refused, whatever they are.
        (is_number && !is_padded).then(|| digits.parse().unwrap_or(i64::MAX))
    };
    let (least, most) = match inside.split_once(',') {
        None => (number(inside)?, number(inside)?),
        Some((least, "")) => (number(least)?, -1),
        Some((least, most)) => (number(least)?, number(most)?),
    };
    Some((least, most, inside.len() + 2))
}

/// The largest count of a repetition, and the largest product of nested ones.
const MAX_COUNT: i64 = 1000;
/// The number of nested groups, the expression itself included.
const MAX_NESTING: usize = 1000;
