//! The embedded server of a world: in memory or in a folder, killed and restarted, with a clock that jumps.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use klient::{
    Client, Error, ErrorKind,
    client::{
        ClientBuilder,
        auth::TokenFileAuth,
        http::{Body, SendFuture, Transport},
    },
    metrics::Registry,
};
use klient_apiserver::{ApiServer, ManualClock};
use klient_core::Verb;

use crate::{
    rng::Rng,
    weather::{FaultLayer, Role, Weather},
};

/// A server in this process.
pub(crate) struct Embedded {
    slot: Arc<Slot>,
    clock: Arc<ManualClock>,
    weather: Arc<Weather>,
    registry: Registry,
    token_file: PathBuf,
    tokens: u64,
    folder: tempfile::TempDir,
    is_durable: bool,
}

/// The running server, if it is not down.
struct Slot {
    server: Mutex<Option<ApiServer>>,
    is_durable: bool,
}

struct SlotTransport(Arc<Slot>);

impl Embedded {
    pub(crate) async fn start(weather: Arc<Weather>, registry: Registry, is_durable: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let clock = Arc::new(ManualClock::new(Timestamp::now()));
        let slot = Arc::new(Slot { server: Mutex::new(None), is_durable });
        let token_file = folder.path().join("token");
        let mut embedded = Self { slot, clock, weather, registry, token_file, tokens: 0, folder, is_durable };
        embedded.open().await?;
        embedded.rotate_token()?;
        Ok(embedded)
    }

    async fn open(&self) -> Result<()> {
        let mut last = None;
        // The folder is locked until the last request of the old server has been dropped.
        for _ in 0..50 {
            let mut builder = ApiServer::builder().clock(Arc::clone(&self.clock));
            if self.is_durable {
                builder = builder.folder(self.folder.path().join("data"));
            }
            match builder.start().await {
                Ok(server) => {
                    *self.slot.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
                    return Ok(());
                }
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(last.map_or_else(|| anyhow::anyhow!("no attempt"), Into::into)).context("server does not start again")
    }

    fn builder(&self) -> ClientBuilder {
        Client::builder(SlotTransport(Arc::clone(&self.slot))).metrics(&self.registry)
    }

    /// Returns a client whose requests have faults.
    pub(crate) fn client(&self, role: Role) -> Result<Client> {
        let weather = Arc::clone(&self.weather);
        let auth = TokenFileAuth::new(&self.token_file, None)?;
        Ok(self.builder().auth(auth).layer(|inner| FaultLayer { inner, weather, role }).build())
    }

    /// Returns a client without faults.
    pub(crate) fn direct(&self) -> Client {
        self.builder().build()
    }

    /// Kills the server, and starts it again after a while.
    pub(crate) async fn restart(&self, rng: &mut Rng) -> Result<()> {
        self.weather.set_down(true);
        self.weather.cut_all();
        if self.is_durable {
            drop(self.slot.server.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        tokio::time::sleep(rng.millis(10, 20_000)).await;
        if self.is_durable {
            self.open().await?;
        } else {
            self.compact();
        }
        self.weather.set_down(false);
        Ok(())
    }

    /// Drops the server's history.
    pub(crate) fn compact(&self) {
        if let Some(server) = &*self.slot.server.lock().unwrap_or_else(PoisonError::into_inner) {
            server.compact();
        }
    }

    /// Replaces the token that requests must carry.
    pub(crate) fn rotate_token(&mut self) -> Result<()> {
        self.tokens += 1;
        let token = format!("token-{}", self.tokens);
        std::fs::write(&self.token_file, &token)?;
        self.weather.set_token(token);
        Ok(())
    }

    /// Moves the server's clock forward or back, and the clock of all timers forward.
    pub(crate) async fn jump(&self, rng: &mut Rng) {
        let seconds = i64::try_from(rng.range(0, 7200)).unwrap_or(0) - 3600;
        self.clock.advance(SignedDuration::from_secs(seconds));
        tokio::time::advance(rng.millis(1000, 300_000)).await;
    }
}

impl Transport for SlotTransport {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        Box::pin(async move {
            let server = self.0.server.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(server) = server else {
                return Err(Error::new(ErrorKind::Transport, "server is down on purpose"));
            };
            let is_watch = request.extensions().get::<Verb>() == Some(&Verb::Watch);
            // The paused clock must not run ahead while a thread writes to disk.
            let clock = (self.0.is_durable && !is_watch).then(HeldClock::new);
            let response = server.handle(request).await;
            drop(clock);
            Ok(response.map(Body::new))
        })
    }
}

/// Keeps a paused clock still: Tokio does not advance it while a blocking task runs.
struct HeldClock {
    _release: mpsc::Sender<()>,
}

impl HeldClock {
    fn new() -> Self {
        let (release, held) = mpsc::channel();
        drop(tokio::task::spawn_blocking(move || held.recv().is_err()));
        Self { _release: release }
    }
}
