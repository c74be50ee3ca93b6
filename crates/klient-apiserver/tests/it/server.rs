//! A server for each test.

use klient::Client;
use klient_apiserver::ApiServer;

/// Returns a client of a server. The client keeps the server running.
pub(crate) fn client(server: &ApiServer) -> Client {
    Client::from_service(server.service())
}

/// Returns a client of a new, empty server.
pub(crate) async fn started() -> Client {
    client(&ApiServer::start().await.unwrap())
}
