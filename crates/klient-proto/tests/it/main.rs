//! Behaviour tests of the wire forms, through the public API.

mod corpus;
mod gzip;
mod hostile;
mod kinds;
mod oracle;
mod paths;
mod properties;
mod raw;
mod split;
mod support;
mod transcode;
