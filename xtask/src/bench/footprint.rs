//! The sizes of the programs, and the times of clean builds.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use klient_harness::Folder;
use serde_json::{Map, Value, json};

use super::program::{self, Library, Program};
use crate::run::run;

/// The size and the build time of one program.
pub(super) struct Footprint {
    library: Library,
    /// The size of the binary, without symbols if `strip` is available.
    bytes: u64,
    is_stripped: bool,
    /// The time of a clean build, if measured.
    build: Option<Duration>,
}

/// Measures the programs that were built. Clean builds take minutes, and are measured only on request.
pub(super) fn measure(root: &Path, programs: &[Program], build_times: bool) -> Result<Vec<Footprint>> {
    let mut footprints = Vec::new();
    for program in programs {
        let Ok(path) = program.path() else { continue };
        let folder = Folder::new()?;
        let stripped = folder.path().join("stripped");
        let arguments = ["-o", &stripped.to_string_lossy(), &path.to_string_lossy()];
        let is_stripped = run(root, "strip", &arguments, &[]).is_ok();
        let bytes = fs::metadata(if is_stripped { &stripped } else { path })?.len();
        let build = if build_times { Some(build_time(root, program.library, folder.path())?) } else { None };
        footprints.push(Footprint { library: program.library, bytes, is_stripped, build });
    }
    Ok(footprints)
}

/// Returns the time of a clean build. Downloads are not included.
fn build_time(root: &Path, library: Library, folder: &Path) -> Result<Duration> {
    let started = Instant::now();
    program::build_from_nothing(&root.join("bench"), library, folder)?;
    Ok(started.elapsed())
}

pub(super) fn table(footprints: &[Footprint]) -> String {
    let mut lines = vec![
        "**the programs themselves**\n".to_owned(),
        "| library | MB | seconds to build from nothing |".to_owned(),
        "|---|---|---|".to_owned(),
    ];
    for Footprint { library, bytes, is_stripped, build } in footprints {
        let symbols = if *is_stripped { "" } else { ", with symbols" };
        let build = build.map_or_else(|| "not measured".to_owned(), |build| format!("{:.0}", build.as_secs_f64()));
        lines.push(format!("| {} | {:.1}{symbols} | {build} |", library.name(), *bytes as f64 / 1e6));
    }
    lines.join("\n")
}

pub(super) fn to_json(footprints: &[Footprint]) -> Value {
    let entry = |footprint: &Footprint| {
        let build = footprint.build.map(|build| build.as_secs_f64());
        let value = json!({"bytes": footprint.bytes, "stripped": footprint.is_stripped, "build_seconds": build});
        (footprint.library.name().to_owned(), value)
    };
    Value::Object(footprints.iter().map(entry).collect::<Map<_, _>>())
}
