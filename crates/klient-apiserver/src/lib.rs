//! A Kubernetes API server in your process, to run and test controllers and clients without a cluster.
//!
//! One generic implementation serves every kind, from a table that was generated from a real server. Custom kinds are added to
//! the table at run time. `store` stores objects, `registry` is the table of kinds, and `verbs` handles requests.
//!
//! # Supported
//!
//! All built-in kinds of Kubernetes 1.36 and custom kinds by `CustomResourceDefinition`; create, get, list in pages, watch
//! with bookmarks and streamed lists, update, JSON, merge and strategic patches, server-side apply with
//! managed fields, delete in all propagations, status, scale,
//! eviction with disruption budgets, binding and finalize; JSON, YAML, protobuf, tables and metadata-only; discovery in both
//! forms; OpenAPI documents of version 2 and 3, custom kinds included; dry runs, field validation, preconditions; garbage
//! collection and the deletion of namespaces; exec, attach, port-forward and logs of pods, from functions
//! ([`pod_streams`]); admission webhooks and conversion webhooks, by URL, by service or as functions in process
//! ([`ApiServer::webhook_service`]); CEL rules of custom kinds, match conditions and admission policies; users by client certificate, token,
//! service account token and impersonation, [role-based access control](ApiServerBuilder::rbac), access and token reviews, an [audit
//! log](ApiServerBuilder::audit), and the smallest roles for [what a client did](ApiServer::used_permissions); the built-in admission plugins for
//! service accounts, limit ranges, quotas, priorities, storage, ingress and runtime classes, tolerations, taints and owner references. Objects
//! get the real server's defaults, and the kinds that controllers write most are
//! validated by its rules, with its messages and warnings. kubectl,
//! client-go, controller-runtime and kube-rs work with it unmodified; the own tests of controller-runtime pass against it.
//!
//! # Not supported
//!
//! No pod security standards or proxies: such requests get an error that says so, or no check. No controllers besides the garbage collector:
//! deployments get no pods.
//! Of the built-in kinds, these are validated: pods and pod templates, workloads, replication controllers and revisions, jobs, services, endpoints
//! and slices of them, config maps, secrets, ingresses, network policies, autoscalers, disruption budgets, volumes and claims, storage, priority,
//! ingress and runtime classes, quotas, limit ranges, service accounts, roles and bindings, leases, nodes, namespaces, events, webhook
//! configurations, admission policies and definitions. Objects of other kinds are accepted if their metadata is valid. A list or map that is sent empty counts as absent.
//!
//! A loop that labels every `ConfigMap`, tested through a conflict that would be rare on a real server:
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use klient::{Api, Client, WatchEvent};
//! use klient_apiserver::{ApiServer, Fault};
//!
//! async fn label(maps: &Api<ConfigMap>, name: &str) -> Result<ConfigMap, klient::Error> {
//!     loop {
//!         let mut map = maps.get(name).await?;
//!         map.metadata.labels.get_or_insert_default().insert("seen".to_owned(), "yes".to_owned());
//!         match maps.update(&map).await {
//!             Err(error) if error.is_conflict() => continue,
//!             outcome => return outcome,
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::start().await?;
//! let client = Client::from_service(server.service());
//! let maps: Api<ConfigMap> = Api::namespaced(client, "default");
//! server.inject(Fault::conflict().on_method(http::Method::PUT).times(1));
//!
//! let mut watch = maps.watch().await?;
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("web".to_owned());
//! maps.create(&map).await?;
//! let Some(Ok(WatchEvent::Added(added))) = watch.next().await else { panic!("it was added") };
//! let labelled = label(&maps, added.metadata.name.as_deref().unwrap_or_default()).await?;
//!
//! assert_eq!(labelled.metadata.labels.unwrap()["seen"], "yes");
//! let path = "/api/v1/namespaces/default/configmaps/web";
//! assert_eq!(server.requests()[&("PUT".to_owned(), path.to_owned())], 2);
//! # Ok(())
//! # }
//! ```

mod access;
mod admission;
mod audit;
mod body;
mod bootstrap;
mod builtin;
mod call;
mod causes;
mod clock;
mod conversion;
mod custom;
mod decode;
mod der;
mod discovery;
mod endpoints;
mod faults;
mod gate;
mod go;
mod managed;
mod metadata;
mod metrics;
mod negotiate;
mod openapi;
mod order;
mod patch;
mod peers;
pub mod pod_streams;
mod registry;
mod response;
mod restore;
mod route;
mod selection;
mod serve;
mod server;
mod store;
mod verbs;

pub use self::{
    access::{UsedPermissions, User},
    audit::{AuditPolicy, AuditPolicyError},
    body::ResponseBody,
    clock::{Clock, ManualClock, SystemClock},
    faults::Fault,
    restore::RestoreError,
    serve::{Listen, Listening, ServeError},
    server::{ApiServer, ApiServerBuilder, ResponseFuture, StartError},
};

/// The outcome of a request: a response, or an error as a `Status`.
type Result<T> = std::result::Result<T, Box<klient_core::Status>>;
