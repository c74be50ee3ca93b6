//! A client of an API server in this process, for what needs a whole one.

use klient::Client;
use klient_apiserver::ApiServer;

/// A client of that server, which lives as long as the client does.
pub(crate) fn client(server: &ApiServer) -> Client {
    Client::from_service(server.service())
}
