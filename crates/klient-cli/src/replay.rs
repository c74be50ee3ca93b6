//! `klient replay`: a recording as text, and the environment of a program that replays it.
//!
//! The controller's code is in the user's program: a test that calls `klient_replay::Replay::from_env()`. This command shows the recording,
//! or runs that program on it.

use std::{
    collections::HashSet,
    error::Error,
    ffi::OsString,
    io::{self, BufRead as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use klient::{ObjectKey, recording::Recording};

/// The options of `klient replay`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The recording, as `Recorder::save` writes it
    file: PathBuf,
    /// Show only what is about this object, as NAMESPACE/NAME, or NAME for an object without namespace
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Wait for the enter key after each line
    #[arg(long)]
    step: bool,
    /// The program that replays the recording with the controller's code, such as `cargo test last_night`; it finds the file in KLIENT_REPLAY
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Shows the recording, or runs the program on it.
pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let recording = Recording::open(&arguments.file)?;
    if let Some((program, rest)) = arguments.program.split_first() {
        let file = std::path::absolute(&arguments.file)?;
        let status = tokio::process::Command::new(program)
            .args(rest)
            .env("KLIENT_REPLAY", file)
            .status()
            .await
            .map_err(|error| format!("cannot run {}: {error}", program.to_string_lossy()))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
    }
    let key = arguments.key.as_deref().map(str::parse::<ObjectKey>).transpose()?;
    show(&recording, key.as_ref(), arguments.step)?;
    Ok(ExitCode::SUCCESS)
}

fn show(recording: &Recording, key: Option<&ObjectKey>, step: bool) -> Result<(), Box<dyn Error>> {
    let mut output = io::stdout().lock();
    let mut input = io::stdin().lock();
    let begin = if recording.header.whole { "the start of the process" } else { "a running process" };
    writeln!(output, "recorded from {begin}, at {}", recording.header.started)?;
    let mut turns = HashSet::new();
    let mut shown = 0_usize;
    for entry in &recording.entries {
        let is_about = match (key, entry.step.key(), entry.step.turn()) {
            (None, ..) => true,
            (Some(key), Some(found), turn) => {
                let is_about = *key == found;
                turns.extend(turn.filter(|_| is_about));
                is_about
            }
            (Some(_), None, turn) => turn.is_some_and(|turn| turns.contains(&turn)),
        };
        if !is_about {
            continue;
        }
        shown += 1;
        writeln!(output, "{entry}")?;
        output.flush()?;
        if step && input.read_line(&mut String::new())? == 0 {
            break;
        }
    }
    if let Some(key) = key.filter(|_| shown == 0) {
        return Err(format!("the recording has nothing about {key}").into());
    }
    Ok(())
}
