//! The real server, over its socket.

use std::{error::Error, time::Duration};

use klient::{
    Client,
    client::{
        config::{Config, Credentials},
        http::{HttpSettings, HttpTransport, Transport as _},
    },
};

use crate::script::{Comparable, Peer, Raw, Run, Step};

/// An error of a request to the real server.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A real server that is ready.
pub struct Real {
    transport: HttpTransport,
    token: String,
    /// The webhooks that scripts register.
    pub peer: Option<Peer>,
}

impl Real {
    pub async fn connect(config: &Config) -> Result<Self, Failure> {
        let mut settings = HttpSettings::new(config.server.clone());
        settings.tls = config.tls.clone();
        let transport = HttpTransport::new(settings)?;
        let Credentials::Token(token) = &config.credentials else { return Err("no token".into()) };
        let token = token.expose().to_owned();
        let client = Client::from_config(config)?;
        while client.rest().get().path("/readyz").bytes().await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(Self { transport, token, peer: None })
    }

    /// Returns the responses to a script.
    pub async fn responses(&self, namespace: &str, steps: &[Step]) -> Result<Vec<Comparable>, Failure> {
        self.run(&mut Run::new(namespace).with_peer(self.peer.clone()), steps).await
    }

    /// Returns the responses to a script in a run.
    pub async fn run(&self, run: &mut Run, steps: &[Step]) -> Result<Vec<Comparable>, Failure> {
        let mut responses = Vec::new();
        for step in steps {
            let mut raw = self.ask(run, step).await?;
            for _ in 0..300 {
                if step.until.is_none_or(|code| code == raw.code) {
                    break;
                }
                // The real server does this asynchronously, and there is no event to wait for.
                tokio::time::sleep(Duration::from_millis(100)).await;
                raw = self.ask(run, step).await?;
            }
            responses.push(run.note(step, &raw));
        }
        Ok(responses)
    }

    /// Returns the responses to a script. A request that makes the server panic has a response with the code zero.
    pub async fn responses_or_panics(&self, namespace: &str, steps: &[Step]) -> Vec<Comparable> {
        let mut run = Run::new(namespace);
        let mut responses = Vec::new();
        for step in steps {
            let raw = self.ask(&run, step).await.unwrap_or_else(|error| Raw {
                code: 0,
                content_type: String::new(),
                warnings: Vec::new(),
                caching: std::collections::BTreeMap::new(),
                body: error.to_string().into_bytes(),
            });
            responses.push(run.note(step, &raw));
        }
        responses
    }

    async fn ask(&self, run: &Run, step: &Step) -> Result<Raw, Failure> {
        let mut request = run.request(step);
        if !Run::has_credentials(step) {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let response = self.transport.send(request.body(run.body(step).into())?).await?;
        let (parts, body) = response.into_parts();
        Ok(Raw::new(&parts, body.collect(64 << 20).await?.to_vec()))
    }
}
