//! A client of an API server in this process, for what needs a whole one.

use klient::client::{Client, transport::FnTransport};
use klient_apiserver::ApiServer;

/// A client of that server, which lives as long as the client does.
pub(crate) fn client(server: &ApiServer) -> Client {
    let server = server.clone();
    let ask = move |request| {
        let server = server.clone();
        async move { server.handle(request).await }
    };
    Client::builder(FnTransport::new(ask)).build()
}
