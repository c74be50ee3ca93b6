//! The `klient` command, run as users run it.

#![allow(clippy::unwrap_used)]

mod demo;
mod inside;
mod looking;
mod pods;
mod program;
mod replay;
mod serve;
