//! Plain requests to the issuer's web server, over the client's transport.

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

/// The settings for connections to web servers.
pub(super) struct Web {
    tls: Tls,
    proxy: Proxy,
}

impl Web {
    pub(super) fn new(tls: Tls, proxy: Proxy) -> Self {
        Self { tls, proxy }
    }

    /// Sends a request to its URI and reads the whole response.
    pub(super) async fn exchange(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), Error> {
        let url = request.uri().clone();
        let transport = self.transport(&url)?;
        let exchange = async {
            let response = transport.send(request).await?;
            let status = response.status();
            Ok((status, response.into_body().collect(MAX_RESPONSE).await?))
        };
        match tokio::time::timeout(TIME_LIMIT, exchange).await {
            Ok(result) => result.map_err(|error: Error| unreachable(&url, error)),
            Err(_) => {
                let what = format!("no response from {} within {TIME_LIMIT:?}", redacted(&url));
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

/// Returns a URL without the parts that may be secret.
pub(super) fn redacted(url: &Uri) -> String {
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default(), url.path())
}

fn unreachable(url: &Uri, error: Error) -> Error {
    Error::new(ErrorKind::Auth, format!("no response from {}", redacted(url))).with_source(error)
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
const MAX_RESPONSE: usize = 1 << 20;
