//! Records the real API server's responses to the differential scripts: `cargo xtask record` runs this.

#![allow(dead_code, clippy::print_stdout, clippy::unwrap_used, missing_docs, unreachable_pub)]

#[path = "../tests/differential/audit.rs"]
mod audit;
#[path = "../tests/differential/cues.rs"]
mod cues;
#[path = "../tests/differential/layout.rs"]
mod layout;
#[path = "../tests/differential/objects.rs"]
mod objects;
#[path = "../tests/differential/random.rs"]
mod random;
#[path = "../tests/differential/real.rs"]
mod real;
#[path = "../tests/differential/script.rs"]
mod script;

use std::{path::Path, sync::Arc};

use klient::client::config::Config;

use self::{
    real::{Failure, Real},
    script::Step,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let only = std::env::args().nth(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let peer = cues::serve().await?;
    let mut real = Real::connect(&Config::infer()?).await?;
    real.peer = Some(peer);
    let real = Arc::new(real);
    for entry in std::fs::read_dir(folder.join("scripts"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let steps: Vec<Step> = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        let responses = real.responses(&format!("d-{name}-{}", std::process::id()), &steps).await?;
        let lines: Vec<String> = responses.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        std::fs::write(folder.join("recorded").join(format!("{name}.json")), format!("[\n{}\n]\n", lines.join(",\n")))?;
        println!("{name}: {} responses", responses.len());
    }
    if let Some(log) = std::env::var_os("KLIENT_AUDIT_LOG").filter(|_| only.as_ref().is_none_or(|only| only == "audit"))
    {
        audit_events(&real, &folder, Path::new(&log)).await?;
    }
    if only.is_none_or(|only| only == "random") {
        sequences(&real, &folder).await?;
    }
    Ok(())
}

/// Records the events of the audit log.
async fn audit_events(real: &Real, folder: &Path, log: &Path) -> Result<(), Failure> {
    let namespace = format!("d-audit-{}", std::process::id());
    let steps = audit::steps();
    let mut run = script::Run::new(&namespace);
    real.run(&mut run, &steps).await?;
    let last = format!("\"{namespace}-{:02}\",\"stage\":\"ResponseComplete\"", steps.len() - 1);
    let mut text = String::new();
    while !text.contains(&last) {
        // The server writes the last line after its response, and there is no event to wait for.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        text = std::fs::read_to_string(log)?;
    }
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let events = audit::events(&mut run, &namespace, &lines);
    let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("audit/recorded.json"), format!("[\n{}\n]\n", lines.join(",\n")))?;
    println!("audit: {} events", events.len());
    Ok(())
}

/// Records the responses to random sequences, one line for each seed.
async fn sequences(real: &Arc<Real>, folder: &Path) -> Result<(), Failure> {
    real.responses("d-setup", &random::setup()).await?;
    let seeds: Vec<u64> = random::RECORDED.iter().cloned().flatten().collect();
    let mut lines = Vec::new();
    for (seed, responses) in random::record(real, &seeds, random::sequence).await? {
        let responses: Vec<String> = responses.iter().map(|response| response.to_short().to_string()).collect();
        lines.push(format!("\"{seed}\":[{}]", responses.join(",")));
    }
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    println!("random: {} sequences, {} bytes", seeds.len(), text.len());
    Ok(std::fs::write(folder.join("random.json"), text)?)
}
