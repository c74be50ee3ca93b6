//! Draining a node.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::{apps::v1::DaemonSet, core::v1::Pod, policy::v1::Eviction},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};
use klient_core::{DeleteOptions, ListOptions, ObjectKey, PartialObjectMeta, ResourceExt as _};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until},
};

use super::{
    filter::{Decision, Left, Overrides, Refusal, daemon_set_of, decide},
    step::DrainStep,
};
use crate::{Api, Client, Error, ErrorKind, client::Pager, deadline};

/// Removes the pods of a node, as `kubectl drain` does: the node is cordoned, then all pods are evicted at once, within the
/// limits of their disruption budgets, and the drain waits until they are gone.
///
/// Nothing is evicted if a pod is refused: one of a daemon set, one with local data, one without a controller. Options
/// override that. Pods of daemon sets and mirrors of static pods stay. An eviction that a budget blocks is repeated until
/// [`timeout`](Self::timeout).
///
/// ```no_run
/// use std::time::Duration;
/// use klient::node::Drain;
///
/// # async fn drain() -> klient::Result<()> {
/// let drained = Drain::new(klient::Client::infer()?, "worker-1")
///     .ignore_daemon_sets()
///     .timeout(Duration::from_secs(300))
///     .on_step(|step| println!("{step}"))
///     .run()
///     .await?;
/// println!("{} pods were evicted", drained.gone.len());
/// # Ok(())
/// # }
/// ```
///
/// Needed permissions: `get` and `patch` on `nodes`, `list` on `pods` in all namespaces, `create` on `pods/eviction` (`delete` on `pods` with
/// [`without_eviction`](Self::without_eviction)), `get` on `daemonsets`.
#[derive(Clone)]
#[must_use = "a drain starts with `run`"]
pub struct Drain {
    client: Client,
    node: String,
    overrides: Overrides,
    labels: Option<String>,
    grace_period: Option<Duration>,
    timeout: Duration,
    is_by_delete: bool,
    is_dry_run: bool,
    on_step: Arc<OnStep>,
}

type OnStep = dyn Fn(&DrainStep<'_>) + Send + Sync;

/// The result of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// The pods that were removed. In a dry run, those that would be.
    pub gone: Vec<ObjectKey>,
    /// The pods that stay.
    pub left: Vec<(ObjectKey, Left)>,
}

/// A pod to remove.
#[derive(Clone)]
struct Doomed {
    key: ObjectKey,
    uid: String,
}

impl Drain {
    /// Creates a drain of a node.
    pub fn new(client: Client, node: impl Into<String>) -> Self {
        Self {
            client,
            node: node.into(),
            overrides: Overrides::default(),
            labels: None,
            grace_period: None,
            timeout: Duration::MAX,
            is_by_delete: false,
            is_dry_run: false,
            on_step: Arc::new(|_| {}),
        }
    }

    /// Leaves pods of daemon sets alone, instead of refusing to drain because of them.
    pub fn ignore_daemon_sets(mut self) -> Self {
        self.overrides.ignore_daemon_sets = true;
        self
    }

    /// Removes pods with `emptyDir` volumes, whose data is lost.
    pub fn delete_empty_dir_data(mut self) -> Self {
        self.overrides.delete_empty_dir_data = true;
        self
    }

    /// Removes pods that no controller creates again, and those of daemon sets that do not exist.
    pub fn force(mut self) -> Self {
        self.overrides.force = true;
        self
    }

    /// Removes only pods with these labels.
    #[expect(clippy::needless_pass_by_value, reason = "selectors and texts are both given by value")]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.labels = Some(selector.to_string());
        self
    }

    /// Sets how long pods may take to shut down, instead of what they ask for.
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.grace_period = Some(period);
        self
    }

    /// Sets how long the drain may take. By default it has no limit, as budgets may block for hours.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Does not wait for pods that have been in deletion for longer than this. Nodes that are gone have such pods.
    pub fn skip_deleted_after(mut self, age: Duration) -> Self {
        self.overrides.skip_deleted_after = Some(age);
        self
    }

    /// Deletes pods instead of evicting them, past all disruption budgets.
    #[doc(alias = "disable_eviction")]
    pub fn without_eviction(mut self) -> Self {
        self.is_by_delete = true;
        self
    }

    /// Has the server check everything and change nothing. The node is not cordoned.
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// Calls a function with each step. It runs in the drain's own tasks, and must not block.
    pub fn on_step(mut self, on_step: impl Fn(&DrainStep<'_>) + Send + Sync + 'static) -> Self {
        self.on_step = Arc::new(on_step);
        self
    }

    /// Drains the node. Dropping the future ends the drain; the node stays cordoned, and evictions that were accepted go on.
    ///
    /// # Errors
    ///
    /// Returns an [`Invalid`](ErrorKind::Invalid) error if pods are refused, which names them and the reasons; a
    /// [`Timeout`](ErrorKind::Timeout) error that names the pods that are left and what blocks them; or the errors of evictions that failed,
    /// after all others have succeeded.
    pub async fn run(self) -> Result<Drained, Error> {
        let deadline = deadline::after(Instant::now(), self.timeout);
        if !self.is_dry_run {
            match super::cordon(&self.client, &self.node).await {
                Ok(true) => self.tell(&DrainStep::Cordoned),
                Ok(false) => {}
                Err(error) if error.is_not_found() => return Err(error),
                Err(error) => self.tell(&DrainStep::CordonFailed(&error)),
            }
        }
        let (doomed, left) = self.choose().await?;
        let gone = doomed.iter().map(|pod| pod.key.clone()).collect();
        for pod in &doomed {
            self.tell(&DrainStep::Evicting { pod: &pod.key });
        }
        self.remove(doomed, deadline).await?;
        Ok(Drained { gone, left })
    }

    fn tell(&self, step: &DrainStep<'_>) {
        (self.on_step)(step);
    }

    /// Lists the pods of the node, and decides about each.
    async fn choose(&self) -> Result<(Vec<Doomed>, Vec<(ObjectKey, Left)>), Error> {
        let pods = Pager::new(Api::<Pod>::all(self.client.clone()), self.selection()).all().await?;
        let mut daemon_sets = HashMap::new();
        let (mut doomed, mut left, mut refused) = (Vec::new(), Vec::new(), BTreeMap::<Refusal, Vec<ObjectKey>>::new());
        for pod in pods.items {
            let key = ObjectKey::of(&pod);
            let has_daemon_set = match daemon_set_of(&pod) {
                Some(name) => Some(self.exists(&mut daemon_sets, key.namespace().unwrap_or_default(), name).await?),
                None => None,
            };
            match decide(&pod, has_daemon_set, &self.overrides, Timestamp::now()) {
                Decision::Leave(why) => {
                    self.tell(&DrainStep::Left { pod: &key, why });
                    left.push((key, why));
                }
                Decision::Refuse(why) => refused.entry(why).or_default().push(key),
                Decision::Remove => doomed.push(Doomed { key, uid: pod.uid().unwrap_or_default().to_owned() }),
                Decision::RemoveAlthough(why) => {
                    self.tell(&DrainStep::Overridden { pod: &key, why });
                    doomed.push(Doomed { key, uid: pod.uid().unwrap_or_default().to_owned() });
                }
            }
        }
        if refused.is_empty() { Ok((doomed, left)) } else { Err(self.refusal(&refused)) }
    }

    fn selection(&self) -> ListOptions {
        let options = ListOptions::default().fields(format!("spec.nodeName={}", self.node));
        match &self.labels {
            Some(labels) => options.labels(labels),
            None => options,
        }
    }

    /// Returns whether a daemon set exists. Each is requested once.
    async fn exists(&self, known: &mut HashMap<ObjectKey, bool>, namespace: &str, name: &str) -> Result<bool, Error> {
        let key = ObjectKey::namespaced(namespace, name);
        if let Some(exists) = known.get(&key) {
            return Ok(*exists);
        }
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), namespace);
        let exists = sets.metadata().get_opt(name).await?.is_some();
        known.insert(key, exists);
        Ok(exists)
    }

    fn refusal(&self, refused: &BTreeMap<Refusal, Vec<ObjectKey>>) -> Error {
        let reasons: Vec<String> = refused.iter().map(|(why, pods)| format!("{} ({why})", names(pods))).collect();
        let message = format!("node {} was not drained because of pods that stay: {}", self.node, reasons.join("; "));
        Error::new(ErrorKind::Invalid, message)
    }

    /// Evicts pods, all at once, and waits until they are gone.
    async fn remove(&self, doomed: Vec<Doomed>, deadline: Instant) -> Result<(), Error> {
        let blocked = Arc::new(std::sync::Mutex::new(BTreeMap::new()));
        let mut evictions = JoinSet::new();
        // Pods that are not gone, with their UIDs, and whether they were evicted.
        let mut left: BTreeMap<ObjectKey, (String, bool)> = BTreeMap::new();
        for pod in doomed {
            left.insert(pod.key.clone(), (pod.uid.clone(), false));
            let (drain, blocked) = (self.clone(), Arc::clone(&blocked));
            evictions.spawn(async move {
                let outcome = drain.evict(&pod, &blocked).await;
                (pod.key, outcome)
            });
        }
        let mut failed = Vec::new();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !left.is_empty() {
            tokio::select! {
                Some(ended) = evictions.join_next() => {
                    let Ok((pod, outcome)) = ended else { continue };
                    match outcome {
                        Ok(Evicted::Accepted) if !self.is_dry_run => {
                            if let Some((_, is_evicted)) = left.get_mut(&pod) {
                                *is_evicted = true;
                            }
                        }
                        Ok(_) => self.forget(&mut left, &pod),
                        Err(error) => {
                            left.remove(&pod);
                            self.tell(&DrainStep::Failed { pod: &pod, error: &error });
                            failed.push((pod, error));
                        }
                    }
                }
                _ = look.tick(), if left.values().any(|(_, is_evicted)| *is_evicted) => {
                    // An error is as good as no answer: the next look may get one.
                    if let Ok(present) = self.present().await {
                        let is_gone = |(pod, (uid, is_evicted)): (&ObjectKey, &(String, bool))| {
                            (*is_evicted && present.get(pod) != Some(uid)).then(|| pod.clone())
                        };
                        for pod in left.iter().filter_map(is_gone).collect::<Vec<_>>() {
                            self.forget(&mut left, &pod);
                        }
                    }
                }
                () = sleep_until(deadline) => return Err(self.timed_out(&left, &blocked)),
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(self.failure(failed)) }
    }

    fn forget(&self, left: &mut BTreeMap<ObjectKey, (String, bool)>, pod: &ObjectKey) {
        left.remove(pod);
        self.tell(&DrainStep::Gone { pod, left: left.len() });
    }

    /// Returns the pods of the node with their UIDs.
    async fn present(&self) -> Result<HashMap<ObjectKey, String>, Error> {
        let pods: Api<PartialObjectMeta<Pod>> = Api::<Pod>::all(self.client.clone()).metadata();
        let pods = Pager::new(pods, self.selection()).all().await?;
        Ok(pods.iter().map(|pod| (ObjectKey::of(pod), pod.uid().unwrap_or_default().to_owned())).collect())
    }

    /// Evicts a pod, as often as its budgets block it.
    async fn evict(&self, pod: &Doomed, blocked: &Blocked) -> Result<Evicted, Error> {
        let mut failures = 0;
        loop {
            let error = match self.send(pod).await {
                Ok(()) => return Ok(Evicted::Accepted),
                Err(error) => error,
            };
            let status = error.status();
            let is_of_terminating = status.is_some_and(|status| status.cause("NamespaceTerminating").is_some());
            let retry_after = if error.is_not_found() {
                return Ok(Evicted::Absent);
            } else if error.is_conflict() {
                // Another pod has the name, or the budget changed at the same time.
                match self.pods(&pod.key).metadata().get_opt(pod.key.name()).await? {
                    Some(found) if found.uid() == Some(&pod.uid) => SOON,
                    _ => return Ok(Evicted::Absent),
                }
            } else if error.is_too_many_requests() || is_of_terminating {
                error.retry_after().unwrap_or(RETRY).max(RETRY)
            } else if status.is_some_and(|status| status.code == 500)
                && failures < MAX_FAILURES
                && !is_permanent(&error)
            {
                failures += 1;
                RETRY
            } else {
                return Err(error);
            };
            self.tell(&DrainStep::Blocked { pod: &pod.key, error: &error, retry_after });
            let text = error.to_string();
            blocked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(pod.key.clone(), text);
            sleep(retry_after).await;
        }
    }

    fn pods(&self, key: &ObjectKey) -> Api<Pod> {
        Api::namespaced(self.client.clone(), key.namespace().unwrap_or_default())
    }

    /// Sends one eviction or delete. A budget's 429 is returned at once, so that it can be told.
    async fn send(&self, pod: &Doomed) -> Result<(), Error> {
        let mut options = DeleteOptions::default().uid(&pod.uid);
        if let Some(period) = self.grace_period {
            options = options.grace_period(period);
        }
        if self.is_dry_run {
            options = options.dry_run();
        }
        let pods = self.pods(&pod.key);
        if self.is_by_delete {
            return pods.delete(pod.key.name()).options(options).await.map(drop);
        }
        let namespace = pod.key.namespace().unwrap_or_default();
        let metadata = ObjectMeta {
            name: Some(pod.key.name().to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let eviction = Eviction { metadata, delete_options: Some(options.to_openapi()?) };
        let mut request = self.client.rest().post().resource(pods.resource()).namespace(namespace);
        request = request.name(pod.key.name()).subresource("eviction").max_retries(0);
        if self.is_dry_run {
            request = request.param("dryRun", "All");
        }
        request.json(&eviction).status().await.map(drop)
    }

    fn timed_out(&self, left: &BTreeMap<ObjectKey, (String, bool)>, blocked: &Blocked) -> Error {
        let blocked = blocked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let pods: Vec<String> = left
            .iter()
            .map(|(pod, (_, is_evicted))| match blocked.get(pod).filter(|_| !is_evicted) {
                Some(why) => format!("{pod} ({why})"),
                None if *is_evicted => format!("{pod} (shutting down)"),
                None => pod.to_string(),
            })
            .collect();
        let seconds = self.timeout.as_secs();
        let message = format!("node {} was not drained within {seconds} s: {}", self.node, pods.join(", "));
        Error::new(ErrorKind::Timeout, message)
    }

    fn failure(&self, mut failed: Vec<(ObjectKey, Error)>) -> Error {
        let pods: Vec<ObjectKey> = failed.iter().map(|(pod, _)| pod.clone()).collect();
        let (_, first) = failed.swap_remove(0);
        let message = format!("node {} was not drained: {} could not be evicted: {first}", self.node, names(&pods));
        first.context(message)
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("node", &self.node).field("overrides", &self.overrides).finish_non_exhaustive()
    }
}

/// The answer to an eviction.
enum Evicted {
    Accepted,
    /// The pod does not exist any more.
    Absent,
}

type Blocked = std::sync::Mutex<BTreeMap<ObjectKey, String>>;

/// Returns whether an error with code 500 stays: a pod with two budgets is never evicted.
fn is_permanent(error: &Error) -> bool {
    error.to_string().contains("more than one PodDisruptionBudget")
}

fn names(pods: &[ObjectKey]) -> String {
    pods.iter().map(ObjectKey::as_str).collect::<Vec<_>>().join(", ")
}

/// The time between two attempts, as kubectl's.
const RETRY: Duration = Duration::from_secs(5);
/// The time after a conflict.
const SOON: Duration = Duration::from_millis(200);
/// The time between two looks at the pods that are left.
const LOOK: Duration = Duration::from_secs(1);
/// The number of server errors after which a pod counts as failed.
const MAX_FAILURES: u32 = 3;
