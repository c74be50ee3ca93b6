//! Names of subresources that Kubernetes' own kinds have. Any other name will do as well.

/// What a controller reports about an object.
pub const STATUS: &str = "status";
/// How many replicas there are and should be, as a `Scale`.
pub const SCALE: &str = "scale";
/// Deletes a pod, if its disruption budget allows.
pub const EVICTION: &str = "eviction";
/// Binds a pod to a node.
pub const BINDING: &str = "binding";
/// Makes a token for a service account.
pub const TOKEN: &str = "token";
/// What the containers of a pod have written.
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
