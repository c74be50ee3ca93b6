//! The paths of custom columns: the part of `JSONPath` that definitions can use.

use serde_json::Value;

/// One step of a path.
enum Step {
    Name(String),
    Index(i64),
    All,
    /// `[?(@.type=='Ready')]`
    Where {
        path: String,
        equals: Value,
    },
}

/// Returns the first value at a path, if any.
pub(super) fn first(object: &Value, path: &str) -> Option<Value> {
    let mut found = vec![object];
    for step in steps(path)? {
        found = found.into_iter().flat_map(|value| step.of(value)).collect();
    }
    found.first().map(|value| (*value).clone())
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Name(name) => value.get(name).into_iter().collect(),
            Self::Index(at) => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                let at = if *at < 0 { at + i64::try_from(items.len()).unwrap_or_default() } else { *at };
                usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
            }
            Self::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Self::Where { path, equals } => value
                .as_array()
                .into_iter()
                .flatten()
                .filter(|item| first(item, path).is_some_and(|found| found == *equals))
                .collect(),
        }
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once(']')?;
            steps.push(bracket(inside)?);
            rest = after;
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let mut name = String::new();
        let mut chars = rest.char_indices();
        rest = loop {
            match chars.next() {
                None => break "",
                Some((_, '\\')) => name.extend(chars.next().map(|(_, c)| c)),
                Some((at, '.' | '[')) => break &rest[at..],
                Some((_, c)) => name.push(c),
            }
        };
        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Name(name)),
        }
    }
    Some(steps)
}

fn bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = inside.strip_prefix("?(@").and_then(|rest| rest.strip_suffix(')')) {
        let (path, wanted) = condition.split_once("==")?;
        let wanted = wanted.trim();
        let equals = match quoted(wanted) {
            Some(text) => Value::from(text),
            None => serde_json::from_str(wanted).ok()?,
        };
        return Some(Step::Where { path: path.trim().to_owned(), equals });
    }
    match quoted(inside) {
        Some(name) => Some(Step::Name(name.replace("\\.", "."))),
        None => inside.parse().ok().map(Step::Index),
    }
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_finds_first_value() {
        let object = json!({"a": {"b.c": 1, "list": [{"type": "x", "n": 2}, {"type": "y", "n": 3}]}});
        for (path, found) in [
            (".a.b\\.c", json!(1)),
            (".a['b.c']", json!(1)),
            (".a.list[1].n", json!(3)),
            (".a.list[-1].n", json!(3)),
            (".a.list[*].n", json!(2)),
            (".a.list[?(@.type==\"y\")].n", json!(3)),
            (".a.list[?(@.n==2)].type", json!("x")),
        ] {
            assert_eq!(first(&object, path), Some(found), "{path}");
        }
        for path in [".a.none", ".a.list[7]", ".a[0]", ".a.list[?(@.type=='z')].n", ".a[", ".a[x]"] {
            assert_eq!(first(&object, path), None, "{path}");
        }
    }
}
