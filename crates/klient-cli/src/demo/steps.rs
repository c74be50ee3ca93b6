//! The steps of the demo. Each step changes something, waits for the expected outcome, and fails if the outcome does not come.

#![allow(clippy::disallowed_names, reason = "the kind is called Foo")]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use http::Method;
use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    Api, Client, Controller, Patch, SharedInformer,
    wait::{Until, wait_for},
};
use klient_apiserver::{ApiServer, Fault};
use klient_cli::sample_controller::{Foo, FooSpec};
use serde_json::{Value, json};

use super::story::Story;

/// The server, the client, the controller and the printer that the steps use.
pub(super) struct Demo {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) controller: Controller<Foo>,
    pub(super) foos: SharedInformer<Foo>,
    pub(super) deployments: SharedInformer<Deployment>,
    pub(super) story: Story,
}

type StepResult = Result<(), Box<dyn Error>>;

impl Demo {
    /// Runs all steps in order.
    pub(super) async fn run(&self) -> StepResult {
        self.foos.wait_for_sync().await?;
        self.deployments.wait_for_sync().await?;
        self.create().await?;
        self.scale().await?;
        self.report_status().await?;
        self.repair().await?;
        self.survive_broken_watches().await?;
        self.retry_failures().await?;
        self.delete().await
    }

    async fn create(&self) -> StepResult {
        self.story.title("Create")?;
        self.story
            .action("create Foo \"shop\" (Deployment \"web\", 2 replicas) and Foo \"news\" (\"blog\", 1 replica)")?;
        for foo in [Foo::new("shop", FooSpec::new("web", Some(2))), Foo::new("news", FooSpec::new("blog", Some(1)))] {
            self.foo_api().create(&foo).await?;
        }
        self.expect_replicas("web", 2).await?;
        self.expect_replicas("blog", 1).await?;
        self.wait_until_idle().await
    }

    async fn scale(&self) -> StepResult {
        self.story.title("Scale")?;
        self.story.action("change Foo \"shop\" to 5 replicas")?;
        self.patch_foo("shop", json!({"spec": {"replicas": 5}})).await?;
        self.expect_replicas("web", 5).await?;
        self.wait_until_idle().await
    }

    async fn report_status(&self) -> StepResult {
        self.story.title("Report status")?;
        self.story.action("set 3 replicas of \"web\" to available, as a cluster would")?;
        let started = Instant::now();
        let api = self.deployment_api();
        let mut web = api.get("web").await?;
        web.status = serde_json::from_value(json!({"replicas": 5, "readyReplicas": 3, "availableReplicas": 3}))?;
        api.update_status(&web).await?;
        let reported = Until::is(|foo: &Foo| foo.status.as_ref().is_some_and(|status| status.available_replicas == 3));
        wait_for(&self.foo_api(), "shop", &reported, LIMIT).await?;
        self.story.outcome("the status of Foo \"shop\" shows 3 available replicas", started.elapsed())?;
        self.wait_until_idle().await
    }

    async fn repair(&self) -> StepResult {
        self.story.title("Repair")?;
        self.story.action("scale Deployment \"web\" to 9 and delete \"blog\", behind the controller's back")?;
        let started = Instant::now();
        self.deployment_api().patch("web", Patch::merge(json!({"spec": {"replicas": 9}}))).await?;
        let old = self.deployment_api().get("blog").await?.metadata.uid.unwrap_or_default();
        self.deployment_api().delete("blog").await?;
        self.expect_replicas("web", 5).await?;
        wait_for(&self.deployment_api(), "blog", &Until::replaced(old).and(Until::exists()), LIMIT).await?;
        self.story.outcome("Deployment \"blog\" was created again", started.elapsed())?;
        self.wait_until_idle().await
    }

    async fn survive_broken_watches(&self) -> StepResult {
        self.story.title("Survive broken watches")?;
        self.story.action("end all watches, fail the next 3, and change Foo \"shop\" to 3 replicas meanwhile")?;
        let started = Instant::now();
        let relists = || -> u64 { self.foos.status().relists.values().sum() };
        let before = relists();
        self.server.inject(Fault::internal_error().on_watches(true).times(3));
        self.server.end_watches();
        self.patch_foo("shop", json!({"spec": {"replicas": 3}})).await?;
        self.expect_replicas("web", 3).await?;
        let lists = relists() - before;
        self.story.outcome(format!("no event was lost, {lists} new lists were needed"), started.elapsed())?;
        self.wait_until_idle().await
    }

    async fn retry_failures(&self) -> StepResult {
        self.story.title("Retry failures")?;
        self.story.action("fail the next 3 writes of Deployments, and change Foo \"shop\" to 4 replicas")?;
        let started = Instant::now();
        let before = self.controller.status().failed;
        self.server.inject(Fault::internal_error().on_method(Method::PUT).on_path("/apis/apps/v1").times(3));
        self.patch_foo("shop", json!({"spec": {"replicas": 4}})).await?;
        self.expect_replicas("web", 4).await?;
        let failed = self.controller.status().failed - before;
        self.story.outcome(format!("{failed} failed reconciles were retried with backoff"), started.elapsed())?;
        self.wait_until_idle().await
    }

    async fn delete(&self) -> StepResult {
        self.story.title("Delete")?;
        self.story.action("delete Foo \"shop\", and leave its Deployment to the garbage collector")?;
        let started = Instant::now();
        self.foo_api().delete("shop").await?;
        wait_for(&self.deployment_api(), "web", &Until::absent(), LIMIT).await?;
        self.story.outcome("Deployment \"web\" was deleted, too", started.elapsed())?;
        self.wait_until_idle().await
    }

    /// Prints what happened in all.
    pub(super) fn summarize(&self) -> StepResult {
        self.story.title("Summary")?;
        let status = self.controller.status();
        let (succeeded, failed) = (status.succeeded, status.failed);
        self.story.row("reconciles", format!("{succeeded} succeeded, {failed} failed and were retried"))?;
        for informer in &status.informers {
            let lists: u64 = informer.relists.values().sum();
            let name = informer.resource.split('.').next().unwrap_or_default();
            let (events, objects, bytes) = (informer.events, informer.objects, informer.bytes);
            let text = format!("{lists} list, {events} watch events, {objects} cached in {bytes} bytes");
            self.story.row(name, text)?;
        }
        let queue = status.queue;
        let (ready, delayed, in_process) = (queue.ready, queue.delayed, queue.in_process);
        self.story.row("work queue", format!("{ready} ready, {delayed} delayed, {in_process} in process"))?;
        let requests: u64 = self.server.requests().values().sum();
        self.story.row("API server", format!("{requests} requests, no cluster"))?;
        Ok(())
    }

    /// Waits until a Deployment has this number of desired replicas.
    async fn expect_replicas(&self, name: &str, replicas: i32) -> StepResult {
        let started = Instant::now();
        let until = Until::is(move |deployment: &Deployment| deployment.spec.replicas == Some(replicas));
        wait_for(&self.deployment_api(), name, &until, LIMIT).await?;
        let unit = if replicas == 1 { "replica" } else { "replicas" };
        self.story.outcome(format!("Deployment {name:?} has {replicas} {unit}"), started.elapsed())?;
        Ok(())
    }

    /// Waits until the queue is empty, so that the stages of two steps do not mix.
    async fn wait_until_idle(&self) -> StepResult {
        let idle = async {
            loop {
                let queue = self.controller.status().queue;
                if queue.ready + queue.in_process + queue.delayed == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let seconds = LIMIT.as_secs();
        tokio::time::timeout(LIMIT, idle)
            .await
            .map_err(|_| format!("the work queue of the demo was not empty after {seconds} s"))?;
        Ok(())
    }

    async fn patch_foo(&self, name: &str, patch: Value) -> StepResult {
        self.foo_api().patch(name, Patch::merge(patch)).await?;
        Ok(())
    }

    fn foo_api(&self) -> Api<Foo> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn deployment_api(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), "default")
    }
}

/// The longest time that an outcome may take.
const LIMIT: Duration = Duration::from_secs(30);
