//! `bench-replay --recording FOLDER --size N [--events N] [--pace N] [--port N]`: what a real server answered, served again over plain HTTP on
//! loopback, for as many objects as wanted.
//!
//! It costs little per byte, so that on a machine with few cores it takes little from the client that is measured. It prints its address as
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
    /// How many of them change when a client asks for it.
    events: usize,
    /// How many of them in a second; all at once if it is zero.
    pace: u32,
    /// Any free one if it is zero.
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

/// Listens where it is wanted, or says that this is not possible.
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
