//! Plain requests to the issuer's web server, over the client's own transport.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri};

use crate::{
    Error, ErrorKind,
    client::{
        config::{Proxy, Tls, environment::Environment},
        http::transport::{HttpSettings, HttpTransport, Transport},
    },
};

/// How to reach web servers.
pub(super) struct Web {
    tls: Tls,
    proxy: Proxy,
}

impl Web {
    pub(super) fn new(tls: Tls, proxy: Proxy) -> Self {
        Self { tls, proxy }
    }

    /// Sends a request to where its URI says, and reads the whole answer.
    pub(super) async fn exchange(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), Error> {
        let url = request.uri().clone();
        let transport = self.transport(&url)?;
        let exchange = async {
            let answer = transport.send(request).await?;
            let status = answer.status();
            Ok((status, answer.into_body().collect(MAX_ANSWER).await?))
        };
        match tokio::time::timeout(TIME_LIMIT, exchange).await {
            Ok(answered) => answered.map_err(|error: Error| unreachable(&url, error)),
            Err(_) => {
                let what = format!("{} did not answer within {TIME_LIMIT:?}", place(&url));
                Err(Error::new(ErrorKind::Auth, what))
            }
        }
    }

    fn transport(&self, url: &Uri) -> Result<HttpTransport, Error> {
        let mut settings = HttpSettings::new(url.clone());
        settings.tls = self.tls.clone();
        settings.proxy = self.proxy.for_server(url, &Environment::of_process())?;
        HttpTransport::new(settings)
    }
}

/// A URL without what may be secret in it.
pub(super) fn place(url: &Uri) -> String {
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default(), url.path())
}

fn unreachable(url: &Uri, error: Error) -> Error {
    Error::new(ErrorKind::Auth, format!("no answer from {}", place(url))).with_source(error)
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1 << 20;
