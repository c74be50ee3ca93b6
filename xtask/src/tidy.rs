//! Tests of rules about the source tree that the compiler does not check.

use std::{collections::BTreeSet, path::PathBuf};

use crate::{root, run::output};

/// A source file of this repository, with its text.
struct Source {
    path: String,
    text: String,
}

/// Returns every Rust file that git tracks or would add, except generated files.
fn sources() -> Vec<Source> {
    let listed = output(&root(), "git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"]).unwrap();
    let sources: Vec<Source> = listed
        .lines()
        .filter_map(|path| {
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            Some(Source { path: path.to_owned(), text })
        })
        .filter(|source| !source.text.contains("// @generated"))
        .collect();
    assert!(sources.len() > 50, "found only {} files: the check would be empty", sources.len());
    sources
}

fn offenders(wrong: impl Fn(&Source) -> bool) -> Vec<String> {
    sources().into_iter().filter(|source| wrong(source)).map(|source| source.path).collect()
}

fn metadata() -> serde_json::Value {
    serde_json::from_str(&output(&root(), env!("CARGO"), &["metadata", "--format-version", "1", "--no-deps"]).unwrap())
        .unwrap()
}

#[test]
fn every_file_says_what_it_is() {
    let wrong = offenders(|source| !source.text.starts_with("//!"));
    assert!(wrong.is_empty(), "no `//!` on the first line: {wrong:#?}");
}

#[test]
fn no_file_is_too_long() {
    let wrong = offenders(|source| source.text.lines().count() > 700);
    assert!(wrong.is_empty(), "over 700 lines: {wrong:#?}");
}

#[test]
fn nothing_is_left_unfinished_or_ignored() {
    // The parts are joined at run time, so that this test does not match its own source.
    let marks = [["to", "do!("], ["unimple", "mented!("], ["dbg", "!("], ["#[ig", "nore"], ["FIX", "ME"]]
        .map(|parts| parts.concat());
    let wrong = offenders(|source| marks.iter().any(|mark| source.text.contains(mark.as_str())));
    assert!(wrong.is_empty(), "unfinished or ignored: {wrong:#?}");
}

#[test]
fn prose_uses_the_usual_words() {
    // The parts are joined at run time, so that this test does not match its own source.
    let words = [
        ["who", "ever"],
        ["some", "body"],
        ["no", "body"],
        ["not to be ", "had"],
        ["how it ", "stands"],
        ["what it is ", "at"],
        ["as good as ", "never"],
        ["in ", "vain"],
        ["makes no ", "sense"],
        ["make no ", "sense"],
        ["another ", "try"],
        ["//! wh", "at "],
        ["/// wh", "at "],
    ]
    .map(|parts| parts.concat());
    let mut wrong = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            let lower = line.to_lowercase();
            if words.iter().any(|word| lower.contains(word.as_str())) {
                wrong.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "see \"How prose is written here\" in CONTRIBUTING.md: {wrong:#?}");
}

#[test]
fn test_names_have_at_most_60_characters() {
    let mut wrong = Vec::new();
    let mut tests = 0;
    for source in sources() {
        let mut is_test = false;
        for line in source.text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if is_test && let Some((_, rest)) = line.split_once("fn ") {
                is_test = false;
                tests += 1;
                let name = rest.split('(').next().unwrap_or_default();
                if name.len() > 60 {
                    wrong.push(format!("{}: {name}", source.path));
                }
            }
        }
    }
    assert!(tests > 500, "found only {tests} tests: the check would be empty");
    assert!(wrong.is_empty(), "test names over 60 characters (use subject, verb, condition): {wrong:#?}");
}

#[test]
fn modules_are_files_beside_their_folders() {
    let wrong = offenders(|source| source.path.ends_with("/mod.rs"));
    assert!(wrong.is_empty(), "`foo.rs` + `foo/`, not `mod.rs`: {wrong:#?}");
}

#[test]
fn the_architecture_is_told_in_under_200_lines() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() < 200);
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let allowed = |from: &str, on: &str, dev: bool| match from {
        "klient-core" => false,
        "klient-cel" | "klient-proto" => on == "klient-core",
        "klient-apply" => on == "klient-core" || (dev && on == "klient-apply"),
        "klient" => {
            ["klient-cel", "klient-core", "klient-derive", "klient-proto", "klient-streams"].contains(&on)
                || (dev && ["klient-apiserver", "klient-harness"].contains(&on))
        }
        "klient-apiserver" => ["klient-cel", "klient-core", "klient-proto", "klient-streams"].contains(&on) || dev,
        "klient-telemetry" => {
            on == "klient" || (dev && ["klient-apiserver", "klient-harness", "klient-telemetry"].contains(&on))
        }
        "klient-replay" => ["klient", "klient-apiserver"].contains(&on) || (dev && on == "klient-harness"),
        "klient-cli" | "klient-browser" | "klient-examples" | "klient-chaos" | "klient-custom-types" => true,
        "xtask" => on == "klient-harness",
        _ => false,
    };
    let mut wrong = Vec::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let from = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let dev = dependency["kind"] == "dev";
            if on.starts_with("klient") && !allowed(from, on, dev) {
                wrong.push(format!("{from} -> {on}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_vocabulary_and_the_wire_forms_do_no_io() {
    let banned: BTreeSet<&str> = ["tokio", "hyper", "rustls", "async-std", "mio", "futures-util", "reqwest"].into();
    for package in ["klient-core", "klient-proto"] {
        let tree =
            output(&root(), env!("CARGO"), &["tree", "-p", package, "-e", "normal", "--prefix", "none"]).unwrap();
        let found: Vec<_> = tree.lines().filter(|line| banned.contains(line.split(' ').next().unwrap())).collect();
        assert!(found.is_empty(), "{package} depends on {found:?}");
    }
}

#[test]
fn libraries_leave_the_kubernetes_version_to_the_binary() {
    let binaries = ["klient-cli", "klient-examples"];
    for package in metadata()["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let features = dependency["features"].as_array().unwrap();
            let chosen = features.iter().any(|feature| feature.as_str().unwrap().starts_with("v1_"));
            assert!(!(chosen && dependency["name"] == "k8s-openapi") || binaries.contains(&name), "{name}");
        }
    }
}

#[test]
fn every_package_takes_the_workspace_lints_and_licence() {
    for package in metadata()["packages"].as_array().unwrap() {
        let path = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let manifest = std::fs::read_to_string(&path).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", path.display());
        assert_eq!(package["license"], "Apache-2.0", "{}", path.display());
    }
}

/// The programs under `examples/ported`: their names in the guide, klient's files, and the files of the other library.
const PORTED: [(&str, &str, &str); 5] = [
    (
        "configmapgen_controller",
        "configmapgen_controller.rs",
        "bench/kube-rs-client/examples/configmapgen_controller.rs",
    ),
    ("secret_syncer", "secret_syncer.rs", "bench/kube-rs-client/examples/secret_syncer.rs"),
    (
        "shared_stream_controllers",
        "shared_stream_controllers.rs",
        "bench/kube-rs-client/examples/shared_stream_controllers.rs",
    ),
    ("workqueue", "workqueue.rs", "bench/go/ported/workqueue/main.go"),
    ("leader-election", "leader_election.rs", "bench/go/ported/leaderelection/main.go"),
];

#[test]
fn line_counts_of_ported_programs_are_up_to_date() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let count = |path: &str| {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        read(path).lines().filter(is_code).count()
    };
    let readme = read("examples/ported/README.md");
    let guide = read("docs/guide/src/from-kube-rs.md") + &read("docs/guide/src/from-client-go.md");
    for (name, file, other) in PORTED {
        let (ours, theirs) = (count(&format!("examples/ported/{file}")), count(other));
        let row = format!("| [{theirs}](../../{other}) | {ours}");
        assert!(readme.contains(&row), "examples/ported/README.md has no {row:?}");
        let row = guide.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap_or_default();
        assert!(
            row.ends_with(&format!("| {theirs} | {ours} |")),
            "{name}: {theirs} and {ours} lines, the guide says {row:?}"
        );
    }
}
