//! `klient exec`: a command in a container, with this terminal as its own if asked for.

use std::{
    error::Error,
    io::{Read as _, Write as _},
    process::ExitCode,
};

use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api,
    client::streams::{Process, TerminalSize},
};
use tokio::{io::AsyncWriteExt as _, sync::mpsc};

use crate::{cluster::Namespaced, output};

/// The options of `klient exec`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Namespaced,
    /// The pod
    pod: String,
    /// The command, after two dashes
    #[arg(last = true, required = true)]
    command: Vec<String>,
    /// The container [default: that of the pod's annotation, or the first]
    #[arg(long, short)]
    container: Option<String>,
    /// Pass this command's input on
    #[arg(long, short = 'i')]
    stdin: bool,
    /// Give the command a terminal
    #[arg(long, short = 't')]
    tty: bool,
}

/// Runs the command, and exits with its exit code.
pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let pods: Api<Pod> = arguments.place.api()?;
    let mut exec = pods.exec(&arguments.pod, arguments.command.clone()).stdin(arguments.stdin).tty(arguments.tty);
    if let Some(container) = &arguments.container {
        exec = exec.container(container);
    }
    if let Some(size) = TerminalSize::of_terminal().filter(|_| arguments.tty) {
        exec = exec.terminal_size(size);
    }
    let process = exec.await?;
    // Afterwards, so that errors are printed to a terminal as it was.
    let _raw = (arguments.tty && arguments.stdin).then(output::RawTerminal::enter).flatten();
    let code = talk(process).await?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Connects a process with this command's streams, and returns its exit code.
pub(crate) async fn talk(mut process: Process) -> Result<i32, Box<dyn Error>> {
    let (stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
    let resizer = process.resizer();
    let input = async move {
        let Some(mut stdin) = stdin else { return };
        let mut own = own_input();
        while let Some(chunk) = own.recv().await {
            if stdin.write_all(&chunk).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
        // An error means that the process does not read any more.
        let _ = stdin.shutdown().await;
    };
    let sizes = async move {
        if let Some(mut resizer) = resizer {
            // The size of the terminal is worth no error.
            let _ = resizer.follow_terminal().await;
        }
    };
    let outputs = async move {
        let out = async {
            let Some(mut stdout) = stdout else { return Ok(()) };
            while let Some(chunk) = stdout.chunk().await? {
                let mut own = std::io::stdout().lock();
                own.write_all(&chunk)?;
                own.flush()?;
            }
            Ok::<_, std::io::Error>(())
        };
        let errors = async {
            let Some(mut stderr) = stderr else { return Ok(()) };
            while let Some(chunk) = stderr.chunk().await? {
                std::io::stderr().lock().write_all(&chunk)?;
            }
            Ok::<_, std::io::Error>(())
        };
        tokio::try_join!(out, errors)
    };
    tokio::pin!(outputs);
    // Input and sizes end with the process, which may not read them.
    tokio::select! {
        ended = &mut outputs => drop(ended?),
        ((), ()) = async { tokio::join!(input, sizes) } => drop(outputs.await?),
    }
    Ok(process.wait().await?.code())
}

/// Reads this command's input on a thread of its own, for which nothing waits at the end.
fn own_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut buffer = vec![0; BUFFER];
        while let Ok(read @ 1..) = std::io::stdin().read(&mut buffer) {
            if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

const BUFFER: usize = 16 << 10;
