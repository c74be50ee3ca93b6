//! Runs the benchmarks of the wire forms and prints their ratios, with the required values.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run::{output, run};

/// Measures time and memory, counts instructions if valgrind is installed, and prints the ratios of time and instructions.
pub(crate) fn wire(root: &Path) -> Result<()> {
    let bench = |name: &str| run(root, "cargo", &["bench", "--locked", "-p", "klient-proto", "--bench", name], &[]);
    bench("wire")?;
    bench("list_memory")?;
    println!(
        "\nA pod of 6.4 KB protobuf or 9.9 KB JSON, managed fields included. Ratios of time, which vary with the machine's load:"
    );
    print_ratios(|name| mean_nanoseconds(root, name))?;
    if output(root, "valgrind", &["--version"]).is_err() {
        println!("\nvalgrind is not installed: instructions are not counted");
        return Ok(());
    }
    let program = instructions_program(root)?;
    println!("\nRatios of instructions, which do not vary with the load:");
    print_ratios(|name| instructions(root, &program, name))?;
    println!("\nthe throughput and the memory of split-trim-store are printed above, by the benchmarks themselves");
    Ok(())
}

fn print_ratios(cost: impl Fn(&str) -> Result<f64>) -> Result<()> {
    let rows = [
        ("typed decode: serde_json / klient", "decode-serde_json", "decode-klient", "required: at least 4"),
        ("typed decode: prost into k8s-pb / klient", "decode-prost", "decode-klient", "required: at least 1"),
        ("  managed fields decoded too: serde_json / klient", "decode-serde_json", "decode-klient-keep", ""),
        ("  managed fields decoded too: prost, which keeps bytes / klient", "decode-prost", "decode-klient-keep", ""),
        (
            "  no managed fields in either: serde_json / klient",
            "decode-serde_json-trimmed",
            "decode-klient-trimmed",
            "",
        ),
        ("  no managed fields in either: prost / klient", "decode-prost-trimmed", "decode-klient-trimmed", ""),
        ("metadata scan: prost full decode / klient protobuf", "decode-prost", "scan-protobuf", "required: over 40"),
        ("metadata scan: serde_json full decode / klient JSON", "decode-serde_json", "scan-json", "required: over 40"),
        ("typed encode: serde_json / klient", "encode-serde_json", "encode-klient", ""),
        ("typed encode: prost / klient", "encode-prost", "encode-klient", ""),
    ];
    for (what, other, ours, asked) in rows {
        println!("{what:66}{:8.2}  {asked}", cost(other)? / cost(ours)?);
    }
    Ok(())
}

/// Returns the mean of criterion's last measurement.
fn mean_nanoseconds(root: &Path, name: &str) -> Result<f64> {
    let path = root.join("target/criterion/pod").join(name).join("new/estimates.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let estimates: serde_json::Value = serde_json::from_str(&text)?;
    estimates["mean"]["point_estimate"].as_f64().with_context(|| format!("criterion has no mean of {name}"))
}

/// Builds the program that repeats one operation, and returns its path.
fn instructions_program(root: &Path) -> Result<String> {
    let arguments =
        ["bench", "--locked", "-p", "klient-proto", "--bench", "instructions", "--no-run", "--message-format", "json"];
    let built = output(root, "cargo", &arguments)?;
    let program = built.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let wanted = message["target"]["name"] == "instructions";
        message["executable"].as_str().filter(|_| wanted).map(str::to_owned)
    });
    program.context("cargo reported no executable for the benchmark `instructions`")
}

/// Returns the number of instructions of one operation, from the difference between 150 and 50 repetitions.
fn instructions(root: &Path, program: &str, operation: &str) -> Result<f64> {
    let count = |times: u32| -> Result<f64> {
        let file = root.join("target/callgrind.out");
        let out = format!("--callgrind-out-file={}", file.display());
        output(root, "valgrind", &["--tool=callgrind", &out, program, operation, &times.to_string()])?;
        let text = std::fs::read_to_string(&file)?;
        let total = text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
        Ok(total.context("callgrind output has no total")?.trim().parse()?)
    };
    Ok((count(150)? - count(50)?) / 100.0)
}
