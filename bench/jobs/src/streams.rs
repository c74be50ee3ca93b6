//! The parts that the jobs of streams share. `xtask/src/bench/streams.rs` is the program behind the forwarded port.

use anyhow::{Context as _, Result, ensure};

use crate::{Answer, Arguments};

/// The number of bytes of one operation.
pub const MEGABYTE: usize = 1 << 20;
/// The number of bytes of a short request, and of its response.
pub const TURN: usize = 100;

/// Returns the port of the program behind the forwarded port.
pub fn forwarded_port(arguments: &Arguments) -> Result<u16> {
    let (_, port) = arguments.replay.rsplit_once(':').context("no address of a program is given")?;
    Ok(port.parse()?)
}

/// Returns the first bytes of a forwarded connection: what to do (`r`, `w` or `e`), and with how many bytes.
pub fn forwarded_request(what: u8, bytes: usize) -> Vec<u8> {
    [&[what][..], &(bytes as u64).to_be_bytes()].concat()
}

/// Returns the result of a job that moved a number of bytes.
pub fn moved(arguments: &Arguments, bytes: usize) -> Result<Answer> {
    ensure!(bytes == arguments.count * MEGABYTE, "{bytes} bytes for {} megabytes", arguments.count);
    let mut answer = Answer::default();
    (0..arguments.count).for_each(|_| answer.add_number(1));
    Ok(answer)
}
