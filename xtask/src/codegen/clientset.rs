//! Writes the accessors of the clientset: every resource of k8s-openapi, by group and version.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result, bail};

use super::{
    emit,
    model::{Minors, all_minors, cfg},
    rust_types::{Place, RustType},
};

/// A group and version of one module.
#[derive(Default)]
struct GroupVersion {
    api_version: String,
    minors: Minors,
    kinds: BTreeMap<String, Kind>,
}

struct Kind {
    place: Place,
    minors: Minors,
}

/// Returns the text of the generated file.
pub(crate) fn file(minors: &[(u32, BTreeMap<String, RustType>)]) -> Result<String> {
    let versions = group_versions(minors)?;
    let mut out = String::from("//! Accessors of every built-in kind, by group and version.\n\n");
    out.push_str(emit::MARK);
    out.push_str("\nuse super::group_versions;\n\n#[rustfmt::skip]\ngroup_versions! {\n");
    for (module, version) in versions {
        let parts: Vec<&str> = module.split("::").collect();
        let [.., group, number] = parts[..] else { bail!("module {module} does not end with a group and a version") };
        let name = format!("{}{}", capitalised(group), capitalised(number));
        let (own, api_version) = (cfg(&version.minors, &all_minors())?, &version.api_version);
        writeln!(out, "    {own}{api_version:?} {group}_{number} {name} {{")?;
        for (kind, Kind { place, minors }) in version.kinds {
            let (scope, plural) = match &place {
                Place::Namespace(plural) => ("namespaced", plural),
                Place::Cluster(plural) => ("cluster", plural),
            };
            let plural = snake_plural(&kind, plural).with_context(|| format!("{module}::{kind}"))?;
            writeln!(out, "        {}{scope} {plural} k8s_openapi::{module}::{kind};", cfg(&minors, &version.minors)?)?;
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n");
    Ok(out)
}

fn group_versions(minors: &[(u32, BTreeMap<String, RustType>)]) -> Result<BTreeMap<String, GroupVersion>> {
    let mut versions: BTreeMap<String, GroupVersion> = BTreeMap::new();
    for (minor, types) in minors {
        for (path, ty) in types {
            let (Some((api_version, _)), Some(place)) = (&ty.resource, &ty.place) else { continue };
            let (module, kind) = path.rsplit_once("::").context("type is not in a module")?;
            let version = versions.entry(module.to_owned()).or_default();
            version.api_version.clone_from(api_version);
            version.minors.insert(*minor);
            let known = version.kinds.entry(kind.to_owned());
            let known = known.or_insert_with(|| Kind { place: place.clone(), minors: Minors::new() });
            if &known.place != place {
                bail!("{path} has another scope or plural in another minor");
            }
            known.minors.insert(*minor);
        }
    }
    Ok(versions)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Returns the plural in snake case: `network_policies` for `NetworkPolicy` and `networkpolicies`.
fn snake_plural(kind: &str, plural: &str) -> Result<String> {
    let letters: Vec<char> = kind.chars().collect();
    let mut out = String::new();
    let mut taken = 0;
    for (at, letter) in letters.iter().enumerate() {
        let lower = letter.to_ascii_lowercase();
        if !plural[taken..].starts_with(lower) {
            break;
        }
        taken += 1;
        let before = at.checked_sub(1).map(|at| letters[at]);
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || letters.get(at + 1).is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            out.push('_');
        }
        out.push(lower);
    }
    if taken + 2 < kind.len() {
        bail!("{plural:?} is not the plural of {kind:?}");
    }
    Ok(out + &plural[taken..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_split_into_words() {
        for (kind, plural, expected) in [
            ("Pod", "pods", "pods"),
            ("ConfigMap", "configmaps", "config_maps"),
            ("NetworkPolicy", "networkpolicies", "network_policies"),
            ("Endpoints", "endpoints", "endpoints"),
            ("CSIDriver", "csidrivers", "csi_drivers"),
            ("IPAddress", "ipaddresses", "ip_addresses"),
            ("APIService", "apiservices", "api_services"),
        ] {
            assert_eq!(snake_plural(kind, plural).unwrap(), expected);
        }
        assert!(snake_plural("Pod", "nodes").is_err());
    }
}
