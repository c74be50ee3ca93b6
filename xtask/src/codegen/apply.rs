//! Writes the configurations of klient-apply from the embedded server's table of types.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::emit;

/// The groups that each group refers to.
pub(crate) type Needs = BTreeMap<String, BTreeSet<String>>;

/// Returns the generated files by path below `crates/klient-apply/src`, and the features that each group needs.
pub(crate) fn files(registry: &str) -> Result<(BTreeMap<String, String>, Needs)> {
    let registry: Value = serde_json::from_str(registry).context("the table of types is not JSON")?;
    let types = Types { all: registry["types"].as_object().context("the table has no types")? };
    let kinds = kinds(&registry);
    let mut modules: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut needs = Needs::new();
    for name in types.reachable(&kinds) {
        let Some(place) = Place::of(&name) else { continue };
        let text = types.configuration(&name, &place, kinds.get(&name), &mut needs)?;
        modules.entry((place.group, place.version)).or_default().push_str(&text);
    }
    let mut out = BTreeMap::new();
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for ((group, version), text) in modules {
        let file = format!(
            "//! Configurations of the kinds of `{group}` in version `{version}`.\n\n{}\nuse crate::configuration::configurations;\n\n#[rustfmt::skip]\nconfigurations! {{\n{text}}}\n",
            emit::MARK
        );
        out.insert(format!("generated/{group}/{version}.rs"), file);
        groups.entry(group).or_default().insert(version);
    }
    let mut root = format!("//! Configurations of all kinds, by group and version.\n\n{}\n", emit::MARK);
    for (group, versions) in groups {
        let feature = if group == "meta" { String::new() } else { format!("#[cfg(feature = \"{group}\")]\n") };
        writeln!(root, "/// Configurations of the kinds of `{group}`.\n{feature}pub mod {group} {{")?;
        for version in versions {
            writeln!(root, "    pub mod {version};")?;
        }
        root.push_str("}\n");
    }
    out.insert("generated.rs".to_owned(), root);
    Ok((out, needs))
}

/// A kind: its version, name and scope.
struct Kind {
    api_version: String,
    kind: String,
    is_namespaced: bool,
}

/// Returns the kinds that can be applied, by the name of their type.
fn kinds(registry: &Value) -> BTreeMap<String, Kind> {
    let mut served: BTreeMap<(String, String, String), bool> = BTreeMap::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for version in list(&registry["groups"]) {
        for resource in list(&version["resources"]) {
            if list(&resource["verbs"]).contains(&Value::from("patch")) {
                let key = (text(&version["group"]), text(&version["version"]), text(&resource["kind"]));
                served.insert(key, resource["namespaced"] == true);
            }
        }
    }
    let mut out = BTreeMap::new();
    for (name, def) in registry["types"].as_object().into_iter().flatten() {
        let [group, version, kind] = [0, 1, 2].map(|at| text(&def["kind"][at]));
        if let Some(is_namespaced) = served.get(&(group.clone(), version.clone(), kind.clone())) {
            let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
            out.insert(name.clone(), Kind { api_version, kind, is_namespaced: *is_namespaced });
        }
    }
    out
}

/// The module of a type, and its name there.
struct Place {
    group: String,
    version: String,
    name: String,
}

impl Place {
    fn of(full: &str) -> Option<Self> {
        let parts: Vec<&str> = full.rsplitn(4, '.').collect();
        let [name, version, group, _] = parts[..] else { return None };
        let is_version = version.starts_with('v') && version[1..].starts_with(|c: char| c.is_ascii_digit());
        let place = Self { group: group.to_owned(), version: version.to_owned(), name: format!("{name}Apply") };
        is_version.then_some(place)
    }
}

struct Types<'a> {
    all: &'a Map<String, Value>,
}

impl Types<'_> {
    /// Returns the types of kinds and of all their fields.
    fn reachable(&self, kinds: &BTreeMap<String, Kind>) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        let mut waiting: Vec<String> = kinds.keys().cloned().collect();
        while let Some(name) = waiting.pop() {
            let Some(fields) = self.all.get(&name).and_then(|def| def["fields"].as_object()) else { continue };
            if out.insert(name) {
                waiting.extend(fields.values().filter_map(|field| reference(shape(field)).map(str::to_owned)));
            }
        }
        out
    }

    /// Returns the lines of a configuration.
    fn configuration(&self, name: &str, place: &Place, kind: Option<&Kind>, needs: &mut Needs) -> Result<String> {
        let identity = kind.map_or(String::new(), |kind| {
            let scope = if kind.is_namespaced { "namespaced" } else { "cluster" };
            format!(" ({:?} {:?} {scope})", kind.api_version, kind.kind)
        });
        let mut out = format!("    /// A configuration of a `{}`.\n", place.name.trim_end_matches("Apply"));
        writeln!(out, "    {}{identity} {{", place.name)?;
        let fields = self.all[name]["fields"].as_object().context("a type has no fields")?;
        let mut methods = BTreeSet::from(["new".to_owned(), "to_value".to_owned()]);
        if kind.is_some() {
            methods.extend(["labels".to_owned(), "annotations".to_owned()]);
        }
        for (field, def) in fields {
            let is_identity = kind.is_some() && matches!(field.as_str(), "apiVersion" | "kind");
            if is_identity {
                continue;
            }
            let line = self.field(field, def, &mut methods);
            if let Some(target) = reference(shape(def)).and_then(Place::of).filter(|target| target.group != place.group)
            {
                needs.entry(place.group.clone()).or_default().insert(target.group);
            }
            writeln!(out, "        {line};")?;
        }
        out.push_str("    }\n");
        Ok(out)
    }

    /// Returns the line of a field: its form, method, name, keys and type.
    fn field(&self, field: &str, def: &Value, methods: &mut BTreeSet<String>) -> String {
        let plural = snake(field);
        let shape = shape(def);
        if let Some(item) = shape.get("list") {
            let keys = def["keys"].as_array().cloned().unwrap_or_default();
            let method = |methods: &mut BTreeSet<String>, name: String| {
                let name = if methods.contains(&name) { plural.clone() } else { name };
                methods.insert(name.clone());
                raw(&name)
            };
            if let Some(of) = self.object(item) {
                if def["list"] == "map" {
                    let method = method(methods, snake(&singular(field)));
                    let key = |key: &Value| {
                        let key = key.as_str().unwrap_or_default();
                        let form = reference(item).and_then(|of| self.all.get(of)).map(|of| &of["fields"][key]);
                        format!(
                            "{} {key:?} {}",
                            raw(&snake(key)),
                            form.map_or("text", |form| self.scalar(self::shape(form)))
                        )
                    };
                    let keys: Vec<String> = keys.iter().map(key).collect();
                    return format!("items {method} {field:?} ({}) {of}", keys.join(", "));
                }
                return format!("list_object {} {field:?} {of}", method(methods, plural.clone()));
            }
            let method = method(methods, plural.clone());
            let scalar = self.scalar(item);
            return match (def["list"].as_str(), scalar) {
                (Some("set"), "text") => format!("set_text {method} {field:?}"),
                (_, scalar @ ("text" | "int32" | "int64")) => format!("list_{scalar} {method} {field:?}"),
                _ => format!("list_any {method} {field:?}"),
            };
        }
        methods.insert(plural.clone());
        let method = raw(&plural);
        if let Some(entry) = shape.get("map") {
            if let Some(of) = self.object(entry) {
                return format!("map_object {method} {field:?} {of}");
            }
            return match self.scalar(entry) {
                scalar @ ("text" | "quantity" | "bytes") => format!("map_{scalar} {method} {field:?}"),
                _ => format!("map_any {method} {field:?}"),
            };
        }
        match self.object(shape) {
            Some(of) => format!("object {method} {field:?} {of}"),
            None => format!("{} {method} {field:?}", self.scalar(shape)),
        }
    }

    /// Returns the path of the configuration of a shape that is an object with fields.
    fn object(&self, shape: &Value) -> Option<String> {
        let name = reference(shape)?;
        self.all.get(name)?["fields"].as_object()?;
        let place = Place::of(name)?;
        Some(format!("crate::{}::{}::{}", place.group, place.version, place.name))
    }

    /// Returns the form of a shape that is not an object with fields.
    fn scalar(&self, shape: &Value) -> &'static str {
        if let Some(name) = reference(shape) {
            return match name.rsplit('.').next().unwrap_or_default() {
                "MicroTime" => "micro_time",
                _ => self.all.get(name).map_or("any", |def| self.scalar(&def["is"])),
            };
        }
        match shape.as_str() {
            Some("string") => "text",
            Some("int32") => "int32",
            Some("int64" | "integer") => "int64",
            Some("number") => "number",
            Some("boolean") => "bool",
            Some("byte") => "bytes",
            Some("date-time") => "time",
            Some("quantity") => "quantity",
            Some("int-or-string") => "int_or_string",
            _ => "any",
        }
    }
}

/// Returns the shape of a field.
fn shape(field: &Value) -> &Value {
    field.get("is").unwrap_or(field)
}

/// Returns the type that a shape refers to, by itself or in a list or map.
fn reference(shape: &Value) -> Option<&str> {
    match shape {
        Value::Object(fields) => match fields.get("ref").and_then(Value::as_str) {
            Some(name) => Some(name),
            None => fields.get("list").or_else(|| fields.get("map")).and_then(reference),
        },
        _ => None,
    }
}

/// Returns a name in snake case: `host_ips` for `hostIPs`.
fn snake(name: &str) -> String {
    let letters: Vec<char> = name.trim_start_matches('$').chars().collect();
    let mut out = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let ends_acronym = letters.get(at + 1).is_some_and(char::is_ascii_lowercase)
            && !(letters.get(at + 1) == Some(&'s') && letters.get(at + 2).is_none_or(char::is_ascii_uppercase));
        if letter.is_ascii_uppercase() && before.is_some_and(|before| !before.is_ascii_uppercase() || ends_acronym) {
            out.push('_');
        }
        out.push(if *letter == '-' { '_' } else { letter.to_ascii_lowercase() });
    }
    out
}

/// Returns the singular of a word.
fn singular(word: &str) -> String {
    for (plural, singular) in [("ies", "y"), ("sses", "ss"), ("ases", "as"), ("ches", "ch")] {
        if let Some(stem) = word.strip_suffix(plural) {
            return format!("{stem}{singular}");
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if !word.ends_with("ss") => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// Returns a name that is not a keyword.
fn raw(name: &str) -> String {
    const KEYWORDS: [&str; 11] =
        ["as", "continue", "enum", "for", "in", "match", "ref", "static", "type", "use", "where"];
    match name {
        "self" => "self_".to_owned(),
        _ if KEYWORDS.contains(&name) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rust() {
        for (name, expected) in [
            ("hostIPs", "host_ips"),
            ("clusterIP", "cluster_ip"),
            ("fieldsV1", "fields_v1"),
            ("targetCPUUtilizationPercentage", "target_cpu_utilization_percentage"),
            ("volumeMounts", "volume_mounts"),
            ("FSType", "fs_type"),
            ("$ref", "ref"),
        ] {
            assert_eq!(snake(name), expected);
        }
        for (word, expected) in [
            ("containers", "container"),
            ("env", "env"),
            ("hostAliases", "hostAlias"),
            ("addresses", "address"),
            ("matchPolicies", "matchPolicy"),
        ] {
            assert_eq!(singular(word), expected);
        }
    }
}
