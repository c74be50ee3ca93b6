//! Runs other programs. Errors name the command that failed.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

/// Runs a program until it exits.
pub(crate) fn run(directory: &Path, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let words = [&[program], arguments].concat().join(" ");
    let status = command(directory, program, arguments, environment)
        .status()
        .with_context(|| format!("cannot start `{words}`"))?;
    if !status.success() {
        bail!("`{words}` failed: {status}");
    }
    Ok(())
}

/// Runs a program until it exits, and returns its standard output.
pub(crate) fn output(directory: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let words = [&[program], arguments].concat().join(" ");
    let output =
        command(directory, program, arguments, &[]).output().with_context(|| format!("cannot start `{words}`"))?;
    if !output.status.success() {
        bail!("`{words}` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn command(directory: &Path, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).envs(environment.iter().copied());
    command
}
