//! A credential plugin: a program that returns credentials, checked and ready to run.

use std::{fmt, path::PathBuf, time::Duration};

use serde_json::Value;

use crate::client::config::kubeconfig::ExecEnvVar;

/// A program that returns credentials. `Debug` shows neither its arguments nor the values of its variables.
#[doc(alias = "ExecProvider")]
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ExecPlugin {
    /// The program: an absolute path, or a name to look up in `PATH`.
    pub command: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The variables of the program, in addition to those of this process.
    pub env: Vec<ExecEnvVar>,
    /// The version of `ExecCredential` that the program supports.
    pub api_version: ExecApiVersion,
    /// The message for users that do not have the program, safe to print on a terminal.
    pub install_hint: Option<String>,
    /// Whether the program receives the cluster's address and certificate authority.
    pub provide_cluster_info: bool,
    /// Whether the program uses standard input.
    pub interactive_mode: InteractiveMode,
    /// The configuration for the program in the cluster's entry.
    pub cluster_extension: Option<Value>,
    /// The time limit of a run that is not interactive; a minute by default.
    pub timeout: Duration,
}

impl ExecPlugin {
    /// Creates a plugin with defaults for everything else: it receives no cluster information and no standard input.
    pub fn new(command: impl Into<PathBuf>, api_version: ExecApiVersion) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            api_version,
            install_hint: None,
            provide_cluster_info: false,
            interactive_mode: InteractiveMode::Never,
            cluster_extension: None,
            timeout: TIMEOUT,
        }
    }
}

/// A version of `ExecCredential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecApiVersion {
    /// `client.authentication.k8s.io/v1`
    V1,
    /// `client.authentication.k8s.io/v1beta1`
    V1Beta1,
}

impl ExecApiVersion {
    /// Returns the name of the version in `apiVersion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1Beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::V1, Self::V1Beta1].into_iter().find(|version| version.as_str() == name)
    }
}

/// Whether a program uses standard input.
#[doc(alias = "ExecInteractiveMode")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InteractiveMode {
    /// The program does not receive standard input.
    Never,
    /// The program receives standard input if it is a terminal.
    IfAvailable,
    /// The program requires standard input, and fails without a terminal.
    Always,
}

impl InteractiveMode {
    /// Returns the name of the mode in a kubeconfig.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "Never",
            Self::IfAvailable => "IfAvailable",
            Self::Always => "Always",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Never, Self::IfAvailable, Self::Always].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Replaces control and invisible characters, which could change or hide text on a terminal, with their code points.
pub(super) fn safe_for_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}');
        if invisible || c.is_control() && !('\t'..='\r').contains(&c) {
            safe.push_str(&format!("U+{:04X}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe
}

impl fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecPlugin")
            .field("command", &self.command)
            .field("args", &format_args!("[{} redacted]", self.args.len()))
            .field("env", &self.env)
            .field("api_version", &self.api_version)
            .field("install_hint", &self.install_hint)
            .field("provide_cluster_info", &self.provide_cluster_info)
            .field("interactive_mode", &self.interactive_mode)
            .field("cluster_extension", &self.cluster_extension.as_ref().map(|_| "[extension]"))
            .field("timeout", &self.timeout)
            .finish()
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);
