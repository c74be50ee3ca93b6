//! Quoting of texts inside messages, exactly as Go's `%q` does: clients compare messages as a whole.

use std::fmt::{self, Write};

/// Prints a text in double quotes.
pub(super) struct Quoted<'a>(pub(super) &'a str);

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

/// As far as the standard library can tell: its Unicode tables may be of another version than Go's.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_graphic() || c == ' ';
    }
    // Behind another character, since a combining mark is escaped only where it has nothing to combine with.
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
