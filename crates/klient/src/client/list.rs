//! Lists: raw objects as they arrive, or a typed list at the end.

use std::time::Duration;

use klient_proto::{ListEnd, ListSplitter, RawObject, SplitOptions};

use super::{answer::Form, body::Body};
use crate::{Error, ErrorKind};

/// Splits the body of a list while it streams in.
///
/// `sink` gets each object as soon as its last byte is there; one that cannot be read is an error for `sink`.
/// A server that falls silent for so long is given up.
pub(super) async fn split(
    response: http::Response<Body>,
    options: SplitOptions,
    silence: Duration,
    mut sink: impl FnMut(Result<RawObject, klient_proto::DecodeError>),
) -> Result<ListEnd, Error> {
    let mut splitter = match Form::of(&response) {
        Form::Protobuf => ListSplitter::protobuf(options),
        Form::Json => ListSplitter::json(options),
        Form::Other => return Err(Error::new(ErrorKind::Decode, "the answer is neither protobuf nor JSON")),
    };
    let mut body = response.into_body();
    loop {
        let chunk = tokio::time::timeout(silence, body.chunk()).await.unwrap_or_else(|_| {
            let what = format!("the server sent nothing of a list for {} s", silence.as_secs());
            Err(Error::new(ErrorKind::Timeout, what))
        });
        match chunk? {
            Some(chunk) => splitter.push(&chunk, &mut sink)?,
            None => break,
        }
    }
    Ok(splitter.finish()?)
}
