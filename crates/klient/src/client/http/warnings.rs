//! What a server warns about: deprecated kinds, unknown fields and the like.
//!
//! A warning is told once, however often it comes: a loop that writes a deprecated object each second would otherwise
//! fill the log.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, header::WARNING};

/// A warning of the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Warning {
    /// 299 in all that Kubernetes sends.
    pub code: u16,
    /// Who warns; `-` if unknown.
    pub agent: String,
    /// What it is about.
    pub text: String,
}

/// Takes the warnings of a server.
///
/// Any function of a [`Warning`] is one.
pub trait WarningHandler: Send + Sync + 'static {
    /// Takes one warning. Called from the task that sent the request: should not take long.
    fn warn(&self, warning: &Warning);
}

impl<F: Fn(&Warning) + Send + Sync + 'static> WarningHandler for F {
    fn warn(&self, warning: &Warning) {
        self(warning);
    }
}

/// Logs warnings: what clients do that are told nothing else.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LogWarnings;

impl WarningHandler for LogWarnings {
    fn warn(&self, warning: &Warning) {
        tracing::warn!(code = warning.code, agent = warning.agent, "the server warns: {}", warning.text);
    }
}

/// Gives each warning to a handler once.
pub(in crate::client) struct Warnings {
    handler: Box<dyn WarningHandler>,
    told: Mutex<HashSet<Warning>>,
}

impl Warnings {
    pub(in crate::client) fn new(handler: impl WarningHandler) -> Self {
        Self { handler: Box::new(handler), told: Mutex::default() }
    }

    /// Tells what the headers of an answer warn about.
    pub(in crate::client) fn tell(&self, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            for warning in parse(value.as_bytes()) {
                let fresh = {
                    let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                    if told.len() >= MAX_TOLD {
                        // Texts that name objects could fill the memory; to tell some again is the lesser evil.
                        told.clear();
                    }
                    told.insert(warning.clone())
                };
                if fresh {
                    self.handler.warn(&warning);
                }
            }
        }
    }
}

/// The warnings of one header: `299 - "text"`, with or without a date, one after another. Ends at what is none.
fn parse(value: &[u8]) -> Vec<Warning> {
    let text = String::from_utf8_lossy(value);
    let mut rest = text.trim_start();
    let mut warnings = Vec::new();
    while let Some((warning, after)) = parse_one(rest) {
        warnings.push(warning);
        rest = after.trim_start_matches([' ', '\t', ',']);
    }
    warnings
}

fn parse_one(text: &str) -> Option<(Warning, &str)> {
    let (code, rest) = text.split_once(' ')?;
    let code = code.parse().ok().filter(|_| code.len() == 3)?;
    let (agent, rest) = rest.split_once(' ')?;
    let (text, rest) = quoted(rest)?;
    // The date, which says nothing that the answer's own does not.
    let rest = quoted(rest.trim_start()).map_or(rest, |(_, after)| after);
    Some((Warning { code, agent: agent.to_owned(), text }, rest))
}

/// A text in quotes at the start, with its backslashes resolved and without control characters; and what is after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut chars = text.strip_prefix('"')?.char_indices();
    let mut out = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 2..])),
            '\\' => out.extend(chars.next().map(|(_, c)| c)),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    None
}

/// More than a healthy server ever has.
const MAX_TOLD: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn texts(header: &str) -> Vec<String> {
        parse(header.as_bytes()).into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn reads_all_warnings_of_a_header() {
        assert_eq!(texts(r#"299 - "v1 ComponentStatus is deprecated""#), ["v1 ComponentStatus is deprecated"]);
        assert_eq!(texts(r#"299 - "a \"b\" \\ c", 299 host:80 "d""#), [r#"a "b" \ c"#, "d"]);
        assert_eq!(texts(r#"299 - "dated" "Wed, 21 Oct 2026 07:28:00 GMT", 299 - "next""#), ["dated", "next"]);
        let warning = &parse(br#"299 kube "x""#)[0];
        assert_eq!((warning.code, warning.agent.as_str()), (299, "kube"));
    }

    #[test]
    fn takes_what_it_can_of_a_malformed_header() {
        for header in ["", "299", "299 -", "299 - text", r#"299 - "open"#, r#"29 - "x""#, r#"2999 - "x""#, "\u{fffd}"] {
            assert!(parse(header.as_bytes()).is_empty(), "{header:?}");
        }
        assert_eq!(texts(r#"299 - "good" nonsense"#), ["good"]);
        assert_eq!(texts("299 - \"no \u{7}bell\""), ["no bell"]);
    }

    #[test]
    fn tells_each_warning_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&told);
        let warnings = Warnings::new(move |warning: &Warning| seen.lock().unwrap().push(warning.text.clone()));
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "one", 299 - "two""#.parse().unwrap());
        headers.append(WARNING, r#"299 - "three""#.parse().unwrap());
        warnings.tell(&headers);
        warnings.tell(&headers);
        assert_eq!(*told.lock().unwrap(), ["one", "two", "three"]);
    }

    #[test]
    fn remembers_no_more_than_a_bounded_number() {
        let warnings = Warnings::new(|_: &Warning| ());
        for number in 0..3 * MAX_TOLD {
            let mut headers = HeaderMap::new();
            headers.append(WARNING, format!("299 - \"{number}\"").parse().unwrap());
            warnings.tell(&headers);
        }
        assert!(warnings.told.lock().unwrap().len() <= MAX_TOLD);
    }
}
