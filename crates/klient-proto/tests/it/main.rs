//! Behaviour tests of the wire forms, through the public API.

#![allow(clippy::unwrap_used)]

mod corpus;
mod kinds;
