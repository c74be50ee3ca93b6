//! What happens at each stage, told as it happens: klient's own traces, laid out for people.

use std::{
    fmt::{self, Write as _},
    io::{self, Write as _},
    sync::Mutex,
    time::Instant,
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// Where a trace belongs, by the module that it comes from.
const STAGES: &[(&str, &str)] = &[
    ("klient::informer::reflector", "reflector"),
    ("klient::informer::delta_fifo", "fifo"),
    ("klient::informer::store", "cache"),
    ("klient::controller::key_queue", "queue"),
    ("klient::controller", "reconcile"),
    ("klient_cli::sample_controller", "sample"),
];

/// Writes a line for each trace of a stage.
pub(super) struct Stages {
    started: Instant,
    colour: bool,
    /// Lines of several threads do not mix.
    out: Mutex<io::Stdout>,
}

impl Stages {
    pub(super) fn new(colour: bool) -> Self {
        Self { started: Instant::now(), colour, out: Mutex::new(io::stdout()) }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Stages {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let Some((_, stage)) = STAGES.iter().find(|(module, _)| target.starts_with(module)) else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let trouble = *event.metadata().level() <= Level::WARN;
        let colour = match (self.colour, trouble, *stage) {
            (false, ..) => "",
            (_, true, _) => "\x1b[31m",
            (_, _, "reconcile" | "sample") => "\x1b[32m",
            (_, _, "queue") => "\x1b[33m",
            _ => "\x1b[36m",
        };
        let end = if colour.is_empty() { "" } else { "\x1b[0m" };
        let millis = self.started.elapsed().as_secs_f64() * 1000.0;
        let line = format!("{millis:8.1} ms  {colour}{stage:9}{end}  {}{}\n", fields.message, fields.others);
        // A reader that is gone ends the demo elsewhere.
        if let Ok(mut out) = self.out.lock() {
            let _ = out.write_all(line.as_bytes());
        }
    }
}

/// The fields of a trace, in a line.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            // There is one of them.
            "controller" => Ok(()),
            name => write!(self.others, "  {name}={value:?}"),
        };
    }
}
