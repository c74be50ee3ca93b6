//! Logs of containers.

use http::{HeaderValue, Response, header::CONTENT_TYPE};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Function, LogCall, LogWriter, container};
use crate::{Result, body::ResponseBody, call::Call, verbs::Target};

pub(super) fn respond(
    call: &Call,
    target: &Target,
    pod: &Value,
    function: &Function<LogCall, ()>,
) -> Result<Response<ResponseBody>> {
    let container = container(call, pod)?;
    let number = |name: &str| call.number(name).map(|number| number.and_then(|number| u64::try_from(number).ok()));
    let (chunks, receiver) = mpsc::channel(CHUNKS);
    let running = function(LogCall {
        namespace: target.namespace.clone(),
        pod: target.name().to_owned(),
        container,
        follow: call.flag("follow"),
        previous: call.flag("previous"),
        timestamps: call.flag("timestamps"),
        tail_lines: number("tailLines")?,
        since_seconds: number("sinceSeconds")?,
        since_time: call.param("sinceTime").map(str::to_owned),
        output: LogWriter { chunks },
    });
    // Ends with the response's body.
    let task = tokio::spawn(async move {
        if let Err(error) = running.await {
            tracing::debug!(error = &*error as &dyn std::error::Error, "log ended with an error");
        }
    });
    let mut response = Response::new(ResponseBody::stream(receiver, task));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

/// The number of chunks that may wait for a slow client.
const CHUNKS: usize = 16;
