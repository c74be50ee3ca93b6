//! `klient demo`: a controller at work on an embedded API server, and what happens at each stage.

mod stages;
mod steps;

use std::{
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

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

use self::{stages::Stages, steps::Demo};
use crate::output;

/// How to show it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Stay up at the end, for kubectl and others
    #[arg(long)]
    keep: bool,
    /// Where to write the kubeconfig, with --keep
    #[arg(long, value_name = "FILE", default_value = "klient.kubeconfig")]
    kubeconfig: PathBuf,
    /// Only what is done and what comes of it, not each stage
    #[arg(long, short)]
    quiet: bool,
}

/// Shows it. Fails if anything does not work as it should.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let colour = output::in_colour();
    if !arguments.quiet {
        tracing_subscriber::registry().with(Stages::new(colour)).with(LevelFilter::TRACE).init();
    }
    let server = ApiServer::start().await?;
    let listening = server.listen_tls(0).await?;
    let client = client_of(&listening)?;
    install(&client).await?;
    let mut out = io::stdout();
    writeln!(
        out,
        "An API server on {}, with the kind Foo, and a controller that gives each Foo its Deployment.",
        listening.url()
    )?;
    writeln!(out, "The client reaches it over TLS and HTTP/2: Foos travel as JSON, Deployments as protobuf.")?;

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

    let demo = Demo { server, client, controller, foos, deployments, colour };
    let shown = demo.show().await;
    if shown.is_ok() {
        demo.summary()?;
    }
    if arguments.keep && shown.is_ok() {
        let path = std::path::absolute(&arguments.kubeconfig)?;
        listening.write_kubeconfig(&path, None)?;
        writeln!(out, "\nIt stays up until it is interrupted:")?;
        writeln!(out, "export KUBECONFIG={}", path.display())?;
        writeln!(out, "kubectl get foos,deployments,events")?;
        writeln!(out, "kubectl scale deployment/blog --replicas 9; kubectl get deployment/blog")?;
        klient::shutdown::signal().await;
    }
    drop(stop);
    tokio::time::timeout(Duration::from_secs(60), running).await???;
    shown
}

fn client_of(listening: &Listening) -> Result<Client, Box<dyn Error>> {
    let kubeconfig = Kubeconfig::parse(listening.kubeconfig(None))?;
    Ok(Client::from_config(&Config::from_kubeconfig(&kubeconfig, &Overrides::default())?.no_proxy())?)
}
