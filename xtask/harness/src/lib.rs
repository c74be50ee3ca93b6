//! The real kube-apiserver, etcd and kubectl for tests, and a kubelet: found or built, started and stopped.
//!
//! Child processes end, and temporary folders are removed, with the process that created them, even if it is killed.

mod authority;
mod keeper;
mod kubelet;
mod programs;
mod server;

pub use authority::{Authority, CertifiedKey};
pub use keeper::{kept, run_kept};
pub use kubelet::Kubelet;
pub use programs::Programs;
pub use server::{Folder, SECOND_TOKEN, Server, TOKEN};
