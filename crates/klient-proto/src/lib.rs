//! Kubernetes wire forms: protobuf codecs for `k8s-openapi` types, objects kept as bytes, and streaming splitters.

mod codec;
pub mod descriptor;
mod envelope;
mod error;
mod generated;
mod json;
pub mod raw;
mod runtime;
mod typed;

pub use codec::Codec;
pub(crate) use codec::no_codec;
pub use envelope::Envelope;
pub use error::{DecodeError, Problem};
pub use raw::RawObject;
pub use typed::{ManagedFields, decode, decode_body, decode_list_body, encode, encode_body};
