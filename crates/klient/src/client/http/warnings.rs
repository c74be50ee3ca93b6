//! The server's warnings: deprecated kinds, unknown fields and the like.
//!
//! A repeated warning is reported once. Otherwise, a loop that writes a deprecated object every second would fill the
//! log.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, header::WARNING};

/// A warning of the server.
#[doc(alias = "WarningHeader")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Warning {
    /// The code, which is 299 in all warnings of Kubernetes.
    pub code: u16,
    /// The agent that added the warning; `-` if unknown.
    pub agent: String,
    /// The text.
    pub text: String,
}

/// A handler of the server's warnings.
///
/// Any function that takes a [`Warning`] implements it.
pub trait WarningHandler: Send + Sync + 'static {
    /// Handles one warning. It is called by the task that sent the request and should return quickly.
    fn warn(&self, warning: &Warning);
}

impl<F: Fn(&Warning) + Send + Sync + 'static> WarningHandler for F {
    fn warn(&self, warning: &Warning) {
        self(warning);
    }
}

/// A handler that logs warnings. It is the default.
#[doc(alias = "WarningLogger")]
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LogWarnings;

impl WarningHandler for LogWarnings {
    fn warn(&self, warning: &Warning) {
        tracing::warn!(code = warning.code, agent = warning.agent, text = warning.text, "server sent warning");
    }
}

/// A filter that passes each warning to a handler once.
pub(in crate::client) struct Warnings {
    handler: Box<dyn WarningHandler>,
    reported: Mutex<HashSet<Warning>>,
}

impl Warnings {
    pub(in crate::client) fn new(handler: impl WarningHandler) -> Self {
        Self { handler: Box::new(handler), reported: Mutex::default() }
    }

    /// Handles the warnings in the headers of a response.
    pub(in crate::client) fn report(&self, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            for warning in parse(value.as_bytes()) {
                let fresh = {
                    let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
                    if reported.len() >= MAX_REPORTED {
                        // Texts with object names could use unlimited memory; repeating some warnings is acceptable.
                        reported.clear();
                    }
                    reported.insert(warning.clone())
                };
                if fresh {
                    self.handler.warn(&warning);
                }
            }
        }
    }
}

/// Parses the warnings of one header, `299 - "text"` with an optional date. Stops at the first invalid one.
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
    // The date is skipped.
    let rest = quoted(rest.trim_start()).map_or(rest, |(_, after)| after);
    Some((Warning { code, agent: agent.to_owned(), text }, rest))
}

/// Splits off a quoted string, with its backslashes resolved and without control characters.
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

/// More than a server sends in practice.
const MAX_REPORTED: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn texts(header: &str) -> Vec<String> {
        parse(header.as_bytes()).into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn all_warnings_of_a_header_are_parsed() {
        assert_eq!(texts(r#"299 - "v1 ComponentStatus is deprecated""#), ["v1 ComponentStatus is deprecated"]);
        assert_eq!(texts(r#"299 - "a \"b\" \\ c", 299 host:80 "d""#), [r#"a "b" \ c"#, "d"]);
        assert_eq!(texts(r#"299 - "dated" "Wed, 21 Oct 2026 07:28:00 GMT", 299 - "next""#), ["dated", "next"]);
        let warning = &parse(br#"299 kube "x""#)[0];
        assert_eq!((warning.code, warning.agent.as_str()), (299, "kube"));
    }

    #[test]
    fn valid_part_of_a_malformed_header_is_parsed() {
        for header in ["", "299", "299 -", "299 - text", r#"299 - "open"#, r#"29 - "x""#, r#"2999 - "x""#, "\u{fffd}"] {
            assert!(parse(header.as_bytes()).is_empty(), "{header:?}");
        }
        assert_eq!(texts(r#"299 - "good" nonsense"#), ["good"]);
        assert_eq!(texts("299 - \"no \u{7}bell\""), ["no bell"]);
    }

    #[test]
    fn repeated_warning_is_reported_once() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&reported);
        let warnings = Warnings::new(move |warning: &Warning| seen.lock().unwrap().push(warning.text.clone()));
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "one", 299 - "two""#.parse().unwrap());
        headers.append(WARNING, r#"299 - "three""#.parse().unwrap());
        warnings.report(&headers);
        warnings.report(&headers);
        assert_eq!(*reported.lock().unwrap(), ["one", "two", "three"]);
    }

    #[test]
    fn number_of_stored_warnings_is_bounded() {
        let warnings = Warnings::new(|_: &Warning| ());
        for number in 0..3 * MAX_REPORTED {
            let mut headers = HeaderMap::new();
            headers.append(WARNING, format!("299 - \"{number}\"").parse().unwrap());
            warnings.report(&headers);
        }
        assert!(warnings.reported.lock().unwrap().len() <= MAX_REPORTED);
    }
}
