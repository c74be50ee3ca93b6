//! The facts that the Go structs have and the `.proto` files lack: which fields are pointers, which are embedded, and the
//! JSON name of each field.
//!
//! Only struct fields with a `protobuf` tag matter. Each is on its own line, so this reader needs no parser of Go.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result};

/// A Go struct's fields by protobuf number.
pub(crate) type GoStruct = BTreeMap<u32, GoField>;

/// A field of a Go struct.
#[derive(Clone, Debug)]
pub(crate) struct GoField {
    /// `true` if the field is embedded without a JSON name: its fields are then part of the outer JSON object.
    pub(crate) embedded: bool,
    /// `true` if the field is a pointer: an absent value then differs from zero.
    pub(crate) pointer: bool,
    /// `true` if JSON omits a zero value.
    pub(crate) omit_empty: bool,
    pub(crate) json_name: String,
}

/// The types of a Go package that matter here.
#[derive(Default)]
pub(crate) struct GoPackage {
    pub(crate) structs: BTreeMap<String, GoStruct>,
    /// The aliases by name, each with the import path and the name of its target: `type Rule = v1.Rule`.
    pub(crate) aliases: BTreeMap<String, (String, String)>,
}

/// Reads the Go package in `folder`.
pub(crate) fn read_package(folder: &Path) -> Result<GoPackage> {
    let mut package = GoPackage::default();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let generated = name.starts_with("generated") || name.starts_with("zz_generated");
        if !name.ends_with(".go") || name.ends_with("_test.go") || generated {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        read_types(&text, &mut package);
    }
    Ok(package)
}

fn read_types(text: &str, package: &mut GoPackage) {
    let mut imports: BTreeMap<&str, &str> = BTreeMap::new();
    let mut current: Option<(String, GoStruct)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("type ") {
            if let Some(name) = rest.strip_suffix(" struct {") {
                current = Some((name.to_owned(), GoStruct::new()));
            } else if let Some((name, target)) = rest.split_once(' ')
                && let Some((import, target)) = target.trim_start_matches("= ").split_once('.')
                && let Some(path) = imports.get(import)
            {
                package.aliases.insert(name.to_owned(), ((*path).to_owned(), target.to_owned()));
            }
        } else if line == "}" {
            package.structs.extend(current.take());
        } else if current.is_none() && line.starts_with('\t') && line.ends_with('"') {
            let (name, path) = line.trim().split_once('"').unwrap_or_default();
            let path = path.trim_end_matches('"');
            let name = if name.is_empty() { path.rsplit('/').next().unwrap_or_default() } else { name.trim() };
            imports.insert(name, path);
        } else if let Some((_, fields)) = &mut current
            && let Some((number, field)) = read_field(line)
        {
            fields.insert(number, field);
        }
    }
}

/// Reads `Name *Type `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"``.
fn read_field(line: &str) -> Option<(u32, GoField)> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let (declaration, tags) = line.split_once('`')?;
    let number = tag(tags, "protobuf")?.split(',').nth(1)?.parse().ok()?;
    let json = tag(tags, "json").unwrap_or_default();
    let mut words = declaration.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    let json_name = json.split(',').next().unwrap_or_default().to_owned();
    let field = GoField {
        embedded: second.is_none() && json_name.is_empty(),
        pointer: second.unwrap_or(first).starts_with('*'),
        omit_empty: json.split(',').any(|option| option == "omitempty"),
        json_name,
    };
    Some((number, field))
}

fn tag<'t>(tags: &'t str, key: &str) -> Option<&'t str> {
    let (_, rest) = tags.split_once(&format!("{key}:\""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_pointers_embedded_structs_and_names_apart() {
        let mut package = GoPackage::default();
        read_types(
            "import (\n\tv1 \"k8s.io/api/x/v1\"\n)\n\
             type Rule = v1.Rule\n\
             type Probe struct {\n\
             \t// The action.\n\
             \tProbeHandler `json:\",inline\" protobuf:\"bytes,1,opt,name=handler\"`\n\
             \tGrace *int64 `json:\"grace,omitempty\" protobuf:\"varint,7,opt,name=grace\"`\n\
             \tMode Mode `json:\"mode\" protobuf:\"bytes,8,opt,name=mode\"`\n\
             }\n",
            &mut package,
        );
        assert_eq!(package.aliases["Rule"], ("k8s.io/api/x/v1".to_owned(), "Rule".to_owned()));
        let probe = &package.structs["Probe"];
        assert!(probe[&1].embedded && !probe[&1].pointer);
        assert!(probe[&7].pointer && probe[&7].omit_empty && !probe[&7].embedded);
        assert!(!probe[&8].pointer && !probe[&8].omit_empty);
        assert_eq!(probe[&8].json_name, "mode");
    }
}
