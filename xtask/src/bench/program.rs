//! The programs that are compared, and their builds.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use klient_harness::{kept, run_kept};

use super::options::Profile;

/// A client library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    Klient,
    ClientGo,
    KubeRs,
}

impl Library {
    /// All libraries. The first is the one that the others are compared with.
    pub(super) const ALL: [Self; 3] = [Self::Klient, Self::ClientGo, Self::KubeRs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Klient => "klient",
            Self::ClientGo => "client-go",
            Self::KubeRs => "kube-rs",
        }
    }
}

/// The program of one library.
pub(super) struct Program {
    pub(super) library: Library,
    /// The path of the program, or the reason that its build failed.
    built: Result<PathBuf, String>,
    /// The path of the program that counts allocations, if it is a separate one.
    counting: Option<PathBuf>,
}

impl Program {
    /// Builds the program. A failure is stored, because the other libraries can be measured without it.
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

    /// Returns the path of the program that counts allocations, if it is a separate one.
    pub(super) fn counting(&self) -> Option<&Path> {
        self.counting.as_deref()
    }

    /// Creates a program that is not built here.
    #[cfg(test)]
    pub(super) fn of(library: Library, built: Result<PathBuf, String>) -> Self {
        Self { library, built, counting: None }
    }

    /// Returns the path of the program, or the reason that its build failed.
    pub(super) fn path(&self) -> Result<&Path, &str> {
        self.built.as_deref().map_err(String::as_str)
    }
}

/// Builds a Rust program, and returns its path.
///
/// Release builds compile each program alone, so that it does not get features that another program's dependencies enable.
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
        // One build for all programs compiles shared dependencies once.
        Profile::Dev => arguments.push("--workspace"),
    }
    // The Kubernetes version is that of the server. The environment of this process has the version of the main workspace.
    build(bench, "cargo", &arguments, &[("K8S_OPENAPI_ENABLED_VERSION", "1.36")])?;
    Ok(target.join(folder).join(package))
}

fn build_go(bench: &Path) -> Result<PathBuf> {
    let program = bench.join("target/bench-client-go");
    build(&bench.join("go"), "go", &["build", "-o", &program.to_string_lossy(), "."], &[])?;
    Ok(program)
}

/// Builds the measured program of a library into an empty folder.
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

/// Runs a build. The build ends with this process at the latest.
fn build(directory: &Path, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let words = [&[program], arguments].concat().join(" ");
    let mut command = kept(program);
    command.args(arguments).current_dir(directory).envs(environment.iter().copied());
    let status = run_kept(&mut command).with_context(|| format!("cannot start `{words}`"))?;
    ensure!(status.success(), "`{words}` failed: {status}");
    Ok(())
}
