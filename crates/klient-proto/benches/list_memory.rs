//! The memory of a list of 20,000 pods in raw form, measured as resident memory of the process.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

mod pods;

use klient_proto::{ListSplitter, SplitOptions};

fn main() {
    let (protobuf, json) = pods::list_bodies(20_000);
    for (name, body) in [("protobuf", protobuf), ("json", json)] {
        let mut splitter = match name {
            "protobuf" => ListSplitter::protobuf(SplitOptions::default()),
            _ => ListSplitter::json(SplitOptions::default()),
        };
        let before = resident();
        let mut objects = Vec::with_capacity(20_000);
        for chunk in body.chunks(16 << 10) {
            splitter.push(chunk, |item| objects.push(item.unwrap())).unwrap();
        }
        let grown = resident() - before;
        let trimmed: usize = objects.iter().map(|object| object.bytes().len()).sum();
        println!(
            "{name}: {} objects, body {:.1} MB, trimmed {:.1} MB, resident +{:.1} MB, ratio {:.3}",
            objects.len(),
            body.len() as f64 / 1e6,
            trimmed as f64 / 1e6,
            grown as f64 / 1e6,
            grown as f64 / trimmed as f64
        );
    }
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
