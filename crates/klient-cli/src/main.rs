//! The `klient` command.

mod api_resources;
mod cluster;
mod copy;
mod demo;
mod exec;
mod explain;
mod get;
mod inside;
mod logs;
mod node;
mod output;
mod plain_http;
mod port_forward;
mod progress;
mod replay;
mod serve;
mod watch;
mod write;

use std::{error::Error, io, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};
use mimalloc::MiMalloc;

/// A write to the embedded server makes some hundred small allocations, which cost a sixth less CPU time with this allocator than with glibc's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Kubernetes without a cluster, and a reader of the clusters that you have
#[derive(Parser)]
#[command(name = "klient", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a controller on an embedded API server, and show what happens when things change and fail
    Demo(demo::Arguments),
    /// Run an embedded Kubernetes API server until interrupted
    Serve(serve::Arguments),
    /// Show objects of a cluster
    Get(get::Arguments),
    /// Watch objects of a cluster and show their changes
    Watch(watch::Arguments),
    /// Show the kinds that a cluster serves
    ApiResources(api_resources::Arguments),
    /// Show the documentation of a kind and its fields
    Explain(explain::Arguments),
    /// Apply the objects of files, by server-side apply
    Apply(write::Apply),
    /// Delete objects
    Delete(write::Delete),
    /// Wait for a state of objects
    Wait(write::Wait),
    /// Show the log of a container, or the logs of all pods of a selector
    Logs(logs::Arguments),
    /// Run a command in a container
    Exec(exec::Arguments),
    /// Copy files and directories to and from containers
    Cp(copy::Arguments),
    /// Forward local ports to a pod, a service or a workload
    PortForward(port_forward::Arguments),
    /// Mark nodes as unschedulable
    Cordon(node::Cordon),
    /// Mark nodes as schedulable
    Uncordon(node::Cordon),
    /// Remove the pods of a node, within their disruption budgets
    Drain(node::Arguments),
    /// Explain why a key is not reconciled, from the debug page of a manager
    Why(inside::Why),
    /// Show the controllers of a manager, and the keys that are slow, fail or loop
    Top(inside::Look),
    /// Show the informers of a manager
    Informers(inside::Look),
    /// Show what a controller saw and did, from its recording, and run a program that replays it
    Replay(replay::Arguments),
    /// Print the completions for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments).await,
        Command::Serve(arguments) => serve::run(&arguments).await,
        Command::Get(arguments) => get::run(&arguments).await,
        Command::Watch(arguments) => watch::run(&arguments).await,
        Command::ApiResources(arguments) => api_resources::run(&arguments).await,
        Command::Explain(arguments) => explain::run(&arguments).await,
        Command::Apply(arguments) => write::apply(&arguments).await,
        Command::Delete(arguments) => write::delete(&arguments).await,
        Command::Wait(arguments) => write::wait(&arguments).await,
        Command::Logs(arguments) => logs::run(&arguments).await,
        Command::Exec(arguments) => match exec::run(&arguments).await {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Cp(arguments) => copy::run(&arguments).await,
        Command::PortForward(arguments) => port_forward::run(&arguments).await,
        Command::Cordon(arguments) => node::mark(&arguments, true).await,
        Command::Uncordon(arguments) => node::mark(&arguments, false).await,
        Command::Drain(arguments) => node::drain(&arguments).await,
        Command::Why(arguments) => inside::why(&arguments).await,
        Command::Top(arguments) => inside::top(&arguments).await,
        Command::Informers(arguments) => inside::informers(&arguments).await,
        Command::Replay(arguments) => match replay::run(&arguments).await {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "klient", &mut io::stdout());
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe has closed it, as `head` does. That is no failure.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&*error);
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
