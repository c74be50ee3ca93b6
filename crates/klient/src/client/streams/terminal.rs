//! The size of a terminal.

use serde::Serialize;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "PascalCase")]
// Exhaustive on purpose: the protocol has these two.
pub struct TerminalSize {
    /// The number of columns.
    pub width: u16,
    /// The number of rows.
    pub height: u16,
}

impl TerminalSize {
    /// Returns the size of this process's terminal, or `None` if its output is no terminal.
    #[cfg(unix)]
    pub fn of_terminal() -> Option<Self> {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then_some(Self { width: size.ws_col, height: size.ws_row })
    }
}
