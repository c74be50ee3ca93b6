//! Code generation, checks and the steps of CI: one place for people and machines.
mod codegen;
fn main() -> anyhow::Result<()> {
    codegen::run(
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")),
        std::env::args().any(|a| a == "--check"),
    )
}
