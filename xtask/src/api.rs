//! The public API of the libraries as text, so that a change to it is seen in a review.
//!
//! `docs/api` has one line for each public item. Nothing is published yet, so that any change is allowed; but none goes unnoticed.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context, Result, bail};
use public_api::Builder;

use crate::run::run;

const LIBRARIES: &[&str] = &[
    "klient",
    "klient-core",
    "klient-proto",
    "klient-streams",
    "klient-cel",
    "klient-telemetry",
    "klient-apiserver",
    "klient-replay",
];

/// Writes the lists, or fails if they differ from the code.
pub(crate) fn run_api(root: &Path, check: bool) -> Result<()> {
    let rustdoc = rustdoc_with_json(root)?;
    let mut problems = Vec::new();
    for library in LIBRARIES {
        let arguments =
            ["rustdoc", "--locked", "-p", library, "--lib", "--", "-Z", "unstable-options", "--output-format", "json"];
        run(root, "cargo", &arguments, &[("RUSTDOC", &rustdoc)])?;
        let json = root.join(format!("target/doc/{}.json", library.replace('-', "_")));
        let api = Builder::from_rustdoc_json(&json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .with_context(|| {
                format!("cannot read {}: rustdoc and the crate public-api must fit together", json.display())
            })?;
        let text: String = api.items().map(|item| format!("{item}\n")).collect();
        let file = root.join(format!("docs/api/{library}.txt"));
        if check {
            let old = fs::read_to_string(&file).unwrap_or_default();
            problems.extend(differences(&old, &text).into_iter().map(|line| format!("{library}: {line}")));
        } else {
            fs::create_dir_all(root.join("docs/api"))?;
            fs::write(&file, text)?;
        }
    }
    if !problems.is_empty() {
        let shown = problems.iter().take(50).cloned().collect::<Vec<_>>().join("\n  ");
        bail!("the public API changed; run `cargo xtask api` and describe the change in CHANGELOG.md:\n  {shown}");
    }
    Ok(())
}

/// Returns the lines that were removed and added.
fn differences(old: &str, new: &str) -> Vec<String> {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (old.lines().collect(), new.lines().collect());
    let removed = old.difference(&new).map(|line| format!("- {line}"));
    removed.chain(new.difference(&old).map(|line| format!("+ {line}"))).collect()
}

/// Writes a script that runs rustdoc with its unstable options. The variable is set for rustdoc alone: for the compiler, it would
/// change how dependencies are built.
fn rustdoc_with_json(root: &Path) -> Result<String> {
    let path = root.join("target/rustdoc-json");
    fs::create_dir_all(root.join("target"))?;
    fs::write(&path, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_removals_then_additions() {
        assert_eq!(differences("a\nb\nc\n", "b\nc\nd\n"), ["- a", "+ d"]);
        assert!(differences("a\nb\n", "b\na\n").is_empty());
    }
}
