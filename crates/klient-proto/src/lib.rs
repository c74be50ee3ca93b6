//! Kubernetes wire formats: protobuf codecs for `k8s-openapi` types, raw objects, and streaming splitters.

mod chunks;
mod codec;
pub mod descriptor;
mod envelope;
mod error;
mod from_value;
mod generated;
mod gzip;
mod json;
mod list;
pub mod meta;
pub mod raw;
mod runtime;
mod typed;
mod watch;

pub use codec::Codec;
pub(crate) use codec::no_codec;
pub use envelope::Envelope;
pub use error::{DecodeError, Problem};
pub use from_value::{from_value, from_value_by, list_message};
pub use gzip::GzipDecoder;
pub use list::{ListEnd, ListSplitter, SplitOptions};
pub use raw::RawObject;
pub use typed::{
    ManagedFields, decode, decode_body, decode_body_with, decode_list_body, encode, encode_body, encode_list_body,
};
pub use watch::{WatchSplitter, encode_watch_frame};
