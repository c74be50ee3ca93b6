//! `Listen`: the options of a socket, awaited.

use std::{
    future::{Future, IntoFuture},
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::Arc,
};

use tokio::net::TcpListener;

use super::{Listening, ServeError, certificates::Certificates, connection};
use crate::ApiServer;

/// A request to listen on a port, which starts when it is awaited. See [`ApiServer::listen`].
#[must_use = "nothing listens until this is awaited"]
#[derive(Debug)]
pub struct Listen {
    server: ApiServer,
    port: u16,
    http: bool,
    anonymous: bool,
}

impl ApiServer {
    /// Listens for HTTPS on a port of the loopback address, with certificates of its own. Port 0 chooses a free port.
    ///
    /// Clients need credentials: the client certificate of [`Listening::kubeconfig`], the token of [`Listening::token`], or a
    /// [token of the server](crate::ApiServerBuilder::token).
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use klient_apiserver::ApiServer;
    ///
    /// let server = ApiServer::start().await?;
    /// let listening = server.listen(0).await?;
    /// assert!(listening.url().starts_with("https://127.0.0.1:"));
    /// let open = server.listen(0).http().anonymous().await?;
    /// assert!(open.url().starts_with("http://127.0.0.1:"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn listen(&self, port: u16) -> Listen {
        Listen { server: self.clone(), port, http: false, anonymous: false }
    }
}

impl Listen {
    /// Listens for plain HTTP. Requests with a `Host` other than this machine are rejected, so that no web page can reach the
    /// server through a name of its own.
    pub fn http(mut self) -> Self {
        self.http = true;
        self
    }

    /// Accepts requests without credentials. Every user and program of this machine may then read and change everything.
    pub fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    async fn start(self) -> Result<Listening, ServeError> {
        let Self { server, port, http, anonymous } = self;
        let failed = |message: &str| {
            let message = message.to_owned();
            move |source: io::Error| ServeError { message, source }
        };
        let cannot_listen = format!("cannot listen on 127.0.0.1:{port}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed(&cannot_listen))?;
        let address = listener.local_addr().map_err(failed(&cannot_listen))?;
        let certificates = match http {
            true => None,
            false => Some(Certificates::new().map_err(failed("cannot create certificates"))?),
        };
        let acceptor = certificates.as_ref().map(Certificates::acceptor).transpose();
        let acceptor = acceptor.map_err(failed("cannot use the certificates"))?;
        if let Some(certificates) = &certificates {
            server.publish_authority(&certificates.authority()).await;
        }
        let token: Arc<str> = random_token().map_err(failed("cannot generate a token"))?.into();
        let socket = connection::Socket { server, token: Arc::clone(&token), anonymous, is_plain: http };
        let task = tokio::spawn(connection::accept(Arc::new(socket), listener, acceptor));
        Ok(Listening { address, certificates, token, task })
    }
}

impl IntoFuture for Listen {
    type Output = Result<Listening, ServeError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Starts to listen.
    ///
    /// # Errors
    ///
    /// Returns an error if the port is not available.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// Returns 128 random bits as text.
fn random_token() -> io::Result<String> {
    let mut bits = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bits).map_err(|_| io::Error::other("the operating system has no random numbers"))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bits)))
}
