//! Names of subresources of Kubernetes' built-in kinds. Any other name is accepted as well.

/// The status of an object, which controllers write.
pub const STATUS: &str = "status";
/// The current and the desired number of replicas, as a `Scale`.
pub const SCALE: &str = "scale";
/// Deletes a pod, if its disruption budget allows.
pub const EVICTION: &str = "eviction";
/// Binds a pod to a node.
pub const BINDING: &str = "binding";
/// Creates a token for a service account.
pub const TOKEN: &str = "token";
/// The log of a container.
pub const LOG: &str = "log";
/// Adds containers to a running pod, for debugging.
pub const EPHEMERAL_CONTAINERS: &str = "ephemeralcontainers";
/// Changes the resources of a running pod.
pub const RESIZE: &str = "resize";
/// Sends HTTP requests to a pod, service or node.
pub const PROXY: &str = "proxy";
/// Runs a command in a container.
pub const EXEC: &str = "exec";
/// Attaches to a running container.
pub const ATTACH: &str = "attach";
/// Forwards connections to a pod.
pub const PORT_FORWARD: &str = "portforward";
/// Removes the finalizers of a namespace.
pub const FINALIZE: &str = "finalize";
/// Approves or denies a certificate signing request.
pub const APPROVAL: &str = "approval";
