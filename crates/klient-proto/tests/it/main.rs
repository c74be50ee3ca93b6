//! Behaviour tests of the wire forms, through the public API.

mod corpus;
mod gzip;
mod kinds;
mod paths;
mod raw;
mod split;
mod support;
mod transcode;
