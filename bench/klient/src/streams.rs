//! exec and port-forward.

use anyhow::{Context as _, Result, ensure};
use bench_jobs::{
    Answer, Arguments, Job, MEGABYTE, Mark, Measured, TURN, forwarded_port, forwarded_request, moved, name,
};
use k8s_openapi::api::core::v1::Pod;
use klient::{Api, client::streams::StreamProtocol};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// Runs a job of streams. Returns `None` for other jobs.
pub(crate) async fn run(arguments: &Arguments, pods: &Api<Pod>) -> Result<Option<(Measured, Answer)>> {
    let (web_socket, spdy) = (StreamProtocol::WebSocket, StreamProtocol::Spdy);
    Ok(Some(match arguments.job {
        Job::ExecRead => exec_read(arguments, pods, web_socket).await?,
        Job::ExecReadSpdy => exec_read(arguments, pods, spdy).await?,
        Job::ExecWrite => exec_write(arguments, pods, web_socket).await?,
        Job::ExecWriteSpdy => exec_write(arguments, pods, spdy).await?,
        Job::ForwardRead | Job::ForwardWrite | Job::ForwardTurns => forward(arguments, pods).await?,
        _ => return Ok(None),
    }))
}

async fn exec_read(arguments: &Arguments, pods: &Api<Pod>, protocol: StreamProtocol) -> Result<(Measured, Answer)> {
    let bytes = (arguments.count * MEGABYTE).to_string();
    let mark = Mark::now()?;
    let mut process = pods.exec(&name(0), ["head", "-c", &bytes, "/dev/zero"]).protocol(protocol).await?;
    let read = read_all(&mut process.stdout().context("no output")?).await?;
    ensure!(process.wait().await?.success(), "the process failed");
    Ok((mark.measured()?, moved(arguments, read)?))
}

async fn exec_write(arguments: &Arguments, pods: &Api<Pod>, protocol: StreamProtocol) -> Result<(Measured, Answer)> {
    let block = vec![0; 32 << 10];
    let mark = Mark::now()?;
    let mut process = pods.exec(&name(0), ["wc", "-c"]).stdin(true).protocol(protocol).await?;
    let mut stdin = process.stdin().context("no input")?;
    for _ in 0..arguments.count * MEGABYTE / block.len() {
        stdin.write_all(&block).await?;
    }
    stdin.shutdown().await?;
    let output = process.output().await?;
    ensure!(output.status.success(), "the process failed");
    let written = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    Ok((mark.measured()?, moved(arguments, written)?))
}

async fn forward(arguments: &Arguments, pods: &Api<Pod>) -> Result<(Measured, Answer)> {
    let block = vec![0; 32 << 10];
    let bytes = arguments.count * MEGABYTE;
    let forward = pods.port_forward(&name(0), forwarded_port(arguments)?).await?;
    let mark = Mark::now()?;
    let mut connection = forward.connect().await?;
    match arguments.job {
        Job::ForwardRead => {
            connection.write_all(&forwarded_request(b'r', bytes)).await?;
            let read = read_all(&mut connection).await?;
            Ok((mark.measured()?, moved(arguments, read)?))
        }
        Job::ForwardWrite => {
            connection.write_all(&forwarded_request(b'w', bytes)).await?;
            for _ in 0..bytes / block.len() {
                connection.write_all(&block).await?;
            }
            ensure!(connection.read_u8().await? == 1, "the program has received something else");
            Ok((mark.measured()?, moved(arguments, bytes)?))
        }
        _ => {
            connection.write_all(&forwarded_request(b'e', 0)).await?;
            let mut back = [0; TURN];
            let mut answer = Answer::default();
            for _ in 0..arguments.count {
                connection.write_all(&block[..TURN]).await?;
                connection.read_exact(&mut back).await?;
                answer.add_number(1);
            }
            Ok((mark.measured()?, answer))
        }
    }
}

/// Reads to the end, and returns the number of bytes.
async fn read_all(reader: &mut (impl AsyncRead + Unpin)) -> Result<usize> {
    let mut buffer = vec![0; 32 << 10];
    let mut bytes = 0;
    loop {
        match reader.read(&mut buffer).await? {
            0 => return Ok(bytes),
            read => bytes += read,
        }
    }
}
