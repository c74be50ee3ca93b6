//! Lists: raw objects as they arrive, or a typed list at the end.

use klient_proto::{ListEnd, ListSplitter, RawObject, SplitOptions};

use super::{answer::Form, body::Body};
use crate::{Error, ErrorKind};

/// Splits the body of a list while it streams in.
///
/// `sink` gets each object as soon as its last byte is there; one that cannot be read is an error for `sink`.
pub(super) async fn split(
    response: http::Response<Body>,
    options: SplitOptions,
    mut sink: impl FnMut(Result<RawObject, klient_proto::DecodeError>),
) -> Result<ListEnd, Error> {
    let mut splitter = match Form::of(&response) {
        Form::Protobuf => ListSplitter::protobuf(options),
        Form::Json => ListSplitter::json(options),
        Form::Other => return Err(Error::new(ErrorKind::Decode, "the answer is neither protobuf nor JSON")),
    };
    let mut body = response.into_body();
    while let Some(chunk) = body.chunk().await? {
        splitter.push(&chunk, &mut sink)?;
    }
    Ok(splitter.finish()?)
}
