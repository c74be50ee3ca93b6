//! The real kube-apiserver and etcd of a world, behind a proxy.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use klient::{
    Api, Client,
    client::{
        auth::TokenFileAuth,
        config::{Config, KubeconfigFiles, Overrides, Pem},
        http::{HttpSettings, HttpTransport},
    },
    metrics::Registry,
};
use klient_harness::{Programs, SECOND_TOKEN, Server, TOKEN};
use serde_json::json;

use crate::{
    proxy::Proxy,
    rng::Rng,
    weather::{FaultLayer, Role, Weather},
};

/// The servers that all real worlds of a run share.
#[derive(Clone)]
pub(crate) struct Cluster {
    server: Arc<Mutex<Server>>,
    kubeconfig: PathBuf,
}

/// The server of one world.
pub(crate) struct Real {
    cluster: Cluster,
    proxy: Proxy,
    weather: Arc<Weather>,
    registry: Registry,
    config: Config,
    namespace: String,
    folder: tempfile::TempDir,
    rotations: u64,
}

impl Cluster {
    /// Starts etcd and kube-apiserver.
    pub(crate) fn start() -> Result<Self> {
        let programs = Programs::find_or_build()?;
        let server = Server::start(&programs)?;
        let kubeconfig = server.kubeconfig();
        Ok(Self { server: Arc::new(Mutex::new(server)), kubeconfig })
    }

    /// Does something to the servers that blocks, on a thread of its own.
    async fn with<T: Send + 'static>(&self, work: impl FnOnce(&mut Server) -> T + Send + 'static) -> Result<T> {
        let server = Arc::clone(&self.server);
        let work = move || work(&mut server.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(tokio::task::spawn_blocking(work).await?)
    }
}

impl Real {
    pub(crate) async fn start(cluster: Cluster, weather: Arc<Weather>, registry: Registry, seed: u64) -> Result<Self> {
        let config = Config::load(&KubeconfigFiles::explicit(&cluster.kubeconfig), &Overrides::default())?;
        let to: SocketAddr = config.server.authority().context("server without an address")?.as_str().parse()?;
        let proxy = Proxy::start(to).await?;
        let folder = tempfile::tempdir()?;
        let namespace = format!("chaos-{seed}-{}", std::process::id());
        let mut real = Self { cluster, proxy, weather, registry, config, namespace, folder, rotations: 0 };
        real.rotate_token()?;
        real.write_client_certificate().await?;
        Ok(real)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn settings(&self, server: http::Uri) -> HttpSettings {
        let mut settings = HttpSettings::new(server);
        settings.tls = self.config.tls.clone();
        settings.connect_timeout = Duration::from_secs(3);
        settings.handshake_timeout = Duration::from_secs(3);
        // A world is short, so dead connections have to be found quickly.
        settings.ping_interval = Duration::from_secs(2);
        settings.ping_timeout = Duration::from_secs(2);
        settings.file_check = Duration::from_millis(200);
        settings
    }

    /// Returns a client whose requests have faults. Controllers and electors have a client certificate, others have a token.
    pub(crate) fn client(&self, role: Role) -> Result<Client> {
        let mut settings = self.settings(format!("https://{}", self.proxy.address()).parse()?);
        let weather = Arc::clone(&self.weather);
        let has_certificate = matches!(role, Role::Controller | Role::Elector(_));
        if has_certificate {
            let [certificate, key] = self.client_certificate();
            settings.tls = settings.tls.client_certificate(Pem::File(certificate), Pem::File(key));
        }
        let mut builder = Client::builder(HttpTransport::new(settings)?).metrics(&self.registry).timeout(REQUEST_LIMIT);
        if !has_certificate {
            builder = builder.auth(TokenFileAuth::new(self.token_file(), None)?);
        }
        Ok(builder.layer(|inner| FaultLayer { inner, weather, role }).build())
    }

    /// Returns a client without faults.
    pub(crate) fn direct(&self) -> Result<Client> {
        let transport = HttpTransport::new(self.settings(self.config.server.clone()))?;
        let auth = klient::client::auth::StaticAuth::bearer(TOKEN)?;
        Ok(Client::builder(transport).metrics(&self.registry).auth(auth).timeout(REQUEST_LIMIT).build())
    }

    /// Creates the namespace of the world.
    pub(crate) async fn prepare(&self, direct: &Client) -> Result<()> {
        let namespaces: Api<Namespace> = Api::cluster(direct.clone());
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": self.namespace}}))?;
        namespaces.create(&namespace).await.context("cannot create the namespace")?;
        Ok(())
    }

    /// Kills the API server, and starts it again after a while.
    pub(crate) async fn restart(&self, rng: &mut Rng) -> Result<()> {
        let pause = rng.millis(0, 2000);
        self.cluster
            .with(move |server| {
                server.kill();
                std::thread::sleep(pause);
                server.restart()
            })
            .await?
    }

    /// Compacts etcd at its current revision.
    pub(crate) async fn compact(&self, direct: &Client) -> Result<()> {
        let namespaces: Api<Namespace> = Api::cluster(direct.clone());
        let revision = namespaces.metadata().list().await?.resource_version().as_str().to_owned();
        self.cluster.with(move |server| compact(&server.etcd_url(), &revision)).await?
    }

    /// Replaces the clients' token. The server accepts both; the fault layer accepts only the new one.
    pub(crate) fn rotate_token(&mut self) -> Result<()> {
        self.rotations += 1;
        let token = if self.rotations.is_multiple_of(2) { SECOND_TOKEN } else { TOKEN };
        std::fs::write(self.token_file(), token)?;
        self.weather.set_token(token.to_owned());
        Ok(())
    }

    /// Replaces the client certificate, and every third time the server's authority and certificate.
    pub(crate) async fn rotate_certificate(&mut self) -> Result<()> {
        self.rotations += 1;
        self.write_client_certificate().await?;
        if self.rotations.is_multiple_of(3) {
            self.cluster.with(Server::replace_authority).await??;
        }
        Ok(())
    }

    async fn write_client_certificate(&self) -> Result<()> {
        let name = format!("chaos-{}", self.rotations);
        let user = self.cluster.with(move |server| server.user_authority().user(&name, "system:masters")).await??;
        let [certificate, key] = self.client_certificate();
        std::fs::write(certificate, user.certificate)?;
        std::fs::write(key, user.key)?;
        Ok(())
    }

    pub(crate) fn disturb(&self, rng: &mut Rng) {
        self.proxy.disturb(rng);
    }

    pub(crate) fn calm(&self) {
        self.proxy.calm();
    }

    fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    fn client_certificate(&self) -> [PathBuf; 2] {
        ["client.crt", "client.key"].map(|name| self.folder.path().join(name))
    }
}

/// Compacts etcd through its HTTP gateway.
fn compact(etcd_url: &str, revision: &str) -> Result<()> {
    let address = etcd_url.strip_prefix("http://").context("etcd is not on plain HTTP")?;
    let mut stream = TcpStream::connect(address)?;
    let body = json!({"revision": revision, "physical": true}).to_string();
    let head = "POST /v3/kv/compaction HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length";
    write!(stream, "{head}: {}\r\n\r\n{body}", body.len())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let is_done = response.split_whitespace().nth(1) == Some("200") || response.contains("compacted");
    if !is_done {
        bail!("etcd did not compact: {response}");
    }
    Ok(())
}

/// The time limit of requests. A world is short.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
