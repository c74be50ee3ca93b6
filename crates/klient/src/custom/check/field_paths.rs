//! Checks of the `fieldPath` of CEL rules: it names a field of the schema that has the rule.

use serde_json::Value;

use super::Problems;

pub(super) fn check(schema: &Value, path: &str, problems: &mut Problems) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let Some(field_path) = rule["fieldPath"].as_str() else { continue };
        let is_field = names(field_path).is_some_and(|names| names.iter().try_fold(schema, below).is_some());
        if !is_field {
            let reason = format!(
                "the field path {field_path:?} of a CEL rule is not a field of its schema: write it relative to the value, such as \
                 `.size`; lists and `metadata` cannot be named"
            );
            problems.add(path, reason);
        }
    }
}

/// Returns the names in a path such as `.spec.size` or `.labels['a.b']`.
fn names(path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix("['") {
            Some(quoted) => quoted.split_once("']")?,
            None => {
                let field = rest.strip_prefix('.')?;
                field.split_at(field.find(['.', '[']).unwrap_or(field.len()))
            }
        };
        if name.is_empty() {
            return None;
        }
        names.push(name.to_owned());
        rest = after;
    }
    (!names.is_empty()).then_some(names)
}

fn below<'a>(schema: &'a Value, name: &String) -> Option<&'a Value> {
    let entries = schema.get("additionalProperties").filter(|entries| entries.is_object());
    schema["properties"].get(name).or(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_paths_are_names_after_dots_and_in_brackets() {
        let found = |path| names(path).map(|names| names.join(" "));
        assert_eq!(found(".spec.size").as_deref(), Some("spec size"));
        assert_eq!(found(".labels['a.b'].c").as_deref(), Some("labels a.b c"));
        for wrong in ["", "spec", ".", ".a..b", ".a[0]", ".a['b"] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }
}
