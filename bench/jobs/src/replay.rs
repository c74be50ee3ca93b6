//! The control requests of the replay server: send changes to a watch, or end it for good.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use anyhow::{Context as _, Result, ensure};

use crate::Arguments;

/// Requests that the server sends the changes to one watch, now or as soon as a watch is open.
pub fn replay_changes(arguments: &Arguments) -> Result<()> {
    ask(arguments, "change")
}

/// Requests that the server ends one watch and rejects its resumption.
pub fn replay_expiry(arguments: &Arguments) -> Result<()> {
    ask(arguments, "expire")
}

fn ask(arguments: &Arguments, what: &str) -> Result<()> {
    let mut stream = TcpStream::connect(&arguments.replay).with_context(|| arguments.replay.clone())?;
    write!(stream, "POST /replay/{what} HTTP/1.1\r\nHost: replay\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200 "), "the replay server answers {answer}");
    Ok(())
}
