//! exec and port-forward. kube has WebSockets only.

use anyhow::{Context as _, Result, ensure};
use bench_jobs::{
    Answer, Arguments, Job, MEGABYTE, Mark, Measured, TURN, forwarded_port, forwarded_request, moved, name,
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Status};
use kube::{Api, api::AttachParams};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// Runs a job of streams. Returns `None` for other jobs.
pub(crate) async fn run(arguments: &Arguments, pods: &Api<Pod>) -> Result<Option<(Measured, Answer)>> {
    Ok(Some(match arguments.job {
        Job::ExecRead => exec_read(arguments, pods).await?,
        Job::ExecWrite => exec_write(arguments, pods).await?,
        Job::ForwardRead | Job::ForwardWrite | Job::ForwardTurns => forward(arguments, pods).await?,
        _ => return Ok(None),
    }))
}

async fn exec_read(arguments: &Arguments, pods: &Api<Pod>) -> Result<(Measured, Answer)> {
    let bytes = (arguments.count * MEGABYTE).to_string();
    let parameters = AttachParams::default().max_stdout_buf_size(BUFFER);
    let mark = Mark::now()?;
    let mut process = pods.exec(&name(0), ["head", "-c", &bytes, "/dev/zero"], &parameters).await?;
    let status = process.take_status().context("no status")?;
    let read = read_all(&mut process.stdout().context("no output")?).await?;
    check(status.await)?;
    Ok((mark.measured()?, moved(arguments, read)?))
}

async fn exec_write(arguments: &Arguments, pods: &Api<Pod>) -> Result<(Measured, Answer)> {
    let block = vec![0; 32 << 10];
    let parameters = AttachParams::default().stdin(true).max_stdin_buf_size(BUFFER);
    let mark = Mark::now()?;
    let mut process = pods.exec(&name(0), ["wc", "-c"], &parameters).await?;
    let status = process.take_status().context("no status")?;
    let mut stdin = process.stdin().context("no input")?;
    for _ in 0..arguments.count * MEGABYTE / block.len() {
        stdin.write_all(&block).await?;
    }
    stdin.shutdown().await?;
    let mut output = String::new();
    process.stdout().context("no output")?.read_to_string(&mut output).await?;
    check(status.await)?;
    Ok((mark.measured()?, moved(arguments, output.trim().parse()?)?))
}

async fn forward(arguments: &Arguments, pods: &Api<Pod>) -> Result<(Measured, Answer)> {
    let block = vec![0; 32 << 10];
    let bytes = arguments.count * MEGABYTE;
    let port = forwarded_port(arguments)?;
    let mut forward = pods.portforward(&name(0), &[port]).await?;
    let mark = Mark::now()?;
    let mut connection = forward.take_stream(port).context("no stream")?;
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

fn check(status: Option<Status>) -> Result<()> {
    let status = status.and_then(|status| status.status);
    ensure!(status.as_deref() == Some("Success"), "the process failed: {status:?}");
    Ok(())
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

/// The size of buffers that the others have, too. The library's own is 1 KiB.
const BUFFER: usize = 64 << 10;
