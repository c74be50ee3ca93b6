//! What the sample controller has to do, by the numbers of `sample-controller.md`: on the embedded server, and on the real one where it
//! was built (`cargo xtask e2e`).

#![allow(clippy::unwrap_used, clippy::disallowed_names)]

mod actions;
mod criteria;
mod program;
mod timing;
mod world;
