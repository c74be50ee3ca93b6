//! Quoting of texts in messages, exactly as Go's `%q`, because clients compare whole messages.

use std::fmt::{self, Write};

/// A text that prints in double quotes, as Go's `%q` prints it.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\x07' => f.write_str("\\a")?,
                '\x08' => f.write_str("\\b")?,
                '\x0c' => f.write_str("\\f")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\x0b' => f.write_str("\\v")?,
                c if c < ' ' || c == '\x7f' => write!(f, "\\x{:02x}", u32::from(c))?,
                c if is_printable(c) => f.write_char(c)?,
                c if u32::from(c) < 0x1_0000 => write!(f, "\\u{:04x}", u32::from(c))?,
                c => write!(f, "\\U{:08x}", u32::from(c))?,
            }
        }
        f.write_char('"')
    }
}

/// Returns whether a character is printable, by the Unicode tables of the standard library, which may differ from Go's.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_graphic() || c == ' ';
    }
    // Placed after another character, because a combining mark is escaped only at the start.
    !c.is_whitespace() && !String::from_iter(['a', c]).escape_debug().any(|c| c == '{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        for (text, quoted) in [
            ("web", r#""web""#),
            ("it's \"so\"", r#""it's \"so\"""#),
            ("a\\b\n\t\x00\x7f", r#""a\\b\n\t\x00\x7f""#),
            ("é日{}\u{301}😀\u{fffd}", "\"é日{}\u{301}😀\u{fffd}\""),
            ("\u{85}\u{200b}\u{a0}", r#""\u0085\u200b\u00a0""#),
        ] {
            assert_eq!(Quoted(text).to_string(), quoted);
        }
    }
}
