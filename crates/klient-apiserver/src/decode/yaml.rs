//! YAML with duplicate keys: each is reported with its line, and the last value wins. Errors are those of Go's parser.

use std::cell::RefCell;

use klient_core::Quoted;
use serde::de::DeserializeSeed as _;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::value::{Observer, Seed};

/// Parses the first document of YAML. Returns the value, and the messages of Go's parser about duplicate keys.
pub(crate) fn parse(text: &str) -> Result<(Value, Vec<String>), String> {
    let text = first_document(text);
    let duplicates = Duplicates::default();
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins, with_snippet: false };
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Seed::new(&duplicates).deserialize(deserializer)
    });
    let first = content(text).next();
    match value {
        // A document cannot begin with a tab.
        Ok(_) if first.is_some_and(|(_, line)| line.starts_with('\t')) => Err(format!("yaml: {CANNOT_START}")),
        Ok(value) => Ok((value, duplicates.messages.into_inner())),
        Err(error) => Err(problem(&error, text)),
    }
}

/// Returns the lines that are neither empty nor comments or directives, with the places where they begin.
fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line.trim_end()))
    });
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', '%']))
}

/// Returns the text up to the end of the first document. Go's parser does not look at others.
fn first_document(text: &str) -> &str {
    let is_marker = |line: &str| {
        let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let end = content(text).skip(1).find(|(_, line)| is_marker(line));
    end.map_or(text, |(end, _)| &text[..end])
}

/// Returns the error of Go's parser for an error of this one. Both follow libyaml, but name other lines.
fn problem(error: &serde_saphyr::Error, text: &str) -> String {
    let message = error.to_string();
    let message = message.lines().next().unwrap_or_default();
    let message = message.split_once(" at line ").map_or(message, |(message, _)| message);
    let (line, column) = error.location().map_or((0, 1), |at| (at.line(), at.column()));
    // Lines are counted from zero there, and zero is not shown. The scanner adds one, the parser does not.
    let lines = u64::try_from(text.matches('\n').count()).unwrap_or(u64::MAX);
    let scanner = |line: u64| if line > 1 { line } else { 0 };
    let (line, what) = if let Some(found) = message.strip_prefix("unexpected character: `") {
        match found.starts_with(char::is_control) || found.starts_with("\\u{") {
            true => (0, "control characters are not allowed".to_owned()),
            false => (scanner(line), CANNOT_START.to_owned()),
        }
    } else if message.starts_with("tabs disallowed") {
        (scanner(line), CANNOT_START.to_owned())
    } else if let Some(bracket) = message.strip_prefix("unclosed bracket '") {
        let missing = if bracket.starts_with('[') { ']' } else { '}' };
        let what = match text.trim_end().ends_with(['[', '{', ',', ':']) {
            true => "did not find expected node content".to_owned(),
            false => format!("did not find expected ',' or '{missing}'"),
        };
        (lines, what)
    } else if message.starts_with("invalid indentation in multiline quoted scalar") {
        (scanner(lines + 1), "found unexpected end of stream".to_owned())
    } else if message.starts_with("alias references unknown anchor") {
        let row = text.lines().nth(usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX)).unwrap_or_default();
        let name = row.chars().skip(usize::try_from(column).unwrap_or(usize::MAX));
        let name: String = name.take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        (0, format!("unknown anchor '{name}' referenced"))
    } else if let Some(what) = message.strip_prefix("while parsing a quoted scalar, ") {
        (scanner(line), what.to_owned())
    } else if let Some((_, what)) = message.strip_prefix("while parsing ").and_then(|rest| rest.split_once(", ")) {
        (line.saturating_sub(1), what.to_owned())
    } else {
        (scanner(line), message.to_owned())
    };
    if line == 0 { format!("yaml: {what}") } else { format!("yaml: line {line}: {what}") }
}

const CANNOT_START: &str = "found character that cannot start any token";

/// The messages about duplicate keys, each of which follows those about its value.
#[derive(Default)]
struct Duplicates {
    messages: RefCell<Vec<String>>,
}

impl Observer for Duplicates {
    type Key = Spanned<String>;

    fn name(key: &Spanned<String>) -> &str {
        &key.value
    }

    fn after(&self, key: &Spanned<String>, is_duplicate: bool) {
        if is_duplicate {
            let line = key.defined.line();
            self.messages.borrow_mut().push(format!("line {line}: key {} already set in map", Quoted(&key.value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_are_reported_with_their_lines() {
        let text = "a: 1\nb:\n  c: x\n  c: z\nl:\n- d: 1\n  d: 2\na: 3\n";
        let (value, twice) = parse(text).unwrap();
        assert_eq!(value, json!({"a": 3, "b": {"c": "z"}, "l": [{"d": 2}]}));
        let line = |number: u32, key: &str| format!("line {number}: key {key:?} already set in map");
        assert_eq!(twice, [line(4, "c"), line(7, "d"), line(8, "a")]);
    }

    #[test]
    fn first_document_is_parsed_only() {
        for text in ["a: 1\n---\nb: 2\n", "# c\n---\na: 1\n...\n[\n", "%YAML 1.1\n---\na: 1\n--- x\n", "a: 1\n---"] {
            assert_eq!(parse(text), Ok((json!({"a": 1}), Vec::new())), "{text}");
        }
        let block = "a: |\n  ---\n  x\n";
        assert_eq!(parse(block), Ok((json!({"a": "---\nx\n"}), Vec::new())));
    }

    #[test]
    fn errors_are_those_of_go() {
        for (text, expected) in [
            ("\ta: 1\n", "found character that cannot start any token"),
            ("a:\n\t- b\n", "line 2: found character that cannot start any token"),
            ("a: 1\nb: @x\n", "line 2: found character that cannot start any token"),
            ("a: 1\nb: [1\n", "line 2: did not find expected ',' or ']'"),
            ("a: 1\nb: [[\n", "line 2: did not find expected node content"),
            ("a: 1\nb: {c\n", "line 2: did not find expected ',' or '}'"),
            ("a: 1\nb: \"x\n", "line 3: found unexpected end of stream"),
            ("a: 1\nb: *none\n", "unknown anchor 'none' referenced"),
            ("a: 1\nb: c: d\n", "line 2: mapping values are not allowed in this context"),
            ("a: 1\n b: 2\n", "line 2: mapping values are not allowed in this context"),
            ("d:\n  a: \"1\"\n b: 2\n", "line 2: did not find expected key"),
            ("a: 1\nb: \"\\q\"\n", "line 2: found unknown escape character"),
            ("a: \"\u{1}\"\n", "control characters are not allowed"),
        ] {
            assert_eq!(parse(text).unwrap_err(), format!("yaml: {expected}"), "{text}");
        }
    }

    #[test]
    fn json_is_yaml_too() {
        let (value, twice) = parse("{\"a\": [1, null, true, 1.5],\n \"a\": {}}").unwrap();
        assert_eq!(value, json!({"a": {}}));
        assert_eq!(twice, ["line 2: key \"a\" already set in map"]);
    }
}
