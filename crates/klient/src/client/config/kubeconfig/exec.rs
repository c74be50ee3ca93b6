//! A program that gives credentials, as a kubeconfig describes it.
//!
//! Held as it was written; what makes sense is decided when the configuration is resolved.

use std::{fmt, path::PathBuf};

use serde_json::{Map, Value};

use super::{
    fields::{Fields, Making},
    problem::Problem,
};
use crate::client::config::Secret;

/// A program that gives credentials. `Debug` shows neither its arguments nor what is in its variables.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecConfig {
    /// The program: a path, or a name to be looked for in `PATH`.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets besides those of this process.
    pub env: Vec<ExecEnvVar>,
    /// The version of `ExecCredential` that it speaks, such as `client.authentication.k8s.io/v1`.
    pub api_version: Option<String>,
    /// What to tell people that do not have it.
    pub install_hint: Option<String>,
    /// Whether it is told about the cluster.
    pub provide_cluster_info: bool,
    /// Whether it uses standard input: `Never`, `IfAvailable` or `Always`.
    pub interactive_mode: Option<String>,
    /// Fields that this version does not know; written back as they are.
    pub other: Map<String, Value>,
}

/// A variable for the program.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecEnvVar {
    /// Name of the variable.
    pub name: String,
    /// What it is set to.
    pub value: Secret,
    /// Fields that this version does not know; written back as they are.
    pub other: Map<String, Value>,
}

impl ExecEnvVar {
    /// A variable.
    pub fn new(name: impl Into<String>, value: impl Into<Secret>) -> Self {
        Self { name: name.into(), value: value.into(), other: Map::new() }
    }
}

impl ExecConfig {
    /// A program that speaks that version.
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
            Making::new(&variable.other)
                .always("name", variable.name.as_str())
                .always("value", variable.value.expose())
                .done()
        });
        Making::new(&self.other)
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
