//! The mark of the reconcile that a task runs, by which the client finds the recording of its requests.

use super::Recorder;
use crate::writes;

/// The mark of one reconcile.
#[derive(Clone, Debug)]
pub(crate) struct TurnMark {
    pub(crate) id: u64,
    /// The recorder. A replay has none.
    pub(crate) recorder: Option<Recorder>,
}

/// Returns the number of the reconcile that this task runs, if it is recorded or replayed.
///
/// The number is that of [`Step::Started`](super::Step::Started), or of [`Stepper::begin`](crate::controller::Stepper::begin).
pub fn current_turn() -> Option<u64> {
    writes::turn_mark().map(|mark| mark.id)
}

#[cfg(feature = "client")]
pub(crate) use request::RequestNote;

#[cfg(feature = "client")]
mod request {
    use http::{Method, Uri};
    use serde_json::{Value, json};

    use super::{Recorder, TurnMark, writes};
    use crate::{
        Error,
        recording::{Step, object::without_contents},
    };

    /// A request of a recorded reconcile, until its response is known.
    pub(crate) struct RequestNote {
        recorder: Recorder,
        turn: u64,
        method: String,
        path: String,
        is_redacted: bool,
        body: Vec<u8>,
    }

    impl RequestNote {
        /// Returns a note of a request, if this task runs a recorded reconcile.
        ///
        /// The note is boxed, because the futures of all requests have a place for it.
        pub(crate) fn begin(method: &Method, uri: &Uri, body: &[u8]) -> Option<Box<Self>> {
            let TurnMark { id, recorder } = writes::turn_mark()?;
            let recorder = recorder?;
            let path = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
            let is_redacted = recorder.redaction().covers_path(&path);
            let body = if is_redacted { Vec::new() } else { body.to_vec() };
            Some(Box::new(Self { recorder, turn: id, method: method.to_string(), path, is_redacted, body }))
        }

        /// Records the request with its outcome: the code and the object of a success, or the error.
        ///
        /// `to_json` converts an object that is not JSON.
        pub(crate) fn end(
            self,
            outcome: Result<(u16, Option<Value>), &Error>,
            to_json: impl FnOnce(&[u8]) -> Option<Value>,
        ) {
            let (status, response, error) = match outcome {
                Ok((code, object)) => (Some(code), object.map(|object| self.response(object)), None),
                Err(error) => match error.status() {
                    Some(status) => (u16::try_from(status.code).ok(), serde_json::to_value(status).ok(), None),
                    None => (None, None, Some(error.to_string())),
                },
            };
            let body = serde_json::from_slice(&self.body).ok();
            let body = body.or_else(|| Some(&*self.body).filter(|body| !body.is_empty()).and_then(to_json));
            let Self { recorder, turn, method, path, .. } = self;
            recorder.push_step(Step::Request { turn, method, path, body, status, response, error });
        }

        /// Records a request of whose response only the code is stored.
        pub(crate) fn end_unread(note: Option<Box<Self>>, outcome: Result<http::StatusCode, &Error>) {
            if let Some(note) = note {
                note.end(outcome.map(|code| (code.as_u16(), None)), |_| None);
            }
        }

        /// Returns what is recorded of an object in a response: all of it for a read, its identity for a write.
        fn response(&self, object: Value) -> Value {
            if self.method == "GET" {
                return if self.is_redacted { without_contents(object) } else { object };
            }
            let metadata = &object["metadata"];
            let identity = ["name", "namespace", "uid", "resourceVersion"];
            let identity = identity.into_iter().filter_map(|name| Some((name.to_owned(), metadata.get(name)?.clone())));
            json!({
                "apiVersion": object["apiVersion"],
                "kind": object["kind"],
                "metadata": Value::Object(identity.collect()),
            })
        }
    }
}
