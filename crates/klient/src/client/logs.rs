//! Logs by lines: of one container through reconnects and restarts, and of all pods that a selector matches, merged.

mod line;
mod lines;
mod place;
mod selected;

pub use self::{line::LogLine, lines::LogLines, selected::SelectedLogs};
