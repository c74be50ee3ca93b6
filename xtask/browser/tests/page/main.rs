//! The debug page in a real browser: why a key is not reconciled, one test per reason.
//!
//! The tests drive headless Chromium (Debian's packages `chromium` and `chromium-driver`) by WebDriver, and are skipped with a message
//! where it is not installed. Keys are opened by keyboard, and what is checked is the text that a person reads.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod access;
mod browser;
mod real;
mod reasons;
mod sample;
mod scale;
mod world;
