//! Regular expressions in schemas of custom kinds: Go's syntax, with Go's errors, matched by the `regex` crate.
//!
//! The syntaxes differ: `\d`, `\w`, `\s` and `\b` are ASCII in Go, brackets do not nest there, and repetitions have limits. [`translate`] reads
//! Go's syntax and writes that of `regex`.

mod class;
mod translate;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use regex::bytes::{Regex, RegexBuilder};

/// Returns Go's error about an expression that it does not compile.
pub(super) fn problem(pattern: &str) -> Option<String> {
    translate::translate(pattern).err()
}

/// Returns whether an expression matches a part of a text. An expression that does not compile matches everything, because no definition
/// has one.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    compiled(pattern).is_none_or(|regex| regex.is_match(text.as_bytes()))
}

/// Compiles an expression, or returns it as it was compiled before.
fn compiled(pattern: &str) -> Option<Arc<Regex>> {
    static COMPILED: OnceLock<Mutex<HashMap<String, Option<Arc<Regex>>>>> = OnceLock::new();
    let cache = COMPILED.get_or_init(Mutex::default);
    if let Some(known) = cache.lock().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return known.clone();
    }
    // Bytes, because an ASCII `\B` can match inside of a character.
    let regex = translate::translate(pattern)
        .ok()
        .and_then(|pattern| RegexBuilder::new(&pattern).nest_limit(NEST_LIMIT).build().ok())
        .map(Arc::new);
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= MAX_COMPILED {
        cache.clear();
    }
    cache.insert(pattern.to_owned(), regex.clone());
    regex
}

/// The number of expressions that stay compiled.
const MAX_COMPILED: usize = 256;
/// More than the nesting that Go allows, whose groups are two levels here.
const NEST_LIMIT: u32 = 3000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_go() {
        for (pattern, text, expected) in [
            (r"^\d$", "5", true),
            (r"^\d$", "\u{665}", false),
            (r"^\w+$", "é", false),
            (r"^\s$", "\u{a0}", false),
            (r"^[\w-]+$", "a-b", true),
            (r"^[[a]+$", "[a", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[^\D]$", "7", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:alpha:]_]+$", "a_b", true),
            (r"^\p{L}+$", "é", true),
            (r"^\p{L}+$", "1", false),
            (r"^\p{^Greek}$", "a", true),
            (r"^\PN$", "1", false),
            (r"\bé", "aé", true),
            (r"^a\B", "ab", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn literals_are_those_of_go() {
        for (pattern, text, expected) in [
            (r"^a{,5}$", "a{,5}", true),
            (r"^a{b}$", "a{b}", true),
            (r"^x{$", "x{", true),
            (r"^\Qa.b\E.$", "a.bc", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\x41\x{42}\103\a$", "ABC\u{7}", true),
            (r"^#~-&$", "#~-&", true),
            (r"(?i)^ab(?-i)c$", "ABc", true),
            (r"(?i)^ab(?-i)c$", "ABC", false),
            (r"(?P<n>a)(?<m>b)", "ab", true),
            (r"^(?:a|b){2,3}?$", "abb", true),
            (r"^\x{D800}$", "a", false),
            (r"a$", "a\n", false),
            (r"(?m)a$", "a\n", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
        }
    }

    #[test]
    fn errors_are_those_of_go() {
        let deep = "(".repeat(1000) + &")".repeat(1000);
        for (pattern, expected) in [
            ("[", "missing closing ]: `[`"),
            ("a[b-", "missing closing ]: `[b-`"),
            ("(", "missing closing ): `(`"),
            ("a)b", "unexpected ): `a)b`"),
            ("^(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
            ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|+?", "missing argument to repetition operator: `+?`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(a{100}){100}", "invalid repeat count: `{100}`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\Z", r"invalid escape sequence: `\Z`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("[z-a]", "invalid character class range: `z-a`"),
            (r"[a-\d]", r"invalid escape sequence: `\d`"),
            ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
            (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            (&deep, &format!("expression nests too deeply: `{deep}`")),
        ] {
            assert_eq!(problem(pattern), Some(format!("error parsing regexp: {expected}")), "{pattern}");
        }
        assert_eq!(problem("(a{10}){100}"), None);
    }
}
