//! `bench-replay --recording FOLDER --size N [--events N] [--pace N] [--port N]`: replays a real server's responses over plain HTTP on
//! loopback, for any number of objects.
//!
//! It uses little CPU per byte, which matters on a machine with few cores. It prints its address as
//! its first line, and ends when its standard input does: with the process that started it.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod fleet;
mod http;
mod json;
mod protobuf;
mod recording;
mod serve;
mod template;

use std::{
    io::Read as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicUsize},
};

use anyhow::{Context as _, Result, bail, ensure};

use self::{fleet::Fleet, recording::Recording, serve::Server};

struct Arguments {
    recording: PathBuf,
    /// The number of objects.
    size: usize,
    /// The number of changes that a client can request.
    events: usize,
    /// The number of changes per second; all at once if zero.
    pace: u32,
    /// The port; a free one if zero.
    port: u16,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let recording = Recording::read(Path::new(&arguments.recording)).context("what was recorded")?;
    let fleet = Fleet {
        recording,
        size: arguments.size,
        events: arguments.events,
        pace: Some(arguments.pace).filter(|pace| *pace > 0),
        unseen: AtomicUsize::new(0),
    };
    let listener = listen(arguments.port)?;
    println!("{}", listener.local_addr()?);
    // The process that started this one holds the other end, which closes when that process ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    Arc::new(Server::new(fleet)).accept(&listener)
}

/// Listens on a port of the loopback address.
fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("cannot listen on 127.0.0.1:{port}"))
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut parsed = Self { recording: PathBuf::new(), size: 0, events: 0, pace: 0, port: 0 };
        while let Some(flag) = words.next() {
            let value = words.next().with_context(|| format!("{flag} has no value"))?;
            match flag.as_str() {
                "--recording" => parsed.recording = value.into(),
                "--size" => parsed.size = value.parse()?,
                "--events" => parsed.events = value.parse()?,
                "--pace" => parsed.pace = value.parse()?,
                "--port" => parsed.port = value.parse()?,
                _ => bail!("no option {flag}"),
            }
        }
        ensure!(parsed.size > 0, "--size must be given");
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_told_by_its_number() {
        let first = listen(0).unwrap();
        let port = first.local_addr().unwrap().port();
        let error = format!("{:#}", listen(port).unwrap_err());
        assert!(error.starts_with(&format!("cannot listen on 127.0.0.1:{port}: ")), "{error}");
    }
}
