//! The server: its parts, and the dispatch of requests to them.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use klient_core::Status;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    Result,
    access::{Access, AccessSettings, UsedPermissions, User},
    admission::{Admission, Policies, Webhooks},
    audit::{Audit, AuditPolicy},
    body::ResponseBody,
    bootstrap,
    builtin::{Collector, namespaces::contents::Contents},
    call::Call,
    clock::{Clock, SystemClock},
    discovery, endpoints,
    faults::{self, Encounter, Fault, Faults},
    metrics::RequestCounts,
    negotiate::ResponseFormat,
    openapi::OpenApi,
    peers::{Backend, Peers},
    pod_streams::PodStreams,
    registry::Registry,
    response,
    route::Route,
    store::{OpenError, Store},
    verbs,
};

/// A Kubernetes API server in this process.
///
/// Clones share one server, which stops when the last clone is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), klient_apiserver::StartError> {
/// use bytes::Bytes;
/// use klient_apiserver::ApiServer;
///
/// let server = ApiServer::start().await?;
/// let request = http::Request::get("/api/v1/namespaces/default").body(Bytes::new()).unwrap();
/// assert_eq!(server.handle(request).await.status(), 200);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "envtest")]
#[doc(alias = "fake clientset")]
#[doc(alias = "NewSimpleClientset")]
#[doc(alias = "kube-apiserver")]
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Running>,
}

struct Running {
    core: Arc<Core>,
    collector: JoinHandle<()>,
}

/// The state that request handlers share.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) clock: Arc<dyn Clock>,
    /// The time at which the server started.
    pub(crate) started: jiff::Timestamp,
    pub(crate) collector: Arc<Collector>,
    pub(crate) bookmark_every: Duration,
    pub(crate) access: Access,
    pub(crate) audit: Option<Audit>,
    pub(crate) admission: Admission,
    pub(crate) webhooks: Webhooks,
    pub(crate) policies: Policies,
    pub(crate) peers: Peers,
    /// The objects of each namespace, if there are any.
    pub(crate) namespace_contents: Option<Contents>,
    pub(crate) pod_streams: Option<PodStreams>,
    /// Whether the server has the objects of a new API server.
    pub(crate) has_own_objects: bool,
    /// Notifies all watches to end.
    pub(crate) watches_end: watch::Sender<()>,
    openapi: OpenApi,
    pub(crate) requests: RequestCounts,
    faults: Faults,
    uids: Box<dyn Fn() -> String + Send + Sync>,
    random: AtomicU64,
}

/// A builder of an [`ApiServer`].
pub struct ApiServerBuilder {
    folder: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    uids: Option<Box<dyn Fn() -> String + Send + Sync>>,
    revision: Option<u64>,
    history: usize,
    bookmark_every: Duration,
    access: AccessSettings,
    audit: Option<Audit>,
    enabled_plugins: HashSet<String>,
    disabled_plugins: HashSet<String>,
    is_empty: bool,
    namespace_objects: bool,
    collects_garbage: bool,
    pod_streams: Option<PodStreams>,
}

/// An error of a server that could not start.
#[derive(Debug)]
pub struct StartError {
    source: OpenError,
}

/// A future of a response.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

impl ApiServer {
    /// Starts an in-memory server with the objects that every API server has from the start.
    ///
    /// # Errors
    ///
    /// An in-memory server always starts.
    pub async fn start() -> std::result::Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder {
            folder: None,
            clock: Arc::new(SystemClock),
            uids: None,
            revision: None,
            history: 100_000,
            bookmark_every: Duration::from_secs(60),
            access: AccessSettings::default(),
            audit: None,
            enabled_plugins: HashSet::new(),
            disabled_plugins: HashSet::new(),
            is_empty: false,
            namespace_objects: false,
            collects_garbage: true,
            pod_streams: None,
        }
    }

    /// Handles a request. The body of a watch continues until it is dropped.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<ResponseBody> {
        let core = &self.inner.core;
        let (mut parts, body) = request.into_parts();
        let user = match parts.extensions.remove::<Arc<User>>() {
            Some(user) => user,
            None => match core.authenticate(&parts.headers) {
                Ok(user) => user,
                Err(status) => return response::failure(&status, ResponseFormat::JSON),
            },
        };
        let mut call = Call::new(parts, body, user);
        let mut injured = None;
        match core.faults.meet(&call).await {
            None => {}
            Some(Encounter::Respond(status)) => return response::failure(&status, ResponseFormat::JSON),
            Some(Encounter::Silence) => std::future::pending().await,
            Some(Encounter::Damage(damage)) => injured = Some(damage),
            Some(Encounter::NoBookmarks) => call.without("allowWatchBookmarks"),
        }
        let response = match core.audit.is_none() && core.access.is_open(&call.headers) {
            true => self.respond(&call).await,
            false => Box::pin(self.respond_checked(call)).await,
        };
        match injured {
            Some(damage) => faults::damage(response, damage),
            None => response,
        }
    }

    /// Returns a function that handles requests as [`handle`](Self::handle) does, for `Client::from_service` in the same process.
    /// The function keeps the server running.
    pub fn service(&self) -> impl Fn(Request<Bytes>) -> ResponseFuture + Send + Sync + Clone + use<> {
        let server = self.clone();
        move |request| {
            let server = server.clone();
            Box::pin(async move { server.handle(request).await })
        }
    }

    /// Returns a function as [`service`](Self::service) does, whose requests are those of a user.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use klient::Client;
    /// use klient_apiserver::{ApiServer, User};
    ///
    /// let server = ApiServer::start().await?;
    /// let bob = Client::from_service(server.service_as(User::new("bob").group("devs")));
    /// # drop(bob);
    /// # Ok(())
    /// # }
    /// ```
    pub fn service_as(&self, user: User) -> impl Fn(Request<Bytes>) -> ResponseFuture + Send + Sync + Clone + use<> {
        let server = self.clone();
        let user = user.authenticated();
        move |mut request| {
            let server = server.clone();
            request.extensions_mut().insert(Arc::clone(&user));
            Box::pin(async move { server.handle(request).await })
        }
    }

    pub(crate) async fn respond(&self, call: &Call) -> Response<ResponseBody> {
        let core = &self.inner.core;
        if call.body.len() > MAX_BODY {
            let status = Status::request_entity_too_large(format!("limit is {MAX_BODY}"));
            return response::failure(&status, ResponseFormat::JSON);
        }
        let route = Route::parse(&call.path);
        let response = match core.dispatch(call, &route).await {
            Ok(response) if call.method == Method::HEAD => response.map(|_| ResponseBody::whole(Bytes::new())),
            Ok(response) => response,
            Err(status) if call.method == Method::HEAD => {
                response::failure(&status, ResponseFormat::JSON).map(|_| ResponseBody::whole(Bytes::new()))
            }
            Err(status) => response::failure(&status, call.error_format()),
        };
        if let Route::Resource(route) = &route
            && let Some(resource) = core.registry.find(&route.group, &route.version, &route.plural)
        {
            // Methods are checked before versions, and whether a kind can be watched afterwards.
            let is_served = response.status() != StatusCode::METHOD_NOT_ALLOWED || call.is_watch();
            if let Some(warning) = resource.deprecation().filter(|_| is_served) {
                call.notes.warn_of_version(warning);
            }
            core.requests.add(call, route, resource, response.status());
        }
        response::with_warnings(response, call.notes.take_warnings())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// Publishes the certificate authority of a socket in each namespace.
    pub(crate) async fn publish_authority(&self, pem: &str) {
        if let Some(contents) = &self.inner.core.namespace_contents {
            contents.publish(&self.inner.core, pem).await;
        }
    }

    /// Returns whether roles and bindings decide what a user may do.
    pub(crate) fn has_rbac(&self) -> bool {
        self.inner.core.access.rbac.is_some()
    }

    /// Returns the user of a token.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<Arc<User>> {
        self.inner.core.user_of_token(token)
    }

    /// Returns what each user did, as the smallest roles that would have allowed it. The server must
    /// [record](ApiServerBuilder::record_permissions) it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use klient::{Api, Client};
    /// use klient_apiserver::{ApiServer, User};
    ///
    /// let server = ApiServer::builder().record_permissions().start().await?;
    /// let user = User::service_account("default", "controller");
    /// let pods: Api<Pod> = Api::namespaced(Client::from_service(server.service_as(user)), "default");
    /// pods.list().await?;
    /// let roles = server.used_permissions().objects();
    /// assert_eq!(roles[0]["rules"][0]["verbs"], serde_json::json!(["list"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn used_permissions(&self) -> UsedPermissions {
        self.inner.core.access.used()
    }

    /// Serves the webhooks of a service by a function in this process, without a socket. The service is named as `namespace/name`, and
    /// need not exist. A URL such as `https://127.0.0.1:9443` names the webhooks that are registered by it.
    ///
    /// The function receives what the service would receive: a `POST` of an `AdmissionReview` or a `ConversionReview` to the path of the
    /// registration.
    pub fn webhook_service<F, R, B>(&self, service: &str, handler: F)
    where
        F: Fn(Request<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = Response<B>> + Send + 'static,
        B: Into<Bytes>,
    {
        let handler = Arc::new(move |request| {
            let response = handler(request);
            Box::pin(async move { response.await.map(Into::into) })
                as Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>
        });
        self.inner.core.peers.set_service(service, Backend::Handler(handler));
    }

    /// Sets the address of a service, which is named as `namespace/name`. Its webhooks are called by TLS, and must have a certificate for
    /// `name.namespace.svc`.
    pub fn webhook_address(&self, service: &str, address: std::net::SocketAddr) {
        self.inner.core.peers.set_service(service, Backend::Address(address));
    }

    /// Injects a fault.
    pub fn inject(&self, fault: Fault) {
        self.inner.core.faults.add(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.inner.core.faults.clear();
    }

    /// Returns the number of authenticated requests for each method and path since the start. After 10,000 different paths, the
    /// requests to others are counted together, with the path `other`.
    pub fn requests(&self) -> BTreeMap<(String, String), u64> {
        self.inner.core.faults.requests()
    }

    /// Returns the newest revision, which is the resource version of the last write.
    pub fn revision(&self) -> u64 {
        self.inner.core.store.revision()
    }

    /// Ends all open watches, as a server does that shuts down. Clients have to watch again. [`Fault::cut_after`] breaks
    /// the connection instead.
    pub fn end_watches(&self) {
        self.inner.core.watches_end.send_replace(());
    }

    /// Removes the history before the newest revision. Watches and pages from before it fail with 410, as after a compaction.
    pub fn compact(&self) {
        self.inner.core.store.compact(self.revision());
    }
}

impl ApiServerBuilder {
    /// Stores objects in a folder, so that they outlive the process. The folder is locked until the last clone of the server is dropped.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the function that generates UIDs.
    #[must_use]
    pub fn uids(mut self, uids: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.uids = Some(Box::new(uids));
        self
    }

    /// Sets the revision before the first write, for tests that need the same resource versions in every run.
    ///
    /// By default a new server starts at the number of microseconds since 2020. An in-memory server that is restarted
    /// therefore never repeats a resource version, and clients notice the restart. A server with a
    /// [`folder`](Self::folder) continues after the newest revision on disk, even if that is higher than `revision`.
    #[must_use]
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Sets the number of changes per kind that watches can start from.
    #[must_use]
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Adds a token and its user. Once a token is set, requests without known credentials are refused.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>, user: impl Into<User>) -> Self {
        self.access.tokens.add(token.into(), user.into());
        self
    }

    /// Enables role-based access control. A user may do only what roles and bindings allow, and the roles and bindings that every
    /// cluster has are there. The rules of aggregated roles are filled in, as the controller manager of a cluster does.
    ///
    /// Requests in this process without credentials are still the administrator's. Requests of others come from
    /// [`ApiServer::service_as`], with a token, or from a socket.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use klient::{Api, Client};
    /// use klient_apiserver::{ApiServer, User};
    ///
    /// let server = ApiServer::builder().rbac().start().await?;
    /// let bob = Client::from_service(server.service_as(User::new("bob")));
    /// let pods: Api<Pod> = Api::namespaced(bob, "default");
    /// assert!(pods.list().await.unwrap_err().is_forbidden());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "authorization-mode")]
    pub fn rbac(mut self) -> Self {
        self.access.rbac = true;
        self
    }

    /// Records what each user does, for [`ApiServer::used_permissions`].
    #[must_use]
    pub fn record_permissions(mut self) -> Self {
        self.access.records = true;
        self
    }

    /// Sends an audit log to a function: one line of JSON for each stage of each request that the policy selects.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::{Arc, Mutex};
    ///
    /// use bytes::Bytes;
    /// use klient_apiserver::{ApiServer, AuditPolicy};
    ///
    /// let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    /// let sink = Arc::clone(&lines);
    /// let audit = move |line: &str| sink.lock().unwrap().push(line.to_owned());
    /// let server = ApiServer::builder().audit(AuditPolicy::metadata(), audit).start().await?;
    /// server.handle(http::Request::get("/api/v1/namespaces").body(Bytes::new())?).await;
    /// assert!(lines.lock().unwrap()[1].contains(r#""stage":"ResponseComplete""#));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn audit(mut self, policy: AuditPolicy, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.audit = Some(Audit::new(policy, Arc::new(sink)));
        self
    }

    /// Sets the URL that names the server in the tokens of service accounts, which is the audience of tokens for the server, too.
    #[must_use]
    #[doc(alias = "service-account-issuer")]
    pub fn token_issuer(mut self, url: impl Into<String>) -> Self {
        self.access.issuer = Some(url.into());
        self
    }

    /// Sets the interval of bookmarks, for watches that request them.
    #[must_use]
    pub fn bookmark_every(mut self, interval: Duration) -> Self {
        self.bookmark_every = interval;
        self
    }

    /// Starts without the objects that the real API server creates, such as the service `default/kubernetes`. Only the
    /// namespaces that every cluster has are there.
    #[must_use]
    pub fn empty(mut self) -> Self {
        self.is_empty = true;
        self
    }

    /// Creates the service account `default` and the config map `kube-root-ca.crt` in each new namespace, as the controller manager of a
    /// cluster does. The real API server alone does not, so that this is off by default; `klient serve` sets it, unless it is `--bare`.
    ///
    /// The config map has the certificate authority of the newest [socket](ApiServer::listen) with TLS, or an empty text.
    #[must_use]
    pub fn namespace_objects(mut self) -> Self {
        self.namespace_objects = true;
        self
    }

    /// Enables an admission plugin that is off by default, by the real server's name for it: `OwnerReferencesPermissionEnforcement`.
    #[must_use]
    #[doc(alias = "enable-admission-plugins")]
    pub fn enable_admission_plugin(mut self, name: impl Into<String>) -> Self {
        self.enabled_plugins.insert(name.into());
        self
    }

    /// Disables an admission plugin by the real server's name for it, such as `MutatingAdmissionWebhook` or `LimitRanger`.
    #[must_use]
    pub fn disable_admission_plugin(mut self, name: impl Into<String>) -> Self {
        self.disabled_plugins.insert(name.into());
        self
    }

    /// Sets the functions that serve exec, attach, port-forward and logs of pods. Without them, such requests get an error.
    #[must_use]
    pub fn pod_streams(mut self, streams: PodStreams) -> Self {
        self.pod_streams = Some(streams);
        self
    }

    /// Leaves out the garbage collector: dependents of deleted owners stay, and so do deleted namespaces with their contents.
    /// The real API server without controller manager behaves like this; `klient serve --bare` does, too.
    #[must_use]
    pub fn without_garbage_collector(mut self) -> Self {
        self.collects_garbage = false;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be opened.
    pub async fn start(self) -> std::result::Result<ApiServer, StartError> {
        let store = match &self.folder {
            None => Store::in_memory(self.revision.unwrap_or_else(first_revision), self.history),
            Some(folder) => Store::open(folder, self.revision, first_revision(), self.history)
                .map_err(|source| StartError { source })?,
        };
        let seed = self.clock.now().as_nanosecond() as u64 ^ u64::from(std::process::id()).rotate_left(32);
        let core = Arc::new(Core {
            store,
            registry: Registry::built_in(),
            started: self.clock.now(),
            clock: self.clock,
            collector: Arc::default(),
            bookmark_every: self.bookmark_every,
            watches_end: watch::Sender::new(()),
            openapi: OpenApi::default(),
            requests: RequestCounts::default(),
            faults: Faults::default(),
            access: self.access.build(self.folder.as_deref()),
            audit: self.audit,
            admission: Admission::new(&self.enabled_plugins, &self.disabled_plugins),
            webhooks: Webhooks::default(),
            policies: Policies::default(),
            peers: Peers::default(),
            pod_streams: self.pod_streams,
            has_own_objects: !self.is_empty,
            namespace_contents: self.namespace_objects.then(Contents::default),
            uids: self.uids.unwrap_or_else(random_uids),
            random: AtomicU64::new(seed),
        });
        core.restore().await;
        bootstrap::namespaces(&core).await;
        if core.has_own_objects {
            bootstrap::objects(&core).await;
        }
        bootstrap::roles(&core).await;
        let collector = tokio::spawn(Collector::run(Arc::downgrade(&core), !self.collects_garbage));
        Ok(ApiServer { inner: Arc::new(Running { core, collector }) })
    }
}

impl Core {
    async fn dispatch(self: &Arc<Self>, call: &Call, route: &Route) -> Result<Response<ResponseBody>> {
        let groups = self.registry.groups();
        let reads = call.method == Method::GET || call.method == Method::HEAD;
        match route {
            Route::Resource(route) => {
                // The real server reports an unknown resource of a custom group as an unknown path.
                let is_custom = groups.is_custom(&route.group, &route.version);
                let is_missing = is_custom && groups.find(&route.group, &route.version, &route.plural).is_none();
                if is_missing || !groups.has_version(&route.group, &route.version) {
                    return Ok(discovery::page_not_found());
                }
                self.on_resource(call, route).await
            }
            // The real server ignores the method of these requests.
            Route::Groups => discovery::groups(call, &groups, false),
            Route::Group(name) => discovery::group(call, &groups, name),
            Route::Health { endpoint, check } => Ok(endpoints::health(call, endpoint, check.as_deref())),
            Route::Endpoint(path) => Ok(endpoints::respond(self, call, path)),
            Route::OpenApi => Ok(self.openapi.respond(call, &groups, &*self.clock)),
            Route::Unknown => Ok(discovery::page_not_found()),
            Route::Version { group, version } if !groups.has_version(group, version) => {
                discovery::version(call, &groups, group, version)
            }
            _ if !reads => Err(verbs::method_not_allowed(call, &klient_core::GroupResource::new("", ""))),
            Route::Core => discovery::groups(call, &groups, true),
            Route::Version { group, version } => discovery::version(call, &groups, group, version),
            Route::ServerVersion => Ok(endpoints::version()),
            Route::Root => Ok(endpoints::root(&groups)),
        }
    }

    /// Restores custom kinds and owners from the store.
    async fn restore(self: &Arc<Self>) {
        for stored in self.store.list("customresourcedefinitions.apiextensions.k8s.io", "").objects {
            let definition = stored.value();
            let group = definition["spec"]["group"].as_str().unwrap_or_default();
            let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
            self.registry.replace_custom(group, plural, crate::builtin::definitions::served(&definition));
        }
        self.reload_webhooks();
        self.reload_policies();
        for resource in self.registry.groups().preferred() {
            for stored in self.store.list(&resource.table, "").objects {
                self.collector.restore(&resource, &stored);
            }
        }
    }

    pub(crate) fn new_uid(&self) -> String {
        (self.uids)()
    }

    /// Returns a random number (splitmix64).
    pub(crate) fn random(&self) -> u64 {
        mix(self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

/// Returns a revision that no earlier server used, because a server cannot do a million writes per second.
///
/// The number has at most 15 digits until 2051: client-go's metrics show no more, and 64-bit floats hold it exactly. The time is that
/// of the machine and not of the server's [`Clock`], because a test's clock may show the same time at every start.
fn first_revision() -> u64 {
    let now = jiff::Timestamp::now().as_microsecond();
    u64::try_from(now - YEAR_2020_MICROS).unwrap_or(1)
}

fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a generator of version 4 UUIDs.
fn random_uids() -> Box<dyn Fn() -> String + Send + Sync> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The standard library's random keys differ in every process and every call.
    let word = || RandomState::new().build_hasher().finish();
    Box::new(move || {
        let bits = u128::from(mix(word())) << 64 | u128::from(mix(word()));
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    })
}

impl Drop for Running {
    fn drop(&mut self) {
        self.collector.abort();
        // Open watches end when the store is closed.
        self.core.store.close();
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot open the API server's folder")
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The start of 2020, in microseconds since 1970.
const YEAR_2020_MICROS: i64 = 1_577_836_800_000_000;
/// The size limit of request bodies, as on a real server.
pub(crate) const MAX_BODY: usize = 3 << 20;
