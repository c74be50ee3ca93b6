//! Credentials from a program: `client.authentication.k8s.io`, versions `v1` and `v1beta1`.
//!
//! The program is told what is wanted in a variable, writes its answer to standard output, and has standard error to
//! talk to people. It cannot hang a client: unless it talks to people, it has a time limit. Its arguments, its variables
//! and what it answers show in no message.

mod answer;
mod info;
mod run;

use std::{io::IsTerminal, sync::Arc};

use serde_json::Value;

use crate::client::{
    auth::{Credential, IssueFuture, Issuer},
    config::{Config, ExecPlugin, InteractiveMode},
};
use crate::{Error, ErrorKind};

/// Runs a program to get credentials.
pub(in crate::client) struct ExecIssuer {
    plugin: ExecPlugin,
    /// What the program is told about the cluster, if it is.
    cluster: Option<Value>,
    /// Whether a person is at the other end of standard input.
    has_terminal: fn() -> bool,
}

impl ExecIssuer {
    pub(in crate::client) fn new(plugin: &ExecPlugin, config: &Config) -> Result<Self, Error> {
        let cluster = plugin.provide_cluster_info.then(|| info::cluster(plugin, config)).transpose()?;
        Ok(Self { plugin: plugin.clone(), cluster, has_terminal: || std::io::stdin().is_terminal() })
    }

    fn is_interactive(&self) -> Result<bool, Error> {
        match self.plugin.interactive_mode {
            InteractiveMode::Never => Ok(false),
            InteractiveMode::IfAvailable => Ok((self.has_terminal)()),
            InteractiveMode::Always if (self.has_terminal)() => Ok(true),
            InteractiveMode::Always => {
                let why = "is not run, as it needs a terminal and standard input is none (interactiveMode: Always)";
                Err(failed(&self.plugin, why))
            }
        }
    }

    async fn run(&self) -> Result<Credential, Error> {
        let interactive = self.is_interactive()?;
        let info = info::exec_info(&self.plugin, self.cluster.as_ref(), interactive);
        let output = run::run(&self.plugin, &info, interactive).await?;
        answer::read(&output, self.plugin.api_version).map_err(|why| match why {
            answer::Wrong::Answer(why) => failed(&self.plugin, &why),
            answer::Wrong::Certificate(error) => {
                failed(&self.plugin, "answered with a certificate and a key of no use").with_source(error)
            }
        })
    }
}

impl Issuer for ExecIssuer {
    fn issue(&self, _: Option<Arc<Credential>>) -> IssueFuture<'_> {
        Box::pin(self.run())
    }
}

fn failed(plugin: &ExecPlugin, why: &str) -> Error {
    Error::new(ErrorKind::Auth, format!("credential plugin {} {why}", plugin.command.display()))
}

#[cfg(test)]
mod tests;
