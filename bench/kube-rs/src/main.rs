//! The program that is measured.

use anyhow::Result;

#[tokio::main]
async fn main() -> Result<()> {
    bench_kube_rs::run().await
}
