//! A comparison of the embedded server with the real kube-apiserver and etcd: work per second of CPU time, time to start,
//! and memory per object.
//!
//! The same program sends requests to both servers in turn, over HTTPS and HTTP/2. CPU is the user and system time of the
//! servers' own processes, read from `/proc`. The CPU of the program is not counted.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use klient_harness::{Folder, Programs, Server, kept};

use crate::run::{output, run};

/// Measures both servers, and prints a table.
pub(crate) fn compare(root: &Path) -> Result<()> {
    let build =
        ["build", "--release", "--locked", "-p", "klient-cli", "-p", "klient-apiserver", "--bins", "--example", "load"];
    run(root, "cargo", &build, &[])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let load = target.join("release/examples/load");
    measure(&load, &target.join("release/klient"), Folder::new()?.path())
}

fn measure(load: &Path, klient: &Path, folder: &Path) -> Result<()> {
    starts(load, klient, folder)?;
    let (done, seconds) = ask(load, &["decide", "20000"], Path::new(""))?;
    println!("access control of a request, with 1,000 bindings: {:.2} us", seconds / done * 1e6);
    let (done, seconds) = ask(load, &["review", "2000"], Path::new(""))?;
    println!("admission by a webhook in process: {:.1} us", seconds / done * 1e6);
    let begin = Instant::now();
    let real = Server::start(&Programs::find_or_build()?)?;
    println!("start of kube-apiserver and etcd, until ready: {:.0} ms", begin.elapsed().as_secs_f64() * 1000.0);
    let ours = Serving::start(klient, &folder.join("kubeconfig"))?;
    let (real_at, ours_at) = (real.kubeconfig(), folder.join("kubeconfig"));
    let sides: [(&str, &[&str], &Path); 2] =
        [("kube-apiserver + etcd", &["kube-apiserver", "etcd"], &real_at), ("klient serve", &["klient"], &ours_at)];
    let before: Vec<f64> = sides.iter().map(|(_, programs, _)| memory(programs)).collect::<Result<_>>()?;
    println!("\n| job | server | per second of CPU | per second | CPU s |\n|---|---|---|---|---|");
    for job in JOBS {
        let mut rates = Vec::new();
        for (name, programs, kubeconfig) in sides {
            let busy = cpu(programs)?;
            let (done, seconds) = ask(load, job, kubeconfig)?;
            let busy = cpu(programs)? - busy;
            ensure!(busy > 0.0, "expected {name} to use CPU, but measured none");
            println!("| {} | {name} | {:.0} | {:.0} | {busy:.2} |", job.join(" "), done / busy, done / seconds);
            rates.push(done / busy);
        }
        println!("| {} | ratio | **{:.1}** | | |", job.join(" "), rates[1] / rates[0]);
        if job[0] == "create" {
            for ((name, programs, _), before) in sides.iter().zip(&before) {
                let per_object = (memory(programs)? - before) / OBJECTS;
                println!("| memory | {name} | {per_object:.1} KiB per object | | |");
            }
        }
    }
    drop(ours);
    Ok(())
}

/// Measures and prints the time from the start of the embedded server to its first response.
fn starts(load: &Path, klient: &Path, folder: &Path) -> Result<()> {
    let file = folder.join("start");
    let (klient, file) = (klient.to_string_lossy(), file.to_string_lossy());
    for (name, job) in [("in process", &["start"][..]), ("as a process", &["start-process", &klient, &file])] {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            times.push(ask(load, job, Path::new(""))?.1 * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "start {name}, to the first response: median {:.1} ms, worst {:.1} ms",
            times[STARTS / 2],
            times[STARTS - 1]
        );
    }
    Ok(())
}

/// Runs a job. Returns the number of operations and the seconds that they took.
fn ask(load: &Path, job: &[&str], kubeconfig: &Path) -> Result<(f64, f64)> {
    let arguments =
        [&["-c", r#"KUBECONFIG="$0" exec "$@""#, &kubeconfig.to_string_lossy(), &load.to_string_lossy()], job];
    let text = output(Path::new("."), "sh", &arguments.concat())?;
    let line = text.lines().last().unwrap_or_default();
    let (done, seconds) = line
        .split_once(' ')
        .with_context(|| format!("expected a count and seconds from job {job:?}, but it printed {text:?}"))?;
    Ok((done.parse()?, seconds.parse()?))
}

/// A running `klient serve`. It ends when this value is dropped, and with this process.
struct Serving(Child);

impl Serving {
    fn start(klient: &Path, kubeconfig: &Path) -> Result<Self> {
        let mut child = kept(klient).arg("serve").arg("--kubeconfig").arg(kubeconfig).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("standard output is not piped")?).lines();
        let serving = Self(child);
        for line in lines {
            if line?.starts_with("export KUBECONFIG=") {
                return Ok(serving);
            }
        }
        anyhow::bail!("`klient serve` ended before it printed its kubeconfig")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // `wait` closes standard input, which ends the server. An error means that the server has already exited.
        let _ = self.0.wait();
    }
}

/// Returns the seconds of CPU used by the descendants of this process with these names.
fn cpu(programs: &[&str]) -> Result<f64> {
    let ticks = descendants(programs)?.iter().map(|stat| stat.ticks).sum::<f64>();
    Ok(ticks / TICKS)
}

/// Returns the resident memory of the descendants of this process with these names, in KiB.
fn memory(programs: &[&str]) -> Result<f64> {
    let mut total = 0.0;
    for stat in descendants(programs)? {
        let status = fs::read_to_string(format!("/proc/{}/status", stat.pid))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("/proc has no VmRSS of a server")?;
        total += line.trim().trim_end_matches(" kB").parse::<f64>()?;
    }
    Ok(total)
}

/// The fields of `/proc/PID/stat` that are used here.
struct Stat {
    pid: u32,
    parent: u32,
    name: String,
    ticks: f64,
}

fn descendants(programs: &[&str]) -> Result<Vec<Stat>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // A process may exit before its file is read.
        if let Ok(text) = fs::read_to_string(entry?.path().join("stat")) {
            all.extend(Stat::parse(&text));
        }
    }
    let is_ours = |stat: &Stat| {
        let mut at = stat.parent;
        while at > 1 && at != std::process::id() {
            at = all.iter().find(|other| other.pid == at).map_or(0, |other| other.parent);
        }
        at == std::process::id()
    };
    let found: Vec<u32> = all.iter().filter(|stat| is_ours(stat)).map(|stat| stat.pid).collect();
    all.retain(|stat| found.contains(&stat.pid) && programs.contains(&stat.name.as_str()));
    ensure!(all.len() == programs.len(), "expected one process for each of {programs:?}, but found {}", all.len());
    Ok(all)
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            name: name.to_owned(),
            ticks: number(11)? + number(12)?,
        })
    }
}

/// The jobs, in order. The first creates the objects that the others use.
const JOBS: &[&[&str]] =
    &[&["create", "5000"], &["update", "5000"], &["apply", "5000"], &["list", "20"], &["watch", "1000", "50"]];
const OBJECTS: f64 = 5000.0;
const STARTS: usize = 21;
/// The clock ticks per second in which Linux counts CPU time.
const TICKS: f64 = 100.0;
