//! A credential plugin, as a kubeconfig describes it.
//!
//! The values are stored as written. They are checked when the configuration is resolved.

use std::{fmt, path::PathBuf};

use serde_json::{Map, Value};

use super::{
    fields::{Fields, ObjectBuilder},
    problem::Problem,
};
use crate::client::config::Secret;

/// A program that returns credentials. `Debug` shows neither its arguments nor the values of its variables.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecConfig {
    /// The program: a path, or a name to look up in `PATH`.
    pub command: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The variables of the program, in addition to those of this process.
    pub env: Vec<ExecEnvVar>,
    /// The version of `ExecCredential` that the program supports, such as `client.authentication.k8s.io/v1`.
    pub api_version: Option<String>,
    /// The message for users that do not have the program.
    pub install_hint: Option<String>,
    /// Whether the program receives the cluster's address and certificate authority.
    pub provide_cluster_info: bool,
    /// Whether the program uses standard input: `Never`, `IfAvailable` or `Always`.
    pub interactive_mode: Option<String>,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
}

/// An environment variable of the program.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecEnvVar {
    /// The name of the variable.
    pub name: String,
    /// The value of the variable.
    pub value: Secret,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
}

impl ExecEnvVar {
    /// Creates a variable.
    pub fn new(name: impl Into<String>, value: impl Into<Secret>) -> Self {
        Self { name: name.into(), value: value.into(), other: Map::new() }
    }
}

impl ExecConfig {
    /// Creates a plugin that supports that version.
    pub fn new(command: impl Into<PathBuf>, api_version: impl Into<String>) -> Self {
        Self { command: command.into(), api_version: Some(api_version.into()), ..Self::default() }
    }

    pub(super) fn read(mut fields: Fields) -> Result<Self, Problem> {
        Ok(Self {
            command: fields.path("command")?.unwrap_or_default(),
            args: fields.texts("args")?,
            env: fields.list("env")?.into_iter().map(|(path, item)| read_env(path, item)).collect::<Result<_, _>>()?,
            api_version: fields.text("apiVersion")?,
            install_hint: fields.text("installHint")?,
            provide_cluster_info: fields.flag("provideClusterInfo")?,
            interactive_mode: fields.text("interactiveMode")?,
            other: fields.rest(),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        let env = self.env.iter().map(|variable| {
            ObjectBuilder::new(&variable.other)
                .always("name", variable.name.as_str())
                .always("value", variable.value.expose())
                .done()
        });
        ObjectBuilder::new(&self.other)
            .always("command", self.command.to_string_lossy())
            .list("args", self.args.iter().map(String::as_str))
            .list("env", env)
            .text("apiVersion", self.api_version.as_deref())
            .text("installHint", self.install_hint.as_deref())
            .always("provideClusterInfo", self.provide_cluster_info)
            .text("interactiveMode", self.interactive_mode.as_deref())
            .done()
    }
}

fn read_env(path: String, item: Value) -> Result<ExecEnvVar, Problem> {
    let mut fields = Fields::new(path, item)?;
    let name = fields.text("name")?.unwrap_or_default();
    Ok(ExecEnvVar { name, value: fields.secret("value")?.unwrap_or_default(), other: fields.rest() })
}

impl fmt::Debug for ExecEnvVar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=[redacted]", self.name)
    }
}

impl fmt::Debug for ExecConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecConfig")
            .field("command", &self.command)
            .field("args", &format_args!("[{} redacted]", self.args.len()))
            .field("env", &self.env)
            .field("api_version", &self.api_version)
            .field("install_hint", &self.install_hint)
            .field("provide_cluster_info", &self.provide_cluster_info)
            .field("interactive_mode", &self.interactive_mode)
            .field("other", &self.other.keys().collect::<Vec<_>>())
            .finish()
    }
}
