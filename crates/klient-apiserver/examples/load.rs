//! Puts load on the API server of `KUBECONFIG`: one job of `cargo xtask bench-server`, which measures the servers'
//! CPU before and after. Prints the amount of work and the seconds.

#![allow(clippy::print_stdout, missing_docs)]

use std::{
    error::Error,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client,
    client::config::{Config, KubeconfigFiles, Overrides},
    object::ResourceVersion,
};
use klient_apiserver::{ApiServer, User};
use serde_json::json;
use tokio::{sync::Barrier, task::JoinSet};

type Outcome = Result<(usize, f64), Failure>;
type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(1);
    let (done, seconds) = match arguments.first().map(String::as_str) {
        Some("create") => each(number(1), Write::Create).await?,
        Some("update") => each(number(1), Write::Update).await?,
        Some("apply") => each(number(1), Write::Apply).await?,
        Some("list") => list(number(1)).await?,
        Some("watch") => watch(number(1), number(2)).await?,
        Some("decide") => decide(number(1)).await?,
        Some("review") => review(number(1)).await?,
        Some("start") => start().await?,
        Some("start-process") => start_process(&arguments[1..])?,
        _ => return Err("usage: load create|update|apply|list|watch|decide|review|start|start-process ...".into()),
    };
    println!("{done} {seconds}");
    Ok(())
}

#[derive(Clone, Copy)]
enum Write {
    Create,
    Update,
    Apply,
}

fn connect() -> Result<Api<ConfigMap>, Failure> {
    Ok(Api::namespaced(Client::from_config(&Config::infer()?)?, "default"))
}

/// Returns an object of a bit more than a kilobyte.
fn map(index: usize, text: &str) -> Result<ConfigMap, Failure> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": format!("map-{index}"), "labels": {"app": "load", "index": index.to_string()}},
        "data": {"text": text.repeat(1000)},
    }))?)
}

/// Writes a number of objects, several at a time.
async fn each(count: usize, write: Write) -> Outcome {
    let maps = connect()?;
    maps.list().limit(1).await?;
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..WRITERS {
        let maps = maps.clone();
        workers.spawn(async move {
            for index in (worker..count).step_by(WRITERS) {
                match write {
                    Write::Create => maps.create(&map(index, "a")?).await?,
                    Write::Update => maps.update(&map(index, "b")?).await?,
                    Write::Apply => {
                        let name = format!("map-{index}");
                        let configuration = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                            "data": {"applied": "c".repeat(1000)}});
                        maps.apply(&configuration).manager("load").await?
                    }
                };
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok((count, start.elapsed().as_secs_f64()))
}

/// Lists everything repeatedly, and returns the number of objects.
async fn list(times: usize) -> Outcome {
    let maps = connect()?;
    let start = Instant::now();
    let mut seen = 0;
    for _ in 0..times {
        seen += maps.list().await?.items.len();
    }
    Ok((seen, start.elapsed().as_secs_f64()))
}

/// Runs watches that each see a number of changes, and returns the number of events.
async fn watch(watchers: usize, changes: usize) -> Outcome {
    let maps = connect()?;
    let list = maps.list().limit(1).await?;
    let version = ResourceVersion::from(list.metadata.resource_version.unwrap_or_default());
    let ready = Arc::new(Barrier::new(watchers + 1));
    let mut tasks = JoinSet::new();
    for group in 0..watchers.div_ceil(STREAMS) {
        // Servers limit the streams of a connection.
        let client = connect()?;
        for _ in 0..STREAMS.min(watchers - group * STREAMS) {
            let (client, version, ready) = (client.clone(), version.clone(), Arc::clone(&ready));
            tasks.spawn(async move {
                let mut events = client.watch().after(version).await?;
                ready.wait().await;
                for _ in 0..changes {
                    events.next().await.ok_or("the watch ended")??;
                }
                Ok::<_, Failure>(())
            });
        }
    }
    ready.wait().await;
    let start = Instant::now();
    for index in 0..changes {
        let text = format!("{index} ");
        maps.update(&map(index, &text[..1])?).await?;
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok((watchers * changes, start.elapsed().as_secs_f64()))
}

/// Measures what access control adds to a request in process, on a server with 1,000 bindings. Returns the number of requests and the
/// seconds that they take longer than on a server without roles.
async fn decide(count: usize) -> Outcome {
    const ROLE: &str = "rbac.authorization.k8s.io";
    let mut took = Vec::new();
    for builder in [ApiServer::builder().empty(), ApiServer::builder().empty().rbac()] {
        let server = builder.start().await?;
        let service = server.service_as(User::new("user-500").group("devs"));
        for index in 0..1000 {
            let role = json!({"metadata": {"name": format!("role-{index}")},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]});
            let binding = json!({"metadata": {"name": format!("binding-{index}")},
                "subjects": [{"kind": "User", "name": format!("user-{index}"), "apiGroup": ROLE}],
                "roleRef": {"kind": "Role", "name": format!("role-{index}"), "apiGroup": ROLE}});
            for (plural, object) in [("roles", role), ("rolebindings", binding)] {
                let path = format!("/apis/{ROLE}/v1/namespaces/default/{plural}");
                let request = http::Request::post(path).header("content-type", "application/json");
                let code = server.handle(request.body(object.to_string().into())?).await.status();
                if code != 201 {
                    return Err(format!("cannot create {plural}: {code}").into());
                }
            }
        }
        // The fastest of several runs is the one that was disturbed least.
        let mut best = f64::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..count {
                let request = http::Request::get("/api/v1/namespaces/default/configmaps/a").body(Bytes::new())?;
                if service(request).await.status() != 404 {
                    return Err("the user may get config maps, but there is none".into());
                }
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        took.push(best);
    }
    Ok((count, took[1] - took[0]))
}

/// Measures what a webhook in process adds to a create. Returns the number of requests and the seconds that they take longer than on
/// a server without webhooks.
async fn review(count: usize) -> Outcome {
    let mut took = Vec::new();
    for has_webhook in [false, true] {
        let server = ApiServer::builder().empty().start().await?;
        if has_webhook {
            server.webhook_service("default/hook", |request: http::Request<Bytes>| async move {
                let review: serde_json::Value = serde_json::from_slice(request.body()).unwrap_or_default();
                let response = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                    "response": {"uid": review["request"]["uid"], "allowed": true}});
                http::Response::new(response.to_string())
            });
            let hook = json!({"name": "hook.klient.invalid", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "default", "name": "hook"}},
                "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]});
            let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [hook]});
            let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
            let request = http::Request::post(path).header("content-type", "application/json");
            let code = server.handle(request.body(configuration.to_string().into())?).await.status();
            if code != 201 {
                return Err(format!("cannot register the webhook: {code}").into());
            }
        }
        let body = Bytes::from(serde_json::to_vec(&map(1, "a")?)?);
        // The fastest of several runs is the one that was disturbed least.
        let mut best = f64::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..count {
                let request = http::Request::post("/api/v1/namespaces/default/configmaps?dryRun=All");
                let request = request.header("content-type", "application/json").body(body.clone())?;
                if server.handle(request).await.status() != 201 {
                    return Err("the create was refused".into());
                }
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        took.push(best);
    }
    Ok((count, took[1] - took[0]))
}

/// Starts an embedded server and waits for its first response.
async fn start() -> Outcome {
    let start = Instant::now();
    let server = ApiServer::start().await?;
    let request = http::Request::get("/api/v1/namespaces/default").body(Bytes::new())?;
    let status = server.handle(request).await.status();
    let seconds = start.elapsed().as_secs_f64();
    if status == 200 { Ok((1, seconds)) } else { Err(format!("it answered {status}").into()) }
}

/// Starts `klient serve` and waits for its first response over HTTPS.
fn start_process(arguments: &[String]) -> Outcome {
    let [program, kubeconfig] = arguments else { return Err("usage: load start-process PROGRAM KUBECONFIG".into()) };
    let start = Instant::now();
    let mut child = Command::new(program).args(["serve", "--kubeconfig", kubeconfig]).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let serves =
        BufReader::new(output).lines().any(|line| line.is_ok_and(|line| line.starts_with("export KUBECONFIG=")));
    let outcome = tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async {
            let files = KubeconfigFiles::explicit(kubeconfig);
            let client = Client::from_config(&Config::load(&files, &Overrides::default())?)?;
            client.rest().get().path("/api/v1/namespaces/default").bytes().await?;
            Ok::<_, Failure>(start.elapsed().as_secs_f64())
        })
    });
    child.kill()?;
    child.wait()?;
    if serves { Ok((1, outcome?)) } else { Err("it does not serve".into()) }
}

const WRITERS: usize = 16;
const STREAMS: usize = 100;
