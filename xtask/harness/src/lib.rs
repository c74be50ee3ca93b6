//! The real kube-apiserver, etcd and kubectl for tests: found or built, started and stopped.
//!
//! Nothing that is started outlives the process that started it, however that ends.

mod authority;
mod keeper;
mod programs;
mod server;

pub use authority::{Authority, CertifiedKey};
pub use keeper::{kept, run_kept};
pub use programs::Programs;
pub use server::{Folder, SECOND_TOKEN, Server, TOKEN};
