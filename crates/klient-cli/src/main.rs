//! The `klient` command.

mod api_resources;
mod cluster;
mod demo;
mod get;
mod output;
mod serve;
mod watch;

use std::{error::Error, io, process::ExitCode};

use clap::{Parser, Subcommand};

/// Kubernetes without a cluster, and a look at those with one.
#[derive(Parser)]
#[command(name = "klient", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a controller at work on an embedded API server: what happens at each stage, and what goes wrong
    Demo(demo::Arguments),
    /// Run an embedded Kubernetes API server until it is interrupted
    Serve(serve::Arguments),
    /// Show objects of a cluster
    Get(get::Arguments),
    /// Follow the objects of a cluster: what is there, and what changes
    Watch(watch::Arguments),
    /// Show what kinds a cluster has
    ApiResources(api_resources::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments).await,
        Command::Serve(arguments) => serve::run(&arguments).await,
        Command::Get(arguments) => get::run(&arguments).await,
        Command::Watch(arguments) => watch::run(&arguments).await,
        Command::ApiResources(arguments) => api_resources::run(&arguments).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough, as `head` does.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&*error);
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
