//! Credentials from a program: `client.authentication.k8s.io`, versions `v1` and `v1beta1`.
//!
//! The program receives the request in an environment variable and writes its response to standard output. Its standard
//! error is shown to the user. A program cannot hang a client: unless it is interactive, it has a time limit. No
//! message shows its arguments, its variables or its response.

mod info;
mod response;
mod run;

use std::{io::IsTerminal, sync::Arc};

use serde_json::Value;

use crate::client::{
    auth::{Credential, IssueFuture, Issuer},
    config::{Config, ExecPlugin, InteractiveMode, PluginPolicy},
};
use crate::{Error, ErrorKind};

/// A source of credentials that runs a program.
pub(in crate::client) struct ExecIssuer {
    plugin: ExecPlugin,
    policy: PluginPolicy,
    /// The cluster information for the program, if the plugin is configured to receive it.
    cluster: Option<Value>,
    /// Returns whether standard input is a terminal.
    has_terminal: fn() -> bool,
}

impl ExecIssuer {
    pub(in crate::client) fn new(plugin: &ExecPlugin, config: &Config) -> Result<Self, Error> {
        config.plugin_policy.check().map_err(|why| Error::new(ErrorKind::Config, why))?;
        let policy = config.plugin_policy.clone();
        let cluster = plugin.provide_cluster_info.then(|| info::cluster(plugin, config)).transpose()?;
        Ok(Self { plugin: plugin.clone(), policy, cluster, has_terminal: || std::io::stdin().is_terminal() })
    }

    fn is_interactive(&self) -> Result<bool, Error> {
        match self.plugin.interactive_mode {
            InteractiveMode::Never => Ok(false),
            InteractiveMode::IfAvailable => Ok((self.has_terminal)()),
            InteractiveMode::Always if (self.has_terminal)() => Ok(true),
            InteractiveMode::Always => {
                let why = "requires a terminal (interactiveMode: Always), but standard input is not one";
                Err(failed(&self.plugin, why))
            }
        }
    }

    async fn run(&self) -> Result<Credential, Error> {
        let program = self.policy.program(&self.plugin.command).map_err(|why| failed(&self.plugin, why))?;
        let interactive = self.is_interactive()?;
        let info = info::exec_info(&self.plugin, self.cluster.as_ref(), interactive);
        let output = run::run(&self.plugin, &program, &info, interactive).await?;
        response::read(&output, self.plugin.api_version).map_err(|why| match why {
            response::Invalid::Response(why) => failed(&self.plugin, &why),
            response::Invalid::Certificate(error) => {
                failed(&self.plugin, "returned an unusable certificate or key").with_source(error)
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
