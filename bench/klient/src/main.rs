//! The program that is measured.

use anyhow::Result;

#[tokio::main]
async fn main() -> Result<()> {
    bench_klient::run().await
}
