//! Records what a real API server answers to the differential scripts: `cargo xtask record` runs this.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, unreachable_pub)]

#[path = "../tests/differential/script.rs"]
mod script;

use std::{error::Error, path::Path, time::Duration};

use klient::client::{
    Client, Config,
    transport::{HttpSettings, HttpTransport, Transport as _},
};

use self::script::{Raw, Run, Step};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let config = Config::infer()?;
    let mut settings = HttpSettings::new(config.server.clone());
    settings.tls = config.tls.clone();
    let transport = HttpTransport::new(settings)?;
    let klient::client::config::Credentials::Token(token) = &config.credentials else { return Err("no token".into()) };
    // Ready, before anything is asked.
    let client = Client::from_config(&config)?;
    while client.rest().get().path("/readyz").bytes().await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for entry in std::fs::read_dir(folder.join("scripts"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let steps: Vec<Step> = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        let mut run = Run::new(&format!("d-{name}-{}", std::process::id()));
        let mut answers = Vec::new();
        for step in &steps {
            let mut raw = ask(&transport, token.expose(), &run, step).await?;
            for _ in 0..300 {
                if step.until.is_none_or(|code| code == raw.code) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                raw = ask(&transport, token.expose(), &run, step).await?;
            }
            answers.push(run.note(step, &raw));
        }
        let mut text = String::from("[\n");
        for (index, answer) in answers.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { ",\n" });
            text.push_str(&serde_json::to_string(answer)?);
        }
        text.push_str("\n]\n");
        std::fs::write(folder.join("recorded").join(format!("{name}.json")), text)?;
        println!("{name}: {} answers", answers.len());
    }
    Ok(())
}

async fn ask(transport: &HttpTransport, token: &str, run: &Run, step: &Step) -> Result<Raw, Box<dyn Error>> {
    let mut request = http::Request::builder().method(step.method.as_str()).uri(run.fill(&step.path));
    request = request.header("authorization", format!("Bearer {token}"));
    for (name, value) in &step.headers {
        request = request.header(name, run.fill(value));
    }
    if step.body.is_some() && !step.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
        request = request.header("content-type", "application/json");
    }
    let response = transport.send(request.body(run.body(step).into())?).await?;
    let (parts, body) = response.into_parts();
    let text =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let warnings =
        parts.headers.get_all("warning").iter().map(|value| value.to_str().unwrap_or_default().to_owned()).collect();
    let (code, content_type) = (parts.status.as_u16(), text("content-type"));
    Ok(Raw { code, content_type, warnings, body: body.collect(64 << 20).await?.to_vec() })
}
