//! Behaviour tests of the wire forms, through the public API.

mod corpus;
mod kinds;
mod paths;
mod raw;
mod support;
mod transcode;
