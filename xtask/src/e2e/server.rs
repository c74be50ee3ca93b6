//! One etcd and one kube-apiserver on loopback, with their files in a temporary folder. Both end with their owner.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::json;

const TOKEN: &str = "e2e-token";

pub(crate) struct Server {
    // Dropped in this order: first the one that needs the other.
    apiserver: Process,
    _etcd: Process,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts both and waits until they answer.
    pub(crate) fn start(programs: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [etcd_port, peer_port, port] = free_ports()?;
        write_files(folder.path(), port)?;
        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let in_folder = |name: &str| folder.path().join(name).display().to_string();
        let etcd = Process::spawn(
            &programs.join("etcd"),
            &[
                ("data-dir", in_folder("etcd")),
                ("listen-client-urls", etcd_url.clone()),
                ("advertise-client-urls", etcd_url.clone()),
                ("listen-peer-urls", peer_url.clone()),
                ("initial-advertise-peer-urls", peer_url.clone()),
                ("initial-cluster", format!("default={peer_url}")),
                ("unsafe-no-fsync", "true".to_owned()),
            ],
            folder.path().join("etcd.log"),
        )?;
        let apiserver = Process::spawn(
            &programs.join("kube-apiserver"),
            &[
                ("etcd-servers", etcd_url),
                ("bind-address", "127.0.0.1".to_owned()),
                ("secure-port", port.to_string()),
                ("tls-cert-file", in_folder("server.crt")),
                ("tls-private-key-file", in_folder("server.key")),
                ("client-ca-file", in_folder("ca.crt")),
                ("token-auth-file", in_folder("tokens.csv")),
                ("authorization-mode", "RBAC".to_owned()),
                ("service-account-issuer", "https://klient.invalid".to_owned()),
                ("service-account-key-file", in_folder("server.pub")),
                ("service-account-signing-key-file", in_folder("server.key")),
                ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
            ],
            folder.path().join("apiserver.log"),
        )?;
        let mut server = Self { apiserver, _etcd: etcd, folder };
        server.wait_until_listening(port)?;
        Ok(server)
    }

    /// A kubeconfig with the rights of an administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Waits for the port; the tests wait for readiness themselves, since they have a client.
    fn wait_until_listening(&mut self, port: u16) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is_listening(port) {
            if let Some(status) = self.apiserver.child.try_wait()? {
                bail!("kube-apiserver ended ({status}):\n{}", self.apiserver.last_lines()?);
            }
            if Instant::now() > deadline {
                bail!("kube-apiserver does not listen:\n{}", self.apiserver.last_lines()?);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// A free port in the ephemeral range may connect to itself, which says nothing about a server.
fn is_listening(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok_and(|stream| stream.local_addr().ok() != stream.peer_addr().ok())
}

/// A child that does not outlive its owner.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn spawn(program: &Path, flags: &[(&str, String)], log: PathBuf) -> Result<Self> {
        let file = fs::File::create(&log)?;
        let child = Command::new(program)
            .args(flags.iter().map(|(name, value)| format!("--{name}={value}")))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, log })
    }

    fn last_lines(&self) -> Result<String> {
        let lines: Vec<String> = BufReader::new(fs::File::open(&self.log)?).lines().collect::<Result<_, _>>()?;
        Ok(lines[lines.len().saturating_sub(20)..].join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Certificates, keys, tokens and the kubeconfig.
fn write_files(folder: &Path, port: u16) -> Result<()> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "klient e2e");
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

    let key = KeyPair::generate()?;
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    fs::write(folder.join("server.crt"), params.signed_by(&key, &ca)?.pem())?;
    fs::write(folder.join("server.key"), key.serialize_pem())?;
    fs::write(folder.join("server.pub"), key.public_key_pem())?;

    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "e2e-certificate");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    fs::write(folder.join("client.crt"), params.signed_by(&key, &ca)?.pem())?;
    fs::write(folder.join("client.key"), key.serialize_pem())?;

    fs::write(folder.join("ca.crt"), ca.pem())?;
    fs::write(folder.join("tokens.csv"), format!("{TOKEN},e2e-token-user,1,\"system:masters\"\n"))?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "token",
        "clusters": [{"name": "e2e", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority": "ca.crt",
        }}],
        "users": [
            {"name": "token", "user": {"token": TOKEN}},
            {"name": "certificate", "user": {"client-certificate": "client.crt", "client-key": "client.key"}},
        ],
        "contexts": [
            {"name": "token", "context": {"cluster": "e2e", "user": "token"}},
            {"name": "certificate", "context": {"cluster": "e2e", "user": "certificate"}},
        ],
    });
    fs::write(folder.join("kubeconfig"), kubeconfig.to_string())?;
    Ok(())
}

/// Ports that were free a moment ago.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::new();
    for _ in 0..N {
        listeners.push(TcpListener::bind("127.0.0.1:0")?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
