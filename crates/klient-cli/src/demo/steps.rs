//! The steps of the demo: each does something, waits for what must come of it, and fails if that does not come.

use std::{
    error::Error,
    fmt,
    io::{self, Write as _},
    time::{Duration, Instant},
};

use http::Method;
use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    Api, Client, Controller, Patch, SharedInformer,
    wait::{Until, wait_for},
};
use klient_apiserver::{ApiServer, Fault};
use klient_cli::sample_controller::Foo;
use serde_json::{Value, json};

/// What the steps work on.
pub(super) struct Demo {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) controller: Controller<Foo>,
    pub(super) foos: SharedInformer<Foo>,
    pub(super) deployments: SharedInformer<Deployment>,
    pub(super) colour: bool,
}

type Shown = Result<(), Box<dyn Error>>;

impl Demo {
    /// All steps.
    pub(super) async fn show(&self) -> Shown {
        self.foos.wait_for_sync().await?;
        self.deployments.wait_for_sync().await?;
        self.create().await?;
        self.scale().await?;
        self.status().await?;
        self.drift().await?;
        self.cut_watch().await?;
        self.failed_reconcile().await?;
        self.delete().await
    }

    async fn create(&self) -> Shown {
        self.title("Create", "Foo \"shop\" wants a Deployment \"web\" of 2, Foo \"news\" one called \"blog\" of 1")?;
        for wish in [Foo::new("shop", "web", Some(2)), Foo::new("news", "blog", Some(1))] {
            self.foo_api().create(&wish).await?;
        }
        self.wants("web", 2).await?;
        self.wants("blog", 1).await?;
        self.quiet().await
    }

    async fn scale(&self) -> Shown {
        self.title("Scale", "Foo \"shop\" wants 5")?;
        self.patch_foo("shop", json!({"spec": {"replicas": 5}})).await?;
        self.wants("web", 5).await?;
        self.quiet().await
    }

    async fn status(&self) -> Shown {
        self.title("Status", "3 replicas of \"web\" are up (a cluster would do this; here the demo does)")?;
        let api = self.deployment_api();
        let mut web = api.get("web").await?;
        web.status = serde_json::from_value(json!({"replicas": 5, "readyReplicas": 3, "availableReplicas": 3}))?;
        api.update_status(&web).await?;
        let told = Until::is(|wish: &Foo| wish.status.as_ref().is_some_and(|status| status.available_replicas == 3));
        wait_for(&self.foo_api(), "shop", &told, LIMIT).await?;
        self.good("Foo \"shop\" says so in its status")?;
        self.quiet().await
    }

    async fn drift(&self) -> Shown {
        self.title("Drift", "somebody scales Deployment \"web\" to 9, and deletes \"blog\"")?;
        let nine = Patch::merge(json!({"spec": {"replicas": 9}}));
        self.deployment_api().patch("web", nine.clone()).await?;
        let old = self.deployment_api().get("blog").await?.metadata.uid.unwrap_or_default();
        self.deployment_api().delete("blog").await?;
        self.wants("web", 5).await?;
        wait_for(&self.deployment_api(), "blog", &Until::replaced(old).and(Until::exists()), LIMIT).await?;
        self.good("Deployment \"blog\" is back")?;
        self.quiet().await
    }

    async fn cut_watch(&self) -> Shown {
        self.title("Cut watch", "all watches break, and new ones fail at first; meanwhile Foo \"shop\" wants 3")?;
        let lists = || -> u64 { self.foos.status().relists.values().sum() };
        let before = lists();
        self.server.inject(Fault::internal_error().on_watches(true).times(3));
        self.server.end_watches();
        self.patch_foo("shop", json!({"spec": {"replicas": 3}})).await?;
        self.wants("web", 3).await?;
        self.good(format_args!("nothing was lost, and {} lists were needed for it", lists() - before))?;
        self.quiet().await
    }

    async fn failed_reconcile(&self) -> Shown {
        self.title("Failed reconcile", "the server fails three writes of Deployments; Foo \"shop\" wants 4")?;
        let before = self.controller.status().failed;
        self.server.inject(Fault::internal_error().on_method(Method::PUT).on_path("/apis/apps/v1").times(3));
        self.patch_foo("shop", json!({"spec": {"replicas": 4}})).await?;
        self.wants("web", 4).await?;
        self.good(format_args!("after {} failures, each tried again later", self.controller.status().failed - before))?;
        self.quiet().await
    }

    async fn delete(&self) -> Shown {
        self.title("Delete", "Foo \"shop\" goes; its Deployment is left to the garbage collector")?;
        self.foo_api().delete("shop").await?;
        wait_for(&self.deployment_api(), "web", &Until::absent(), LIMIT).await?;
        self.good("Deployment \"web\" is gone, too")?;
        self.quiet().await
    }

    /// What happened in all.
    pub(super) fn summary(&self) -> Shown {
        self.heading("Summary")?;
        let status = self.controller.status();
        let mut out = io::stdout();
        writeln!(out, "reconciles   {} ended well, {} failed and were tried again", status.succeeded, status.failed)?;
        for informer in &status.informers {
            let lists: u64 = informer.relists.values().sum();
            let (resource, events, objects) = (&informer.resource, informer.events, informer.objects);
            writeln!(
                out,
                "{resource}: {events} events after {lists} list, {objects} objects in {} bytes",
                informer.bytes
            )?;
        }
        writeln!(
            out,
            "queue        {} ready, {} delayed, {} in process",
            status.queue.ready, status.queue.delayed, status.queue.in_process
        )?;
        let requests: u64 = self.server.requests().values().sum();
        writeln!(out, "server       {requests} requests, revision {}", self.server.revision())?;
        Ok(())
    }

    /// Waits until a Deployment wants so many replicas.
    async fn wants(&self, name: &str, replicas: i32) -> Shown {
        let began = Instant::now();
        let until = Until::is(move |deployment: &Deployment| deployment.spec.replicas == Some(replicas));
        wait_for(&self.deployment_api(), name, &until, LIMIT).await?;
        self.good(format_args!("Deployment {name:?} wants {replicas} ({:.0?})", began.elapsed()))
    }

    /// Waits until nothing is left to do, so that steps do not mix.
    async fn quiet(&self) -> Shown {
        let waiting = async {
            loop {
                let queue = self.controller.status().queue;
                if queue.ready + queue.in_process + queue.delayed == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        Ok(tokio::time::timeout(LIMIT, waiting).await.map_err(|_| "the queue does not come to rest")?)
    }

    async fn patch_foo(&self, name: &str, patch: Value) -> Shown {
        self.foo_api().patch(name, Patch::merge(patch)).await?;
        Ok(())
    }

    fn foo_api(&self) -> Api<Foo> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn deployment_api(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn title(&self, name: &str, what: &str) -> Shown {
        self.heading(format_args!("{name}: {what}"))
    }

    fn heading(&self, text: impl fmt::Display) -> Shown {
        let (bold, end) = if self.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        writeln!(io::stdout(), "\n{bold}== {text}{end}")?;
        Ok(())
    }

    fn good(&self, text: impl fmt::Display) -> Shown {
        let (green, end) = if self.colour { ("\x1b[1;32m", "\x1b[0m") } else { ("", "") };
        writeln!(io::stdout(), "{green}ok{end}  {text}")?;
        Ok(())
    }
}

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(30);
