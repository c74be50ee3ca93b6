//! The demo's own lines: steps, their outcomes and the summary, in columns that stay aligned with those of `stages`.

use std::{
    fmt,
    io::{self, Write as _},
    time::Duration,
};

use crate::output::{Paint, Palette};

/// A printer of the demo's lines on standard output.
#[derive(Clone, Copy)]
pub(super) struct Story {
    palette: Palette,
}

impl Story {
    /// Returns a printer.
    pub(super) fn new(palette: Palette) -> Self {
        Self { palette }
    }

    /// Prints a title with an empty line before it.
    pub(super) fn title(self, title: &str) -> io::Result<()> {
        self.line(format_args!("\n{}", self.palette.paint(Paint::Bold, title)))
    }

    /// Prints what a step does.
    pub(super) fn action(self, text: impl fmt::Display) -> io::Result<()> {
        self.line(format_args!("  {text}"))
    }

    /// Prints an expected outcome, and how long it took.
    pub(super) fn outcome(self, text: impl fmt::Display, took: Duration) -> io::Result<()> {
        let ok = self.palette.paint(Paint::Green, "ok");
        let took = self.palette.paint(Paint::Dim, format_args!("{:>6.0} ms", took.as_secs_f64() * 1000.0));
        self.line(format_args!("  {ok}  {text:<56}{took}"))
    }

    /// Prints a name and its value in two columns.
    pub(super) fn row(self, name: &str, value: impl fmt::Display) -> io::Result<()> {
        let name = self.palette.paint(Paint::Cyan, format_args!("{name:<13}"));
        self.line(format_args!("  {name}{value}"))
    }

    /// Prints a line in one write, so that lines of other threads do not mix with it.
    pub(super) fn line(self, text: impl fmt::Display) -> io::Result<()> {
        io::stdout().write_all(format!("{text}\n").as_bytes())
    }
}
