//! A server of one's own for each test.

use klient::Client;
use klient_apiserver::ApiServer;

/// A client of a server, which lives as long as the client does.
pub(crate) fn client(server: &ApiServer) -> Client {
    Client::from_service(server.service())
}

/// A client of a new, empty server.
pub(crate) async fn started() -> Client {
    client(&ApiServer::start().await.unwrap())
}
