//! Characters and classes of characters in Go's regular expressions.

use std::fmt::Write as _;

use super::translate::told;

/// Writes a character that stands for itself.
pub(super) fn write_char(out: &mut String, c: char) {
    if c.is_ascii_punctuation() && c != '<' && c != '>' {
        out.push('\\');
    }
    out.push(c);
}

/// Writes a code point. No text has surrogates, so that they match nothing.
pub(super) fn write_rune(out: &mut String, rune: u32) {
    match char::from_u32(rune) {
        Some(c) => write_char(out, c),
        None => out.push_str(NOTHING),
    }
}

/// Translates a class in brackets, and returns what follows it.
pub(super) fn class<'a>(start: &'a str, out: &mut String) -> Result<&'a str, String> {
    let mut rest = &start[1..];
    out.push('[');
    if let Some(negated) = rest.strip_prefix('^') {
        out.push('^');
        rest = negated;
    }
    let mut is_first = true;
    while is_first || !rest.starts_with(']') {
        is_first = false;
        if let Some(after) = posix(rest, out)? {
            rest = after;
        } else if let Some(after) = named(rest, out, true)? {
            rest = after;
        } else {
            let range = rest;
            let (low, after) = character(rest, start)?;
            rest = after;
            let mut high = low;
            if let Some(after) = rest.strip_prefix('-').filter(|after| !after.is_empty() && !after.starts_with(']')) {
                (high, rest) = character(after, start)?;
                if high < low {
                    return Err(told("invalid character class range", &range[..range.len() - rest.len()]));
                }
            }
            write_range(out, low, high);
        }
    }
    out.push(']');
    Ok(&rest[1..])
}

/// Writes a range of code points without surrogates.
fn write_range(out: &mut String, low: u32, high: u32) {
    let (low, high) = match (low, high) {
        (0xD800..=0xDFFF, 0xD800..=0xDFFF) => return out.push_str(NOTHING),
        (0xD800..=0xDFFF, high) => (0xE000, high),
        (low, 0xD800..=0xDFFF) => (low, 0xD7FF),
        range => range,
    };
    let _ = write!(out, "\\x{{{low:X}}}-\\x{{{high:X}}}");
}

/// Reads a character in a class.
fn character<'a>(text: &'a str, class: &str) -> Result<(u32, &'a str), String> {
    let Some(c) = text.chars().next() else { return Err(told("missing closing ]", class)) };
    if c == '\\' { escaped(text) } else { Ok((u32::from(c), &text[c.len_utf8()..])) }
}

/// Translates `[:alpha:]` and the like, if a text starts with it.
fn posix<'a>(text: &'a str, out: &mut String) -> Result<Option<&'a str>, String> {
    let Some(inside) = text.strip_prefix("[:").and_then(|rest| rest.find(":]")) else { return Ok(None) };
    let (whole, rest) = text.split_at(inside + 4);
    let name = text[2..inside + 2].trim_start_matches('^');
    if !POSIX.contains(&name) || whole.starts_with("[:^^") {
        return Err(told("invalid character class range", whole));
    }
    out.push_str(whole);
    Ok(Some(rest))
}

/// Translates `\d` or `\p{Greek}` and the like, if a text starts with it.
pub(super) fn named<'a>(text: &'a str, out: &mut String, is_in_class: bool) -> Result<Option<&'a str>, String> {
    let perl = match text.as_bytes() {
        [b'\\', b'd', ..] => "0-9",
        [b'\\', b'D', ..] => "^0-9",
        [b'\\', b's', ..] => r"\t\n\x0C\r ",
        [b'\\', b'S', ..] => r"^\t\n\x0C\r ",
        [b'\\', b'w', ..] => "0-9A-Za-z_",
        [b'\\', b'W', ..] => "^0-9A-Za-z_",
        [b'\\', b'p' | b'P', ..] => return unicode(text, out).map(Some),
        _ => return Ok(None),
    };
    match is_in_class && !perl.starts_with('^') {
        true => out.push_str(perl),
        false => {
            let _ = write!(out, "[{perl}]");
        }
    }
    Ok(Some(&text[2..]))
}

/// Translates a category or script of Unicode.
fn unicode<'a>(text: &'a str, out: &mut String) -> Result<&'a str, String> {
    let wrong = |part: &str| told("invalid character class range", part);
    let mut is_negated = text.starts_with(r"\P");
    let (whole, name) = if text[2..].starts_with('{') {
        let end = text.find('}').ok_or_else(|| wrong(text))?;
        (&text[..=end], &text[3..end])
    } else {
        let length = text[2..].chars().next().map_or(0, char::len_utf8);
        (&text[..2 + length], &text[2..2 + length])
    };
    let name = name.strip_prefix('^').map_or(name, |name| {
        is_negated = !is_negated;
        name
    });
    let letter = if is_negated { 'P' } else { 'p' };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' '));
    // The syntax of `regex` has other properties, too, unless it is told which one is meant.
    let known = ["gc", "sc"]
        .iter()
        .map(|property| format!("\\{letter}{{{property}={name}}}"))
        .find(|class| is_name && regex::bytes::Regex::new(class).is_ok());
    out.push_str(&known.ok_or_else(|| wrong(whole))?);
    Ok(&text[whole.len()..])
}

/// Reads an escape that stands for one code point.
pub(super) fn escaped(text: &str) -> Result<(u32, &str), String> {
    let mut rest = text[1..].chars();
    let Some(first) = rest.next() else { return Err(told("trailing backslash at end of expression", "")) };
    let digit = |c: Option<char>, radix: u32| c.and_then(|c| c.to_digit(radix));
    let is_octal = first == '0' || digit(Some(first), 8).is_some() && digit(rest.clone().next(), 8).is_some();
    let found = match first {
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        c if is_octal => {
            let mut value = digit(Some(c), 8).unwrap_or_default();
            for _ in 0..2 {
                let Some(next) = digit(rest.clone().next(), 8) else { break };
                value = value * 8 + next;
                rest.next();
            }
            Some(value)
        }
        'x' => hexadecimal(&mut rest),
        _ => None,
    };
    let rest = rest.as_str();
    found.map(|found| (found, rest)).ok_or_else(|| told("invalid escape sequence", &text[..text.len() - rest.len()]))
}

/// Reads the digits after `\x`. On an error, the first wrong character is read, too.
fn hexadecimal(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = rest.next()?;
    if first != '{' {
        // Both are read before either is checked.
        let second = rest.next();
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut value = 0;
    for count in 0.. {
        match rest.next()? {
            '}' => return (count > 0).then_some(value),
            digit => value = value * 16 + digit.to_digit(16)?,
        }
        if value > u32::from(char::MAX) {
            return None;
        }
    }
    None
}

/// A class without characters.
const NOTHING: &str = "[a&&b]";
/// The names of POSIX classes.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];
