//! Certificates that are replaced while a transport is in use.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::client::config::{Pem, Trust};

/// Writes a file with a new modification time, whatever the clock's resolution.
fn write(path: &Path, text: &str) {
    static TIME: AtomicU64 = AtomicU64::new(1_000_000);
    fs::write(path, text).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(TIME.fetch_add(1, Ordering::Relaxed));
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn authority() -> rcgen::CertifiedIssuer<'static, rcgen::KeyPair> {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
}

/// Returns a certificate and its key as PEM.
fn signed(by: &rcgen::CertifiedIssuer<'static, rcgen::KeyPair>, name: &str) -> (rcgen::Certificate, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, by).unwrap(), key.serialize_pem())
}

/// Starts a TLS server that responds to each request with the client's certificate, over HTTP/1.1.
async fn server(authority: &rcgen::CertifiedIssuer<'static, rcgen::KeyPair>) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let (certificate, key) = signed(authority, "localhost");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
                let mut buffer = vec![0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", shown.len());
                    stream.write_all(&[head.as_bytes(), &shown].concat()).await.unwrap();
                    stream.flush().await.unwrap();
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn replaced_certificate_is_used_once_its_key_is_replaced() {
    let authority = authority();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("crt"), folder.path().join("key"));
    let (first, first_key) = signed(&authority, "first");
    write(&cert, &first.pem());
    write(&key, &first_key);
    let mut settings = HttpSettings::new(server(&authority).await.parse().unwrap());
    settings.tls = Tls::default()
        .trust(Trust::Authority(Pem::Data(authority.pem().into_bytes())))
        .server_name("localhost")
        .client_certificate(Pem::File(cert.clone()), Pem::File(key.clone()));
    settings.file_check = Duration::ZERO;
    let transport = HttpTransport::new(settings).unwrap();
    let shown = async || {
        let response = transport.send(http::Request::get("/").body(Bytes::new()).unwrap()).await.unwrap();
        response.into_body().collect(1 << 16).await.unwrap()
    };
    assert_eq!(shown().await, first.der().as_ref());

    let (second, second_key) = signed(&authority, "second");
    write(&key, &second_key);
    assert_eq!(shown().await, first.der().as_ref(), "a new key without its certificate is ignored");
    write(&cert, &second.pem());
    assert_eq!(shown().await, second.der().as_ref(), "the old connection gets no more requests");
    fs::remove_file(&cert).unwrap();
    assert_eq!(shown().await, second.der().as_ref());
}

#[tokio::test]
async fn replaced_authority_is_trusted_by_new_connections() {
    let (right, wrong) = (authority(), authority());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    write(&file, &wrong.pem());
    let (cert, key) = signed(&right, "client");
    let mut settings = HttpSettings::new(server(&right).await.parse().unwrap());
    settings.tls = Tls::default()
        .trust(Trust::Authority(Pem::File(file.clone())))
        .server_name("localhost")
        .client_certificate(Pem::Data(cert.pem().into_bytes()), Pem::Data(key.into_bytes()));
    settings.file_check = Duration::ZERO;
    let transport = HttpTransport::new(settings).unwrap();
    let request = || http::Request::get("/").body(Bytes::new()).unwrap();
    assert_eq!(transport.send(request()).await.unwrap_err().kind(), ErrorKind::Untrusted);
    write(&file, &right.pem());
    transport.send(request()).await.unwrap();
}
