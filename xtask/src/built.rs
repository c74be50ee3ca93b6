//! The programs that `cargo test --workspace` builds.
//!
//! Other commands choose other features of dependencies, and build most of the workspace again. Steps that follow the tests run
//! the programs of the tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{output, run};

/// The tests, examples and binaries of the workspace.
pub(crate) struct Built {
    programs: Vec<Program>,
}

struct Program {
    kind: String,
    name: String,
    path: String,
    /// The folder of the program's package, in which tests run.
    folder: PathBuf,
}

impl Built {
    /// Builds all programs that are not up to date.
    pub(crate) fn all(root: &Path) -> Result<Self> {
        let arguments = ["test", "--locked", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
        let lines = output(root, "cargo", &arguments)?;
        let programs = lines.lines().filter_map(|line| Program::parse(&serde_json::from_str(line).ok()?)).collect();
        Ok(Self { programs })
    }

    /// Runs a test program.
    pub(crate) fn test(&self, name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
        let program = self.find("test", name)?;
        run(&program.folder, &program.path, arguments, environment)
    }

    /// Runs an example.
    pub(crate) fn example(&self, root: &Path, name: &str, environment: &[(&str, &str)]) -> Result<()> {
        run(root, &self.find("example", name)?.path, &[], environment)
    }

    /// Runs a binary.
    pub(crate) fn binary(&self, root: &Path, name: &str, arguments: &[&str]) -> Result<()> {
        run(root, &self.find("bin", name)?.path, arguments, &[])
    }

    fn find(&self, kind: &str, name: &str) -> Result<&Program> {
        let found = self.programs.iter().find(|program| program.kind == kind && program.name == name);
        found.with_context(|| format!("`cargo test --workspace` builds no {kind} called {name}"))
    }
}

impl Program {
    fn parse(message: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let kind = text(&message["target"]["kind"][0])?;
        // The unit tests of a binary have its name.
        if kind == "bin" && message["profile"]["test"] == true {
            return None;
        }
        let manifest = PathBuf::from(text(&message["manifest_path"])?);
        Some(Self {
            kind,
            name: text(&message["target"]["name"])?,
            path: text(&message["executable"])?,
            folder: manifest.parent()?.to_owned(),
        })
    }
}
