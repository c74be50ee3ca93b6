//! `--verbose`: every stage of the pipeline as it happens, from klient's own trace events.

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

use crate::output::{Paint, Palette};

/// A stage of the pipeline, by the module whose trace events belong to it. The first prefix that matches wins.
const STAGES: &[(&str, &str, Paint)] = &[
    ("klient::informer::reflector", "watch", Paint::Cyan),
    ("klient::informer::delta_fifo", "batch", Paint::Cyan),
    ("klient::informer::store", "cache", Paint::Cyan),
    ("klient::controller::key_queue", "queue", Paint::Yellow),
    ("klient::controller", "reconcile", Paint::Green),
    ("klient_cli::sample_controller", "sample", Paint::Green),
];

/// A tracing layer that prints a line for each trace event of a stage.
pub(super) struct Stages {
    started: Instant,
    palette: Palette,
    /// Locked for each line, so that lines of several threads do not mix.
    out: Mutex<io::Stdout>,
}

impl Stages {
    /// Returns a layer that prints the time since now.
    pub(super) fn new(palette: Palette) -> Self {
        Self { started: Instant::now(), palette, out: Mutex::new(io::stdout()) }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Stages {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let Some((_, stage, paint)) = STAGES.iter().find(|(module, ..)| target.starts_with(module)) else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let is_failure = *event.metadata().level() <= Level::WARN;
        let stage = self.palette.paint(if is_failure { Paint::Red } else { *paint }, format_args!("{stage:<9}"));
        let millis =
            self.palette.paint(Paint::Dim, format_args!("{:>9.1} ms", self.started.elapsed().as_secs_f64() * 1000.0));
        let line = format!("{millis}  {stage}  {:<32} {}", fields.message, fields.others);
        // If standard output is closed, the next line of the story ends the demo.
        if let Ok(mut out) = self.out.lock() {
            let _ = out.write_all(format!("{}\n", line.trim_end()).as_bytes());
        }
    }
}

/// The message of a trace event, and its other fields on one line.
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
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            // The demo runs one controller.
            "controller" => Ok(()),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}
