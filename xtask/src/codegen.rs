//! `xtask codegen`: writes the protobuf codecs of klient-proto, klient's clientset and the configurations of klient-apply, and packs Kubernetes' own test
//! corpus.
//!
//! Input: the `.proto` files and Go structs of four Go modules, five minors each, and k8s-openapi's source.
//! Output: `crates/klient-proto/src/generated*`, `crates/klient-proto/tests/corpus/` and
//! `crates/klient/src/client/clientset/generated.rs`, all committed.

mod apply;
mod clientset;
mod corpus;
mod emit;
mod go_types;
mod model;
mod modules;
mod rust_types;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use prost_reflect::DescriptorPool;

use modules::{GoModules, MINORS};

/// Writes all generated files. With `check`, writes nothing and fails if a committed file differs.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let source = modules::k8s_openapi_source(root)?;
    let mut minors = Vec::new();
    let mut all_types = Vec::new();
    let mut outputs: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let proto = root.join("crates/klient-proto");
    for minor in MINORS {
        let modules = GoModules::download(minor)?;
        let types = rust_types::read(&source, minor)?;
        let pool = descriptors(&modules)?;
        let model = model::of_minor(&pool, &modules, &types).with_context(|| format!("Kubernetes 1.{minor}"))?;
        outputs.insert(proto.join(format!("tests/corpus/v1.{minor}.jsonl.gz")), corpus::pack(&modules, &types)?);
        minors.push((minor, model));
        all_types.push((minor, types));
    }
    let merged = model::merge(&minors)?;
    outputs.insert(proto.join("tests/it/kinds.rs"), emit::kinds_macro(&merged)?.into_bytes());
    let clientset = root.join("crates/klient/src/client/clientset/generated.rs");
    outputs.insert(clientset, clientset::file(&all_types)?.into_bytes());
    for (file, text) in emit::files(&merged)? {
        outputs.insert(proto.join("src").join(file), text.into_bytes());
    }
    let applied = root.join("crates/klient-apply");
    let registry = root.join("crates/klient-apiserver/src/registry/kubernetes.json");
    let (files, needs) = apply::files(&std::fs::read_to_string(registry)?)?;
    check_features(&applied, &needs)?;
    for (file, text) in files {
        outputs.insert(applied.join("src").join(file), text.into_bytes());
    }
    let mut stale = stale_files(&proto.join("src/generated"), &outputs)?;
    for group in needs.keys() {
        stale.extend(stale_files(&applied.join("src/generated").join(group), &outputs)?);
    }
    if check { compare(&outputs, &stale) } else { write(&outputs, &stale) }
}

/// Checks that each group's feature enables those of the groups that it refers to.
fn check_features(package: &Path, needs: &apply::Needs) -> Result<()> {
    let manifest: toml::Table = std::fs::read_to_string(package.join("Cargo.toml"))?.parse()?;
    for (group, needed) in needs.iter().filter(|(group, _)| *group != "meta") {
        let enabled =
            manifest["features"].get(group).with_context(|| format!("klient-apply has no feature {group}"))?;
        let enabled: Vec<&str> = enabled.as_array().into_iter().flatten().filter_map(toml::Value::as_str).collect();
        for other in needed.iter().filter(|other| *other != "meta") {
            anyhow::ensure!(enabled.contains(&other.as_str()), "feature {group} of klient-apply must enable {other}");
        }
    }
    Ok(())
}

/// Compiles every `.proto` file of a minor.
fn descriptors(modules: &GoModules) -> Result<DescriptorPool> {
    // Imports have no version (`k8s.io/api/core/v1/generated.proto`), so the folders are linked under such paths.
    let layout = std::env::temp_dir().join(format!("klient-codegen-{}", std::process::id()));
    std::fs::create_dir_all(layout.join("k8s.io"))?;
    for (module, dir) in &modules.dirs {
        std::os::unix::fs::symlink(dir, layout.join(module))?;
    }
    let files: Vec<String> =
        modules.proto_packages()?.into_iter().map(|(import, _)| format!("{import}/generated.proto")).collect();
    let compiled = protox::compile(&files, [&layout]).context("cannot compile the .proto files");
    std::fs::remove_dir_all(&layout)?;
    Ok(DescriptorPool::from_file_descriptor_set(compiled?)?)
}

/// Returns the files in the generated folder that this run did not generate.
fn stale_files(folder: &Path, outputs: &BTreeMap<PathBuf, Vec<u8>>) -> Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if !outputs.contains_key(&path) {
                stale.push(path);
            }
        }
    }
    Ok(stale)
}

fn compare(outputs: &BTreeMap<PathBuf, Vec<u8>>, stale: &[PathBuf]) -> Result<()> {
    let mut wrong: Vec<String> =
        stale.iter().map(|path| format!("{} is no longer generated", path.display())).collect();
    for (path, contents) in outputs {
        if std::fs::read(path).ok().as_ref() != Some(contents) {
            wrong.push(format!("{} is out of date", path.display()));
        }
    }
    if !wrong.is_empty() {
        bail!("{}\nrun `cargo xtask codegen`", wrong.join("\n"));
    }
    Ok(())
}

fn write(outputs: &BTreeMap<PathBuf, Vec<u8>>, stale: &[PathBuf]) -> Result<()> {
    for path in stale {
        std::fs::remove_file(path)?;
    }
    for (path, contents) in outputs {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, contents).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
