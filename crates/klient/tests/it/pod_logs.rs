//! Logs by lines on the embedded server, whose kubelet is a function of the test.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use klient::{Api, Patch};
use klient_apiserver::{
    ApiServer, Fault,
    pod_streams::{LogCall, PodStreams},
};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::embedded::client;

/// The lines of a log, with their times.
type File = Vec<(Timestamp, String)>;

/// The logs of a node, with the rules of a kubelet: times are compared by the second, and a stream starts at a line's beginning.
#[derive(Clone, Default)]
struct Kubelet {
    /// By pod, and whether it is the previous run.
    files: Arc<Mutex<HashMap<(String, bool), File>>>,
    changed: Arc<Notify>,
    /// The number of lines after which a stream ends, for each stream in turn. Afterwards streams stay open.
    ends: Arc<Mutex<Vec<usize>>>,
}

impl Kubelet {
    fn write(&self, pod: &str, nanos: i64, text: &str) {
        let line = (at(nanos), text.to_owned());
        self.files.lock().unwrap().entry((pod.to_owned(), false)).or_default().push(line);
        self.changed.notify_waiters();
    }

    /// Starts the next run of the container.
    fn restart(&self, pod: &str) {
        let mut files = self.files.lock().unwrap();
        let current = files.remove(&(pod.to_owned(), false)).unwrap_or_default();
        files.insert((pod.to_owned(), true), current);
    }

    /// Drops the oldest lines.
    fn rotate(&self, pod: &str, lines: usize) {
        self.files.lock().unwrap().get_mut(&(pod.to_owned(), false)).unwrap().drain(..lines);
    }

    async fn serve(self, call: LogCall) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        assert!(call.timestamps);
        let end = {
            let mut ends = self.ends.lock().unwrap();
            if ends.is_empty() { usize::MAX } else { ends.remove(0) }
        };
        let since: Option<Timestamp> = call.since_time.as_deref().map(|time| time.parse().unwrap());
        let (mut at, mut sent) = (0, 0);
        loop {
            let changed = self.changed.notified();
            let file = self.files.lock().unwrap().get(&(call.pod.clone(), call.previous)).cloned().unwrap_or_default();
            if let (0, Some(tail)) = (at, call.tail_lines) {
                at = file.len().saturating_sub(usize::try_from(tail)?);
            }
            for (time, text) in file.iter().skip(at) {
                at += 1;
                if since.is_some_and(|since| time.as_second() < since.as_second()) {
                    continue;
                }
                if sent == end {
                    return Ok(());
                }
                sent += 1;
                call.output.write(format!("{time} {text}\n")).await?;
            }
            if !call.follow || sent == end {
                return Ok(());
            }
            changed.await;
        }
    }
}

fn at(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(1_800_000_000_000_000_000 + i128::from(nanos)).unwrap()
}

struct World {
    server: ApiServer,
    kubelet: Kubelet,
    pods: Api<Pod>,
}

impl World {
    async fn new(names: &[&str]) -> Self {
        let kubelet = Kubelet::default();
        let serving = kubelet.clone();
        let streams = PodStreams::new().logs(move |call| serving.clone().serve(call));
        let server = ApiServer::builder().pod_streams(streams).start().await.unwrap();
        let pods: Api<Pod> = Api::namespaced(client(&server), "default");
        let world = Self { server, kubelet, pods };
        for name in names {
            world.create(name).await;
        }
        world
    }

    async fn create(&self, name: &str) {
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        self.pods.create(&serde_json::from_value(pod).unwrap()).await.unwrap();
        self.status(name, "Running", 0, json!({"running": {}})).await;
    }

    async fn status(&self, name: &str, phase: &str, restarts: i32, state: serde_json::Value) {
        let container =
            json!({"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": restarts, "state": state});
        let status = json!({"status": {"phase": phase, "containerStatuses": [container]}});
        self.pods.status().patch(name, Patch::merge(status)).await.unwrap();
    }

    async fn finish(&self, name: &str, restarts: i32) {
        self.status(name, "Succeeded", restarts, json!({"terminated": {"exitCode": 0}})).await;
    }
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("line {number}")).collect()
}

#[tokio::test(start_paused = true)]
async fn log_that_is_not_followed_ends() {
    let world = World::new(&["web"]).await;
    for number in 0..5 {
        world.kubelet.write("web", number, &format!("line {number}"));
    }
    let mut lines = world.pods.logs("web").tail_lines(2).lines();
    let first = lines.next().await.unwrap().unwrap();
    assert_eq!((first.to_string().as_str(), first.time, first.is_after_gap), ("web c line 3", Some(at(3)), false));
    assert_eq!(lines.next().await.unwrap().unwrap().text, "line 4");
    assert_eq!(lines.next().await.unwrap(), None);
    assert_eq!(lines.next().await.unwrap(), None);
    assert!(world.pods.logs("missing").lines().next().await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn followed_log_ends_with_its_pod() {
    let world = World::new(&["web"]).await;
    world.kubelet.write("web", 0, "line 0");
    *world.kubelet.ends.lock().unwrap() = vec![1];
    world.finish("web", 0).await;
    let mut lines = world.pods.logs("web").follow().lines();
    assert_eq!(lines.next().await.unwrap().unwrap().text, "line 0");
    assert_eq!(lines.next().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn line_that_is_cut_off_is_read_again_and_a_last_one_without_end_is_given_out() {
    let parts = Arc::new(Mutex::new(vec![
        "a\n2027-01-15T08:00:01Z b",
        "a\n2027-01-15T08:00:01Z bc\n",
        "a\n2027-01-15T08:00:01Z bc\n2027-01-15T08:00:02Z end",
    ]));
    let next = Arc::clone(&parts);
    let streams = PodStreams::new().logs(move |call: LogCall| {
        let mut parts = next.lock().unwrap();
        let text = if parts.len() > 1 { parts.remove(0) } else { parts[0] };
        async move { Ok(call.output.write(format!("2027-01-15T08:00:00Z {text}")).await?) }
    });
    let server = ApiServer::builder().pod_streams(streams).start().await.unwrap();
    let world = World { pods: Api::namespaced(client(&server), "default"), server, kubelet: Kubelet::default() };
    world.create("web").await;
    let mut lines = world.pods.logs("web").follow().lines();
    assert_eq!(lines.next().await.unwrap().unwrap().text, "a");
    assert_eq!(lines.next().await.unwrap().unwrap().text, "bc");
    let ended = async {
        while parts.lock().unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        world.finish("web", 0).await;
    };
    let (line, ()) = tokio::join!(lines.next(), ended);
    assert_eq!(line.unwrap().unwrap().text, "end");
    assert_eq!(lines.next().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn broken_connection_during_a_restart_loses_no_line() {
    let world = World::new(&["web"]).await;
    for number in 0..3 {
        world.kubelet.write("web", number, &format!("line {number}"));
    }
    // Each line has 38 bytes. The stream breaks within the second one.
    world.server.inject(Fault::cut_after(50).when(|_, path, _| path.contains("/log")).times(1));
    let mut lines = world.pods.logs("web").follow().lines();
    assert_eq!(lines.next().await.unwrap().unwrap().text, "line 0");
    world.kubelet.restart("web");
    world.kubelet.write("web", 3, "line 3");
    world.status("web", "Running", 1, json!({"running": {}})).await;
    for text in &texts(4)[1..] {
        let line = lines.next().await.unwrap().unwrap();
        assert_eq!((line.text.as_str(), line.is_after_gap), (text.as_str(), false));
    }
}

#[tokio::test(start_paused = true)]
async fn rotated_lines_and_lost_runs_are_told() {
    let world = World::new(&["web"]).await;
    for number in 0..3 {
        world.kubelet.write("web", number, &format!("line {number}"));
    }
    *world.kubelet.ends.lock().unwrap() = vec![3, 1];
    let mut lines = world.pods.logs("web").follow().lines();
    for text in texts(3) {
        assert_eq!(lines.next().await.unwrap().unwrap().text, text);
    }
    world.kubelet.write("web", 3, "line 3");
    world.kubelet.write("web", 4, "line 4");
    world.kubelet.rotate("web", 4);
    let line = lines.next().await.unwrap().unwrap();
    assert_eq!((line.text.as_str(), line.is_after_gap), ("line 4", true));
    // Two restarts: the log of the first one is gone.
    world.kubelet.restart("web");
    world.kubelet.write("web", 9, "line 9");
    world.status("web", "Running", 2, json!({"running": {}})).await;
    let line = lines.next().await.unwrap().unwrap();
    assert_eq!((line.text.as_str(), line.is_after_gap), ("line 9", true));
}

#[tokio::test(start_paused = true)]
async fn logs_of_a_selector_are_merged_by_time_and_new_pods_join() {
    let world = World::new(&["a", "b"]).await;
    for number in 0..6 {
        world.kubelet.write(if number % 2 == 0 { "a" } else { "b" }, number, &format!("line {number}"));
    }
    let mut all = world.pods.logs_of("app=web");
    let mut seen = Vec::new();
    while let Some(line) = all.next().await.unwrap() {
        seen.push(line.to_string());
    }
    assert_eq!(seen, ["a c line 0", "b c line 1", "a c line 2", "b c line 3", "a c line 4", "b c line 5"]);

    let mut followed = world.pods.logs_of("app=web").follow().tail_lines(1);
    assert_eq!(followed.next().await.unwrap().unwrap().to_string(), "a c line 4");
    assert_eq!(followed.next().await.unwrap().unwrap().to_string(), "b c line 5");
    world.kubelet.write("new", 7, "line 7");
    world.create("new").await;
    assert_eq!(followed.next().await.unwrap().unwrap().to_string(), "new c line 7");
    world.kubelet.write("a", 8, "line 8");
    assert_eq!(followed.next().await.unwrap().unwrap().to_string(), "a c line 8");
}

#[tokio::test(start_paused = true)]
async fn too_many_logs_are_an_error_and_one_failing_log_harms_no_other() {
    let world = World::new(&["a", "b"]).await;
    world.kubelet.write("b", 0, "line 0");
    let error = world.pods.logs_of("app=web").max_streams(1).next().await.unwrap_err();
    assert!(error.to_string().starts_with("more than 1 containers match \"app=web\""), "{error}");
    world.server.inject(Fault::internal_error().when(|_, path, _| path.contains("/pods/a/log")));
    let mut logs = world.pods.logs_of("app=web");
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    loop {
        match logs.next().await {
            Ok(Some(line)) => lines.push(line.text),
            Ok(None) => break,
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert_eq!(lines, ["line 0"]);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("cannot read the log of container c of pod a: "), "{errors:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever streams end and however many lines have the same time, each line arrives once and in order.
    #[test]
    fn no_line_is_lost_or_repeated(steps in prop::collection::vec(0i64..3, 1..30), ends in prop::collection::vec(1usize..8, 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = World::new(&["web"]).await;
            *world.kubelet.ends.lock().unwrap() = ends;
            // Some lines have the same time, some the same second.
            let mut nanos = 0;
            for (number, step) in steps.iter().enumerate() {
                nanos += step * step * 400_000_000;
                world.kubelet.write("web", nanos, &format!("line {number}"));
            }
            let mut lines = world.pods.logs("web").follow().lines();
            let mut seen = Vec::new();
            while seen.len() < steps.len() {
                let line = tokio::time::timeout(Duration::from_secs(600), lines.next()).await.unwrap().unwrap().unwrap();
                assert!(!line.is_after_gap);
                seen.push(line.text);
            }
            assert_eq!(seen, texts(steps.len()));
        });
    }
}
