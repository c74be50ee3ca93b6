//! The programs that are compared: how each is built, or why it could not be.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use klient_harness::{kept, run_kept};

use super::options::Profile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    Klient,
    ClientGo,
    KubeRs,
}

impl Library {
    /// The one that the others are compared to comes first.
    pub(super) const ALL: [Self; 3] = [Self::Klient, Self::ClientGo, Self::KubeRs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Klient => "klient",
            Self::ClientGo => "client-go",
            Self::KubeRs => "kube-rs",
        }
    }
}

pub(super) struct Program {
    pub(super) library: Library,
    built: Result<PathBuf, String>,
    /// The one that counts allocations, if that is another one.
    counting: Option<PathBuf>,
}

impl Program {
    /// Builds it. A failure is kept: the others can be measured without it.
    pub(super) fn build(root: &Path, library: Library, profile: Profile) -> Self {
        let bench = root.join("bench");
        let built = match library {
            Library::Klient => build_rust(&bench, "bench-klient", &["bench-klient", "bench-klient-counting"], profile),
            Library::KubeRs => {
                build_rust(&bench, "bench-kube-rs", &["bench-kube-rs", "bench-kube-rs-counting"], profile)
            }
            Library::ClientGo => build_go(&bench),
        };
        let counting = built.as_ref().ok().filter(|_| library != Library::ClientGo).map(|program| {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            program.with_file_name(format!("{name}-counting"))
        });
        Self { library, built: built.map_err(|error| format!("{error:#}")), counting }
    }

    /// The one that counts allocations, if that is another one.
    pub(super) fn counting(&self) -> Option<&Path> {
        self.counting.as_deref()
    }

    /// One that is not built here.
    #[cfg(test)]
    pub(super) fn of(library: Library, built: Result<PathBuf, String>) -> Self {
        Self { library, built, counting: None }
    }

    /// Where it is, or why it is not there.
    pub(super) fn path(&self) -> Result<&Path, &str> {
        self.built.as_deref().map_err(String::as_str)
    }
}

/// Each program is built by itself, so that it does not get features that the dependencies of another one enable.
pub(super) fn build_rust(bench: &Path, package: &str, programs: &[&str], profile: Profile) -> Result<PathBuf> {
    let (name, folder) = match profile {
        Profile::Release => ("release", "release"),
        Profile::Dev => ("dev", "debug"),
    };
    let target = bench.join("target");
    let folder_name = target.to_string_lossy();
    let mut arguments = vec!["build", "--locked", "--profile", name, "--target-dir", &folder_name];
    match profile {
        Profile::Release => {
            arguments.extend(["--package", package]);
            arguments.extend(programs.iter().flat_map(|program| ["--bin", program]));
        }
        // All at once: what they share is built once.
        Profile::Dev => arguments.push("--workspace"),
    }
    // The Kubernetes version is that of the server; this process has the main workspace's in its environment.
    build(bench, "cargo", &arguments, &[("K8S_OPENAPI_ENABLED_VERSION", "1.36")])?;
    Ok(target.join(folder).join(package))
}

fn build_go(bench: &Path) -> Result<PathBuf> {
    let program = bench.join("target/bench-client-go");
    build(&bench.join("go"), "go", &["build", "-o", &program.to_string_lossy(), "."], &[])?;
    Ok(program)
}

/// Builds what is measured in a folder where nothing is.
pub(super) fn build_from_nothing(bench: &Path, library: Library, folder: &Path) -> Result<()> {
    let folder = folder.to_string_lossy();
    let rust = |package| {
        let arguments =
            ["build", "--locked", "--release", "--target-dir", &folder, "--package", package, "--bin", package];
        build(bench, "cargo", &arguments, &[("K8S_OPENAPI_ENABLED_VERSION", "1.36")])
    };
    match library {
        Library::Klient => rust("bench-klient"),
        Library::KubeRs => rust("bench-kube-rs"),
        Library::ClientGo => {
            let program = format!("{folder}/bench-client-go");
            build(&bench.join("go"), "go", &["build", "-o", &program, "."], &[("GOCACHE", &folder)])
        }
    }
}

/// Runs a build, which ends with this process.
fn build(directory: &Path, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let words = [&[program], arguments].concat().join(" ");
    let mut command = kept(program);
    command.args(arguments).current_dir(directory).envs(environment.iter().copied());
    let status = run_kept(&mut command).with_context(|| format!("cannot start `{words}`"))?;
    ensure!(status.success(), "`{words}` failed: {status}");
    Ok(())
}
