//! Records the responses of a real server about the fleet, in both encodings, for the replay server.

use std::fs;

use anyhow::{Context as _, Result};
use bench_jobs::{Arguments, CUSTOM_GROUP, CUSTOM_PLURAL, CUSTOM_VERSION, FLEET};
use klient::Client;

/// Long enough for a watch to send all earlier changes.
const WATCH_SECONDS: u32 = 3;

/// Records a list, a watch with initial events, and a watch of the changes since a version: of pods in both encodings, and of custom
/// resources, which do not change.
pub(crate) async fn record(arguments: &Arguments, client: &Client) -> Result<()> {
    let pods = format!("/api/v1/namespaces/{FLEET}/pods");
    let custom = format!("/apis/{CUSTOM_GROUP}/{CUSTOM_VERSION}/namespaces/{FLEET}/{CUSTOM_PLURAL}");
    for (extension, path, media_type) in [
        ("pb", &pods, "application/vnd.kubernetes.protobuf"),
        ("json", &pods, "application/json"),
        ("custom.json", &custom, "application/json"),
    ] {
        let stream = if extension == "pb" { format!("{media_type};stream=watch") } else { media_type.to_owned() };
        let request = || client.rest().get().path(path);
        let watch = || {
            let request = request().accept(&stream).param("watch", true).param("allowWatchBookmarks", true);
            request.param("timeoutSeconds", WATCH_SECONDS)
        };
        let state = watch().param("sendInitialEvents", true).param("resourceVersionMatch", "NotOlderThan");
        let (list, initial, events) = tokio::try_join!(
            request().accept(media_type).bytes(),
            state.bytes(),
            watch().param("resourceVersion", &arguments.since).bytes(),
        )?;
        for (name, body) in [("list", list), ("initial", initial), ("events", events)] {
            let file = arguments.recording.join(format!("{name}.{extension}"));
            fs::write(&file, body).with_context(|| file.display().to_string())?;
        }
    }
    println!("{{}}");
    Ok(())
}
