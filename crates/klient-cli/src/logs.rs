//! `klient logs`: the log of a container, or the logs of all pods of a selector.

use std::{
    error::Error,
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use klient::{Api, client::logs::LogLine};

use crate::{
    cluster::Namespaced,
    output::{self, Paint, Palette},
};

/// The options of `klient logs`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Namespaced,
    /// The pod
    #[arg(required_unless_present = "selector", conflicts_with = "selector")]
    pod: Option<String>,
    /// All pods with these labels, merged by time
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// The container
    #[arg(long, short)]
    container: Option<String>,
    /// Keep reading, through broken connections and restarts
    #[arg(long, short)]
    follow: bool,
    /// The log of the container's previous run
    #[arg(long, short)]
    previous: bool,
    /// The number of lines from the end of each log
    #[arg(long, value_name = "LINES")]
    tail: Option<u64>,
    /// Only lines that are at most this old: 30s, 5m, 2h
    #[arg(long, value_parser = output::duration)]
    since: Option<Duration>,
    /// Print the time of each line
    #[arg(long)]
    timestamps: bool,
    /// The most logs that are read at a time
    #[arg(long, default_value_t = 50)]
    max_log_requests: usize,
}

/// Prints lines until the logs end or the command is interrupted.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let interrupted = klient::shutdown::signal();
    tokio::pin!(interrupted);
    tokio::select! {
        ended = print(arguments) => ended,
        () = &mut interrupted => Ok(()),
    }
}

async fn print(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let pods: Api<Pod> = arguments.place.api()?;
    if let Some(pod) = &arguments.pod {
        let mut logs = pods.logs(pod);
        if let Some(container) = &arguments.container {
            logs = logs.container(container);
        }
        if arguments.follow {
            logs = logs.follow();
        }
        if arguments.previous {
            logs = logs.previous();
        }
        if let Some(lines) = arguments.tail {
            logs = logs.tail_lines(lines);
        }
        if let Some(age) = arguments.since {
            logs = logs.since(age);
        }
        let mut lines = logs.lines();
        while let Some(line) = lines.next().await? {
            show(&line, arguments, false)?;
        }
        return Ok(());
    }
    let mut logs =
        pods.logs_of(arguments.selector.as_deref().unwrap_or_default()).max_streams(arguments.max_log_requests);
    if let Some(container) = &arguments.container {
        logs = logs.containers([container]);
    }
    if arguments.follow {
        logs = logs.follow();
    }
    if arguments.previous {
        logs = logs.previous();
    }
    if let Some(lines) = arguments.tail {
        logs = logs.tail_lines(lines);
    }
    if let Some(age) = arguments.since {
        logs = logs.since(age);
    }
    while let Some(line) = logs.next().await? {
        show(&line, arguments, true)?;
    }
    Ok(())
}

fn show(line: &LogLine, arguments: &Arguments, has_names: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if line.is_after_gap {
        output::print_note(&format!("warning: lines of pod {} may be missing here", line.pod));
    }
    if has_names {
        let palette = Palette::of_stdout();
        // A pod keeps its colour.
        let paints = [Paint::Cyan, Paint::Green, Paint::Yellow, Paint::Bold];
        let number: usize = line.pod.bytes().map(usize::from).sum();
        write!(out, "{} {} ", palette.paint(paints[number % paints.len()], &line.pod), line.container)?;
    }
    if let Some(time) = line.time.filter(|_| arguments.timestamps) {
        write!(out, "{time} ")?;
    }
    writeln!(out, "{}", line.text)?;
    out.flush()
}
