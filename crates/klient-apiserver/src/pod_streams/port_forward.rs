//! Sessions of port-forward: a pair of SPDY streams per connection, over SPDY or in a WebSocket.

use std::collections::HashMap;

use http::Response;
use klient_streams::{
    Io, Stream,
    spdy::{self, Accepted, Role},
    tunnel::{self, Tunnel},
};
use tokio::{io::AsyncWriteExt as _, task::JoinSet};

use super::{Function, PortForwardCall, exec::both, handshake};
use crate::{Result, body::ResponseBody, call::Call, verbs::Target};

pub(super) fn respond(
    call: &Call,
    target: &Target,
    function: &Function<PortForwardCall, ()>,
) -> Result<Response<ResponseBody>> {
    let requested = handshake::select(call, &[tunnel::PROTOCOL], &[PROTOCOL])?;
    let is_tunnel = matches!(requested, handshake::Requested::WebSocket { .. });
    let (namespace, pod) = (target.namespace.clone(), target.name().to_owned());
    let forwarder = Forwarder { namespace, pod, function: Function::clone(function) };
    Ok(handshake::switch(call, &requested, move |io: Box<dyn Io>| async move {
        if is_tunnel {
            forwarder.serve(Tunnel::new(io, Role::Server)).await;
        } else {
            forwarder.serve(io).await;
        }
    }))
}

struct Forwarder {
    namespace: String,
    pod: String,
    function: Function<PortForwardCall, ()>,
}

/// One connection, whose two streams arrive one after the other.
#[derive(Default)]
struct Pair {
    error: Option<Stream>,
    data: Option<Stream>,
}

impl Forwarder {
    async fn serve(self, io: impl Io) {
        let (connection, driver) = spdy::connection(io, Role::Server, None);
        let work = async move {
            let mut pairs: HashMap<String, Pair> = HashMap::new();
            let mut running = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = connection.accept() => match accepted {
                        Some(accepted) => self.add(accepted, &mut pairs, &mut running),
                        None => break,
                    },
                    Some(_) = running.join_next(), if !running.is_empty() => {}
                }
            }
        };
        both(driver, work).await;
    }

    /// Adds a stream to its pair, and starts the connection if the pair is complete. Invalid streams are reset.
    fn add(&self, accepted: Accepted, pairs: &mut HashMap<String, Pair>, running: &mut JoinSet<()>) {
        let Accepted { stream, headers } = accepted;
        let Some(Ok(port)) = headers.get("port").map(str::parse::<u16>) else { return };
        let Some(request) = headers.get("requestid") else { return };
        if pairs.len() >= MAX_INCOMPLETE && !pairs.contains_key(request) {
            return;
        }
        let pair = pairs.entry(request.to_owned()).or_default();
        match headers.get("streamtype") {
            Some("error") => pair.error = Some(stream),
            Some("data") => pair.data = Some(stream),
            _ => return,
        }
        if pair.error.is_none() || pair.data.is_none() {
            return;
        }
        let Some(Pair { error: Some(error), data: Some(data) }) = pairs.remove(request) else { return };
        let call = PortForwardCall { namespace: self.namespace.clone(), pod: self.pod.clone(), port, stream: data };
        let pod = self.pod.clone();
        let running_call = (self.function)(call);
        running.spawn(async move {
            let (reader, mut error) = error.into_split();
            if let Err(problem) = running_call.await {
                let message = format!("error forwarding port {port} to pod {pod}, uid : {problem}");
                let _ = error.write_all(message.as_bytes()).await;
            }
            // The end of this stream reports the success.
            let _ = error.shutdown().await;
            drop((error, reader));
        });
    }
}

/// The name of the protocol over plain SPDY.
pub(super) const PROTOCOL: &str = "portforward.k8s.io";
/// The number of connections with one stream.
const MAX_INCOMPLETE: usize = 1024;
