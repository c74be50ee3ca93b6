//! The `klient` command.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Kubernetes without a cluster.
#[derive(Parser)]
#[command(name = "klient", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an embedded Kubernetes API server until it is interrupted
    Serve(serve::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(&arguments).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("error: {error}");
            let mut next = error.source();
            while let Some(cause) = next {
                eprint!(": {cause}");
                next = cause.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}
