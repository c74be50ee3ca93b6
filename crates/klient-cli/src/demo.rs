//! `klient demo`: a controller at work on an embedded API server.
//!
//! The default output is the story: what each step does, and what came of it. `--verbose` adds every stage of the pipeline.

mod stages;
mod steps;
mod story;

use std::{error::Error, path::PathBuf, time::Duration};

use clap::Args;
use klient::{
    Client, InformerFactory, Manager,
    client::config::{Config, Kubeconfig, Overrides},
    metrics::Registry,
};
use klient_apiserver::{ApiServer, Listening};
use klient_cli::sample_controller::{Foo, Syncer, builder, events, install};
use tokio::sync::oneshot;
use tracing_subscriber::{filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use self::{stages::Stages, steps::Demo, story::Story};
use crate::output::Palette;

/// The options of the demo.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Keep running at the end, for kubectl and other programs
    #[arg(long)]
    keep: bool,
    /// Where to write the kubeconfig, with --keep
    #[arg(long, value_name = "FILE", default_value = "klient.kubeconfig")]
    kubeconfig: PathBuf,
    /// Show every stage: watch, batch, cache, queue, reconcile
    #[arg(long, short)]
    verbose: bool,
}

/// Runs the demo.
///
/// # Errors
///
/// Returns an error if a step does not have the expected outcome.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let palette = Palette::of_stdout();
    let story = Story::new(palette);
    if arguments.verbose {
        tracing_subscriber::registry().with(Stages::new(palette)).with(LevelFilter::TRACE).init();
    }
    let server = ApiServer::start().await?;
    let listening = server.listen(0).await?;
    let client = client_of(&listening)?;
    install(&client).await?;
    story.title("klient demo")?;
    story.row("API server", format!("{}, in this process, over TLS and HTTP/2", listening.url()))?;
    story.row("controller", "gives each Foo (JSON) the Deployment (protobuf) that its spec asks for")?;

    let registry = Registry::new();
    let factory = InformerFactory::new(client.clone());
    let (foos, deployments) = (factory.namespaced::<Foo>(), factory.apps_v1().deployments());
    let (recorder, sink) = events(client.clone());
    let syncer = Syncer::new(client.clone(), deployments.lister(), recorder);
    let controller = builder(foos.clone(), deployments.clone()).registry(registry.clone()).reconcile(syncer);
    let manager = Manager::builder()
        .informer(&foos)
        .informer(&deployments)
        .controller(controller.clone())
        .task("events", async move |stop| {
            sink.run_until(stop.requested()).await;
            Ok::<(), klient::Error>(())
        })
        .build()
        .await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));

    let demo = Demo { server, client, controller, foos, deployments, story };
    let outcome = demo.run().await;
    if outcome.is_ok() {
        demo.summarize()?;
        if arguments.keep {
            let path = std::path::absolute(&arguments.kubeconfig)?;
            listening.write_kubeconfig(&path, None)?;
            story.title("The server keeps running until it is interrupted")?;
            story.line(format_args!("export KUBECONFIG={}", path.display()))?;
            story.line("kubectl get foos,deployments,events")?;
            story.line("kubectl scale deployment/blog --replicas 9; kubectl get deployment/blog")?;
            klient::shutdown::signal().await;
        } else if !arguments.verbose {
            story.line("\nklient demo --verbose shows every stage; --keep leaves the server running for kubectl.")?;
        }
    }
    drop(stop);
    tokio::time::timeout(Duration::from_secs(60), running).await???;
    outcome
}

fn client_of(listening: &Listening) -> Result<Client, Box<dyn Error>> {
    let kubeconfig = Kubeconfig::parse(listening.kubeconfig(None))?;
    Ok(Client::from_config(&Config::from_kubeconfig(&kubeconfig, &Overrides::default())?.no_proxy())?)
}
