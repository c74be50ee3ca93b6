//! The criteria of the sample controller, by their numbers in `sample-controller.md`: on the embedded server, and on the real server if it
//! was built (`cargo xtask e2e`).

#![allow(clippy::unwrap_used, clippy::disallowed_names)]

mod actions;
mod criteria;
mod program;
mod timing;
mod world;
