//! `klient why`, `klient top` and `klient informers`: the data of a manager's debug page in a terminal.
//!
//! The manager is found at a local address, or in a pod through a port-forward. The forms are those of `klient::introspection`.

use std::{
    error::Error,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use clap::{Args, ValueEnum};
use klient::{
    client::streams::ForwardListener,
    introspection::{KeySearch, KeyStory, ReasonReport, ShardReport, Snapshot, Stories, TurnReport},
};
use serde::de::DeserializeOwned;

use crate::{
    cluster::Namespaced,
    output::{self, Paint, Palette},
    port_forward,
};

/// The options that find a manager.
#[derive(Args)]
pub(crate) struct Source {
    /// The address of a manager with a debug page on this machine
    #[arg(long, default_value = "localhost:8080", value_name = "HOST:PORT")]
    address: String,
    /// A pod, or svc/NAME, deploy/NAME, sts/NAME, to which a port is forwarded instead
    #[arg(long, value_name = "TARGET", conflicts_with = "address")]
    pod: Option<String>,
    /// The port of the manager in the pod
    #[arg(long, default_value_t = 8080, requires = "pod")]
    port: u16,
    /// The file with the bearer token, if the page requires one [default: the variable KLIENT_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<std::path::PathBuf>,
    #[command(flatten)]
    place: Namespaced,
    /// The output format
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Show the state again every second
    #[arg(long, short)]
    watch: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The options of `klient why`.
#[derive(Args)]
pub(crate) struct Why {
    /// The key of the object: NAMESPACE/NAME, or NAME for cluster-scoped kinds; a part of it lists the keys that contain it
    #[arg(value_name = "NAMESPACE/NAME")]
    key: String,
    /// The controller [default: all that know the key]
    #[arg(long)]
    controller: Option<String>,
    #[command(flatten)]
    source: Source,
}

/// The options of `klient top` and `klient informers`.
#[derive(Args)]
pub(crate) struct Look {
    #[command(flatten)]
    source: Source,
}

/// Explains a key.
pub(crate) async fn why(arguments: &Why) -> Result<(), Box<dyn Error>> {
    let manager = Manager::find(&arguments.source).await?;
    let mut path = format!("why?key={}", escaped(&arguments.key));
    if let Some(controller) = &arguments.controller {
        let _ = write!(path, "&controller={}", escaped(controller));
    }
    manager
        .show(&path, async |stories: Stories| {
            let mut text = why_text(&stories, Palette::of_stdout());
            let is_unknown = stories.stories.iter().all(|story| story.object.is_none() && story.turns.is_empty());
            if is_unknown {
                let found: KeySearch =
                    manager.get(&format!("keys?search={}&limit=20", escaped(&arguments.key))).await?;
                if !found.keys.is_empty() {
                    text.push_str("\nKeys that contain this text:\n");
                    for key in &found.keys {
                        let _ = writeln!(text, "  {} ({})", key.key, key.controller);
                    }
                }
            }
            Ok(text)
        })
        .await
}

/// Shows controllers, and the keys that are slow, fail or loop.
pub(crate) async fn top(arguments: &Look) -> Result<(), Box<dyn Error>> {
    let manager = Manager::find(&arguments.source).await?;
    manager.show("status", async |snapshot: Snapshot| Ok(top_text(&snapshot))).await
}

/// Shows informers.
pub(crate) async fn informers(arguments: &Look) -> Result<(), Box<dyn Error>> {
    let manager = Manager::find(&arguments.source).await?;
    manager.show("status", async |snapshot: Snapshot| Ok(informers_text(&snapshot))).await
}

/// A manager with a debug page.
struct Manager<'a> {
    source: &'a Source,
    address: String,
    token: Option<String>,
    /// The port-forward, which ends with this value.
    _forward: Option<ForwardListener>,
}

impl<'a> Manager<'a> {
    async fn find(source: &'a Source) -> Result<Self, Box<dyn Error>> {
        let token = match &source.token_file {
            Some(file) => Some(std::fs::read_to_string(file)?.trim().to_owned()),
            None => std::env::var("KLIENT_TOKEN").ok().filter(|token| !token.is_empty()),
        };
        let Some(target) = &source.pod else {
            return Ok(Self { source, address: source.address.clone(), token, _forward: None });
        };
        let forward = port_forward::request(&source.place, target, source.port)?.await?;
        let listener = forward.listen(("127.0.0.1", 0)).await?;
        let address = format!("localhost:{}", listener.local_addr().port());
        Ok(Self { source, address, token, _forward: Some(listener) })
    }

    /// Prints the response to a request once, or every second.
    async fn show<T: DeserializeOwned>(
        &self,
        path: &str,
        text: impl AsyncFn(T) -> Result<String, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let mut interval = tokio::time::interval(Duration::from_secs(1));
        loop {
            let body = self.request(path).await?;
            let shown = match self.source.output {
                Format::Json if self.source.watch => format!("{}\n", String::from_utf8_lossy(&body)),
                Format::Json => {
                    let value: serde_json::Value = serde_json::from_slice(&body)?;
                    format!("{}\n", serde_json::to_string_pretty(&value)?)
                }
                Format::Text => text(serde_json::from_slice(&body)?).await?,
            };
            let mut out = io::stdout().lock();
            if self.source.watch && self.source.output == Format::Text && io::stdout().is_terminal() {
                write!(out, "\x1b[H\x1b[2J")?;
            }
            write!(out, "{shown}")?;
            out.flush()?;
            drop(out);
            if !self.source.watch {
                return Ok(());
            }
            interval.tick().await;
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Box<dyn Error>> {
        Ok(serde_json::from_slice(&self.request(path).await?)?)
    }

    async fn request(&self, path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
        crate::plain_http::get(&self.address, &format!("/debug/klient/v1/{path}"), self.token.as_deref()).await
    }
}

fn why_text(stories: &Stories, palette: Palette) -> String {
    let mut out = String::new();
    if stories.stories.is_empty() {
        let _ = writeln!(out, "{}: no controller knows this key", stories.key);
    }
    for story in &stories.stories {
        let title = format!("{} in {}", clean(&story.key), clean(&story.controller));
        let _ = writeln!(out, "{}", palette.paint(Paint::Bold, title));
        let mut details = format!("  {}\n", clean(&story.summary));
        story_details(&mut details, story);
        details.lines().for_each(|line| out.extend([&*clean(line), "\n"]));
    }
    out
}

fn story_details(out: &mut String, story: &KeyStory) {
    match &story.object {
        Some(object) => {
            let deleting = if object.is_deleting { ", being deleted" } else { "" };
            let _ = writeln!(out, "  cached: version {}{deleting}", object.resource_version);
        }
        None => out.push_str("  cached: no\n"),
    }
    if !story.pending.is_empty() {
        let _ = writeln!(out, "  queued because of: {}", reasons(&story.pending, 0));
    }
    if let Some(event) = &story.filtered {
        let (ago, count) = (time(event.ago), event.count);
        let _ =
            writeln!(out, "  last ignored event: {} {ago} ago by {} ({count} in all)", event.source, event.predicate);
    }
    for fight in &story.fights {
        let managers = fight.managers.join(" and ");
        let _ = writeln!(out, "  fight: {managers} over {} of {} {}", fight.field, fight.resource, fight.object);
    }
    for informer in &story.informers {
        let event = informer.event_ago.map_or("no event".to_owned(), |ago| format!("last event {} ago", time(ago)));
        let error = informer.last_error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
        let _ = writeln!(out, "  informer: {} {}, {event}{error}", informer.resource, informer.state);
    }
    if !story.has_history {
        out.push_str("  turns are not recorded\n");
        return;
    }
    let (turns, failures) = (story.turn_count, story.failure_count);
    let _ = writeln!(out, "  turns: {turns}, {failures} failed, {} in a minute", story.turns_per_minute);
    let mut rows = Vec::new();
    if !story.turns.is_empty() {
        rows.push(
            ["  ENDED", "TOOK", "QUEUED", "VERSION", "OUTCOME", "NEXT", "BECAUSE OF"].map(str::to_owned).to_vec(),
        );
    }
    rows.extend(story.turns.iter().map(turn_row));
    out.push_str(&table(&rows));
}

fn turn_row(turn: &TurnReport) -> Vec<String> {
    let outcome = serde_json::to_value(turn.outcome).ok().and_then(|value| value.as_str().map(str::to_owned));
    let error = turn.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    vec![
        format!("  {} ago", time(turn.ended_ago)),
        time(turn.took),
        turn.queued_for.map_or("-".to_owned(), time),
        turn.seen_version.map_or("-".to_owned(), |version| version.to_string()),
        format!("{}{error}", outcome.unwrap_or_default()),
        turn.next_in.map_or("-".to_owned(), |next| format!("in {}", time(next))),
        reasons(&turn.reasons, turn.more_reasons),
    ]
}

fn reasons(reasons: &[ReasonReport], more: usize) -> String {
    let words = |reason: &ReasonReport| {
        let parts = [reason.source.as_deref(), reason.object.as_deref(), Some(reason.kind.as_str())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let mut text = reasons.iter().map(words).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn top_text(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    if let Some(leadership) = &snapshot.leadership {
        let _ = match (&leadership.leader, leadership.is_leader) {
            (_, true) => writeln!(out, "this process leads"),
            (Some(leader), false) => writeln!(out, "standby, {leader} leads"),
            (None, false) => writeln!(out, "standby, no process leads"),
        };
    }
    if let Some(shards) = &snapshot.shards {
        out.push_str(&shards_text(shards));
    }
    let header =
        ["CONTROLLER", "PHASE", "READY", "DELAYED", "BUSY", "FAILING", "SUCCEEDED", "FAILED", "PER SECOND", "OLDEST"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for one in &snapshot.controllers {
        let phase = serde_json::to_value(one.phase).ok().and_then(|value| value.as_str().map(str::to_owned));
        let rate = one.samples.last().map(|last| {
            let done = (one.succeeded + one.failed).saturating_sub(last.succeeded + last.failed);
            done as f64 / last.ago.max(0.001)
        });
        rows.push(vec![
            one.name.clone(),
            phase.unwrap_or_default(),
            one.queue.ready.to_string(),
            one.queue.delayed.to_string(),
            format!("{}/{}", one.queue.in_process, one.workers),
            one.queue.failing.to_string(),
            one.succeeded.to_string(),
            one.failed.to_string(),
            rate.map_or("-".to_owned(), |rate| format!("{rate:.1}")),
            one.queue.oldest.map_or("-".to_owned(), time),
        ]);
    }
    out.push_str(&table(&rows));
    let mut rows = vec![["KEY", "CONTROLLER", "NOTABLE FOR"].map(str::to_owned).to_vec()];
    for one in &snapshot.controllers {
        let mut add = |key: &str, why: String| rows.push(vec![key.to_owned(), one.name.clone(), why]);
        one.running
            .iter()
            .take(5)
            .for_each(|key| add(&key.key, format!("running for {}", key.running_for.map_or("-".to_owned(), time))));
        one.hot_loops
            .iter()
            .take(5)
            .for_each(|key| add(&key.key, format!("a loop, {} turns in a minute", key.per_minute)));
        one.failing
            .iter()
            .take(5)
            .for_each(|key| add(&key.key, format!("{} failures in {} turns", key.failures, key.turns)));
        one.slowest
            .iter()
            .take(5)
            .for_each(|key| add(&key.key, format!("its slowest turn took {}", time(key.slowest))));
    }
    if rows.len() > 1 {
        out.push('\n');
        out.push_str(&table(&rows));
    }
    out
}

fn shards_text(shards: &ShardReport) -> String {
    let members: Vec<String> = shards.members.iter().map(|(name, slots)| format!("{name} {slots}")).collect();
    let problem = shards.problem.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default();
    let (open, orphans) = (shards.open, shards.orphans);
    let line = format!("shards: {open} slots here, {orphans} without an owner; {}{problem}", members.join(", "));
    format!("{}\n", clean(&line))
}

fn informers_text(snapshot: &Snapshot) -> String {
    let header =
        ["RESOURCE", "STATE", "OBJECTS", "BYTES", "EVENTS", "LAST EVENT", "RELISTS", "UNREADABLE", "LAST ERROR"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for one in &snapshot.informers {
        let relists: Vec<String> = one.relists.iter().map(|(reason, count)| format!("{reason}={count}")).collect();
        rows.push(vec![
            one.resource.clone(),
            one.stale_for.map_or(one.state.clone(), |age| format!("{} for {}", one.state, time(age))),
            one.objects.to_string(),
            one.bytes.to_string(),
            one.events.to_string(),
            one.event_ago.map_or("never".to_owned(), |ago| format!("{} ago", time(ago))),
            if relists.is_empty() { "-".to_owned() } else { relists.join(",") },
            if one.unreadable == 0 { "-".to_owned() } else { one.unreadable_keys.join(",") },
            one.last_error.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table(&rows)
}

/// Removes control characters, so that messages cannot steer the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns rows in aligned columns, without control characters.
fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = output::columns(&mut out, &rows);
    String::from_utf8_lossy(&out).into_owned()
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.001 => format!("{:.0} us", seconds.max(0.0) * 1e6),
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Returns a text as a part of a query.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_shows_the_members_of_a_group() {
        let report = r#"{"open": 100, "orphans": 0, "members": {"anna": 100, "berta": 156}, "problem": null}"#;
        let text = shards_text(&serde_json::from_str(report).unwrap());
        assert_eq!(text, "shards: 100 slots here, 0 without an owner; anna 100, berta 156\n");
    }

    #[test]
    fn query_text_is_escaped() {
        assert_eq!(escaped("shop/web"), "shop/web");
        assert_eq!(escaped("a&b=c é"), "a%26b%3Dc%20%C3%A9");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(table(&[vec!["a\x1b[31m\nb".to_owned()]]), "a [31m b\n");
    }
}
