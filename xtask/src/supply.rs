//! The rules for dependencies in `deny.toml`: licences, second versions, banned crates and sources.
//!
//! cargo-deny enforces the same file. This check needs no program that CI would have to build first, and no network; advisories
//! are cargo-deny's alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::output;

/// The workspaces, each with its own lock file.
const WORKSPACES: &[&str] = &[".", "bench", "fuzz"];
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

struct Rules {
    licences: BTreeSet<String>,
    /// Further licences of single crates.
    exceptions: BTreeMap<String, Vec<String>>,
    denied: BTreeSet<String>,
    /// The crates that may have a second version, as `name@version`.
    skipped: Vec<String>,
}

/// Checks the dependencies of all workspaces, and that their lock files are up to date.
pub(crate) fn check(root: &Path) -> Result<()> {
    let rules = Rules::read(root)?;
    let mut problems = Vec::new();
    for workspace in WORKSPACES {
        let arguments = ["metadata", "--format-version", "1", "--locked", "--all-features"];
        let metadata: Value = serde_json::from_str(&output(&root.join(workspace), "cargo", &arguments)?)?;
        let packages = metadata["packages"].as_array().context("no packages in cargo's metadata")?;
        let found = rules.problems(packages, *workspace == ".");
        println!("{workspace}: {} packages", packages.len());
        problems.extend(found.into_iter().map(|problem| format!("{workspace}: {problem}")));
    }
    if !problems.is_empty() {
        bail!("dependencies break the rules of deny.toml:\n  {}", problems.join("\n  "));
    }
    Ok(())
}

impl Rules {
    fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
        let rules: toml::Table = text.parse().context("cannot parse deny.toml")?;
        let list = |section: &str, name: &str| -> Vec<toml::Value> {
            rules[section].get(name).and_then(toml::Value::as_array).cloned().unwrap_or_default()
        };
        let texts = |section, name| {
            list(section, name).iter().filter_map(|value| value.as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
        };
        let skipped =
            list("bans", "skip").iter().filter_map(|skip| Some(skip.get("crate")?.as_str()?.to_owned())).collect();
        let exception = |exception: &toml::Value| {
            let allowed = exception.get("allow")?.as_array()?.iter();
            let allowed = allowed.filter_map(|licence| licence.as_str().map(str::to_owned)).collect();
            Some((exception.get("crate")?.as_str()?.to_owned(), allowed))
        };
        let exceptions = list("licenses", "exceptions").iter().filter_map(exception).collect();
        Ok(Self { licences: texts("licenses", "allow"), exceptions, denied: texts("bans", "deny"), skipped })
    }

    /// Returns what breaks the rules. Second versions are looked for in klient's own workspace: rivals choose their own.
    fn problems(&self, packages: &[Value], is_own: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages {
            let text = |field: &str| package[field].as_str().unwrap_or_default();
            let (name, version) = (text("name"), text("version"));
            let Some(source) = package["source"].as_str() else { continue };
            if source != CRATES_IO {
                problems.push(format!("{name} {version} is from {source}"));
            }
            let further = self.exceptions.get(name).into_iter().flatten();
            let licences = self.licences.iter().chain(further).cloned().collect();
            if !is_allowed(text("license"), &licences) {
                problems.push(format!("{name} {version} has the licence {:?}", text("license")));
            }
            if self.denied.contains(name) {
                problems.push(format!("{name} {version} is banned"));
            }
            versions.entry(name).or_default().insert(version);
        }
        if !is_own {
            return problems;
        }
        for (name, versions) in &mut versions {
            versions.retain(|version| !self.skips(name, version));
            if versions.len() > 1 {
                problems.push(format!("{name} has several versions: {versions:?}"));
            }
        }
        let unused = self.skipped.iter().filter(|skip| {
            let name = skip.split('@').next().unwrap_or_default();
            !packages.iter().any(|package| package["name"] == name)
        });
        problems.extend(unused.map(|skip| format!("{skip} is skipped but not used: remove it from deny.toml")));
        problems
    }

    fn skips(&self, name: &str, version: &str) -> bool {
        self.skipped.iter().any(|skip| {
            skip.split_once('@').is_some_and(|(skipped, prefix)| {
                skipped == name && (version == prefix || version.starts_with(&format!("{prefix}.")))
            })
        })
    }
}

/// Returns whether the allowed licences satisfy an SPDX expression. `AND` binds more tightly than `OR`, and the old `/` is `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any_of(&words, &mut at, allowed) && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut holds = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        holds |= all_of(words, at, allowed);
    }
    holds
}

fn all_of(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut holds = term(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= term(words, at, allowed);
    }
    holds
}

fn term(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let holds = any_of(words, at, allowed);
        *at += usize::from(words.get(*at) == Some(&")"));
        return holds;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> Rules {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Rules {
            licences: texts(&["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]),
            exceptions: [("odd".to_owned(), vec!["NCSA".to_owned()])].into(),
            denied: texts(&["openssl-sys"]),
            skipped: vec!["syn@2".to_owned()],
        }
    }

    #[test]
    fn licence_expressions_are_evaluated() {
        let allowed = rules().licences;
        for expression in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(is_allowed(expression, &allowed), "{expression}");
        }
        for expression in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "MIT WITH x", "MIT MIT"]
        {
            assert!(!is_allowed(expression, &allowed), "{expression}");
        }
    }

    #[test]
    fn broken_rules_are_named() {
        let package = |name: &str, version: &str, license: &str, source: &str| json!({"name": name, "version": version, "license": license, "source": source});
        let packages = [
            package("syn", "2.0.1", "MIT", CRATES_IO),
            package("syn", "3.0.1", "MIT", CRATES_IO),
            package("odd", "1.0.0", "MIT AND NCSA", CRATES_IO),
            package("a", "1.0.0", "GPL-3.0", CRATES_IO),
            package("b", "1.0.0", "MIT", "git+ssh://somewhere"),
            package("openssl-sys", "1.0.0", "MIT", CRATES_IO),
            package("c", "1.0.0", "MIT", CRATES_IO),
            package("c", "2.0.0", "MIT", CRATES_IO),
            json!({"name": "own", "version": "0.1.0", "license": null, "source": null}),
        ];
        let problems = rules().problems(&packages, true);
        let expected = [
            "a 1.0.0 has the licence \"GPL-3.0\"",
            "b 1.0.0 is from git+ssh://somewhere",
            "openssl-sys 1.0.0 is banned",
            "c has several versions: {\"1.0.0\", \"2.0.0\"}",
        ];
        assert_eq!(problems, expected);
        assert_eq!(rules().problems(&packages[..1], true), [""; 0]);
        assert_eq!(rules().problems(&[], true), ["syn@2 is skipped but not used: remove it from deny.toml"]);
    }
}
