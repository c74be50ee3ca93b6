//! The program that is measured.

use anyhow::Result;

#[tokio::main]
async fn main() -> Result<()> {
    // In a task, as in a service: the main thread is outside of the runtime's workers, and each wake-up of it is a system call.
    tokio::spawn(bench_klient::run()).await?
}
