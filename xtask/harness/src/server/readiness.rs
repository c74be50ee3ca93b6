//! A check that an API server is ready. Its request does not use klient, which is the client under test.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, bail};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};

use super::TOKEN;

/// Sends a request to `/readyz`, and returns an error unless the response has status 200.
pub(super) fn check(port: u16, authority: &Path) -> Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    // A free port in the ephemeral range may connect to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        bail!("no process listens on port {port}");
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
    let mut stream = StreamOwned::new(connection, stream);
    let request = format!(
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    if &answer != b"HTTP/1.1 200" {
        bail!("expected status 200 from /readyz, but the server responded with {:?}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

/// The time limit of each read and write.
const PATIENCE: Duration = Duration::from_secs(5);
