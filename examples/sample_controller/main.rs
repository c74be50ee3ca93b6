//! Runs the sample controller on an embedded API server, or on a cluster if one is named.
//!
//! The controller itself is `klient_cli::sample_controller` (`crates/klient-cli/src/sample_controller`), which `klient demo` runs too.
//!
//! `cargo run -p klient-examples --bin sample-controller -- --help`

#![allow(clippy::disallowed_names, reason = "the kind is called Foo")]
#![allow(clippy::print_stdout)]

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use klient::{
    Api, Client, InformerFactory, Manager,
    client::config::{Config, Kubeconfig, KubeconfigFiles, Overrides},
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;
use klient_cli::sample_controller::{Foo, FooSpec, Syncer, builder, events, install};
use tracing::level_filters::LevelFilter;

/// Reconciles Foos with Deployments
#[derive(Parser)]
struct Arguments {
    /// The kubeconfig of a cluster, on which the kind has to be installed (`kubectl apply -f crates/klient-cli/src/sample_controller/crd.yaml`)
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The URL of a cluster's API server, instead of the one that the kubeconfig names
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// Run on the cluster of KUBECONFIG, ~/.kube/config, or the pod that this runs in
    #[arg(long)]
    cluster: bool,
    /// Reconcile only Foos of this namespace
    #[arg(long, default_value = "")]
    namespace: String,
    /// Serve /healthz, /readyz and /metrics on this address
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<std::net::SocketAddr>,
    /// The log level: error, warn, info, debug or trace
    #[arg(long, default_value = "info")]
    log_level: LevelFilter,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt().with_max_level(arguments.log_level).with_writer(std::io::stderr).init();
    let named = arguments.cluster || arguments.kubeconfig.is_some() || arguments.master.is_some();
    if named {
        let client = Client::from_config(&config(&arguments)?)?;
        return run(&client, &arguments, klient::shutdown::signal()).await;
    }
    let server = ApiServer::start().await?;
    let listening = server.listen(0).await?;
    let kubeconfig = Kubeconfig::parse(listening.kubeconfig(None))?;
    let client = Client::from_config(&Config::from_kubeconfig(&kubeconfig, &Overrides::default())?)?;
    install(&client).await?;
    run(&client, &arguments, show(&client)).await
}

/// Returns the configuration of the cluster.
fn config(arguments: &Arguments) -> Result<Config> {
    let files = match &arguments.kubeconfig {
        Some(path) => KubeconfigFiles::explicit(path),
        None => KubeconfigFiles::from_env(),
    };
    let overrides = match &arguments.master {
        Some(master) => Overrides::default().server(master),
        None => Overrides::default(),
    };
    Config::load(&files, &overrides).context("cannot load the configuration of a cluster")
}

/// Runs the controller until the signal.
async fn run(client: &Client, arguments: &Arguments, signal: impl Future<Output = ()> + Send) -> Result<()> {
    let factory = InformerFactory::new(client.clone()).namespace(&arguments.namespace);
    let (foos, deployments) = (factory.namespaced::<Foo>(), factory.apps_v1().deployments());
    let (recorder, sink) = events(client.clone());
    let syncer = Syncer::new(client.clone(), deployments.lister(), recorder);
    let mut manager = Manager::builder()
        .informer(&foos)
        .informer(&deployments)
        .controller(builder(foos.clone(), deployments.clone()).reconcile(syncer))
        .task("events", async move |stop| {
            sink.run_until(stop.requested()).await;
            Ok::<(), klient::Error>(())
        });
    if let Some(address) = arguments.serve {
        manager = manager.serve(address);
    }
    manager.build().await?.run_until(signal).await?;
    Ok(())
}

/// Creates a Foo on the embedded server, and waits for its Deployment and status.
async fn show(client: &Client) {
    let shown = async {
        let foos: Api<Foo> = Api::namespaced(client.clone(), "default");
        foos.create(&Foo::new("example", FooSpec::new("example-foo", Some(1)))).await?;
        let deployments = Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(client.clone(), "default");
        let made = wait_for(&deployments, "example-foo", &Until::exists(), Duration::from_secs(30)).await?;
        let status = Until::is(|foo: &Foo| foo.status.is_some());
        wait_for(&foos, "example", &status, Duration::from_secs(30)).await?;
        Ok::<_, klient::Error>(made)
    };
    match shown.await {
        Ok(Some(made)) => {
            println!("Foo example has its Deployment with {} replica", made.spec.replicas.unwrap_or_default());
        }
        Ok(None) => println!("Foo example has no Deployment"),
        Err(error) => println!("the example failed: {error:#}"),
    }
}
