//! Terminal output: aligned columns, colours and errors.

use std::{
    error::Error,
    fmt,
    io::{self, IsTerminal as _, Write},
    time::Duration,
};

/// Whether output is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    is_on: bool,
}

/// A colour or weight of text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Palette {
    /// Returns the palette for standard output: no colours if it is not a terminal, or if `NO_COLOR` is set.
    pub(crate) fn of_stdout() -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_on: io::stdout().is_terminal() && !is_refused }
    }

    /// Returns a text with the escape sequences of a colour, or as it is if colours are off.
    ///
    /// The text has to be padded before it is painted, because escape sequences count as characters.
    pub(crate) fn paint(self, paint: Paint, text: impl fmt::Display) -> String {
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Red => "31",
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Cyan => "36",
        };
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Writes rows in columns that are as wide as their widest cell.
pub(crate) fn columns(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 3 - cell.chars().count()));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes an error and its causes to standard error.
pub(crate) fn print_error(error: &dyn Error) {
    let mut text = format!("error: {error}");
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    print_note(&text);
}

/// Writes a line to standard error.
pub(crate) fn print_note(text: &str) {
    // A closed standard error leaves no way to report anything.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a line.
pub(crate) fn line(text: impl fmt::Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Parses a duration: a number with `s`, `m` or `h`, or several of them.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration: use 30s, 5m or 2h");
    let (mut total, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..end].parse().map_err(|_| wrong())?;
        let seconds = match rest.as_bytes()[end] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            _ => return Err(wrong()),
        };
        total = number.checked_mul(seconds).and_then(|more| total.checked_add(more)).ok_or_else(wrong)?;
        rest = &rest[end + 1..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_secs(total)) }
}

/// A terminal that passes every key on, until this is dropped.
pub(crate) struct RawTerminal {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

impl RawTerminal {
    /// Changes the terminal of the input, if it is one.
    #[cfg(unix)]
    pub(crate) fn enter() -> Option<Self> {
        use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }

    /// Other platforms keep their terminals as they are.
    #[cfg(not(unix))]
    pub(crate) fn enter() -> Option<Self> {
        None
    }
}

#[cfg(unix)]
impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("1h2m3s"), Ok(Duration::from_secs(3723)));
        for wrong in ["", "5", "5d", "s", "99999999999999999999s", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let mut out = Vec::new();
        columns(&mut out, &[row(&["NAME", "AGE"]), row(&["größe", ""]), row(&["a", "5d"])]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME    AGE\ngröße\na       5d\n");
    }

    #[test]
    fn palette_paints_only_if_colours_are_on() {
        assert_eq!(Palette { is_on: true }.paint(Paint::Green, "ok"), "\x1b[32mok\x1b[0m");
        assert_eq!(Palette { is_on: false }.paint(Paint::Green, "ok"), "ok");
    }
}
