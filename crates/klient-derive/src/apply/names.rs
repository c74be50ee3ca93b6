//! The names of fields in JSON, as serde writes them, and the names of methods.

use syn::Field;

use crate::arguments::{Argument, of_attributes};

/// The case that `#[serde(rename_all = "...")]` names.
#[derive(Clone, Copy, Default)]
pub(super) enum Case {
    #[default]
    Snake,
    Lower,
    Upper,
    Pascal,
    Camel,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    /// Returns a field name in snake case in this case.
    fn of_field(self, name: &str) -> String {
        match self {
            Self::Snake | Self::Lower => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => pascal(name),
            Self::Camel => {
                let pascal = pascal(name);
                let first = pascal.chars().next().map_or(0, char::len_utf8);
                pascal[..first].to_ascii_lowercase() + &pascal[first..]
            }
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

/// Reads `rename_all`. Servers know the names that are read, which are those of the schema.
pub(super) fn case(argument: &Argument) -> Option<Case> {
    Some(match read_name(argument)?.as_str() {
        "lowercase" => Case::Lower,
        "UPPERCASE" => Case::Upper,
        "PascalCase" => Case::Pascal,
        "camelCase" => Case::Camel,
        "SCREAMING_SNAKE_CASE" => Case::ScreamingSnake,
        "kebab-case" => Case::Kebab,
        "SCREAMING-KEBAB-CASE" => Case::ScreamingKebab,
        _ => Case::Snake,
    })
}

/// Returns the name of a field in JSON.
pub(super) fn of_field(field: &Field, case: Case) -> String {
    let arguments = of_attributes(&field.attrs, &["serde"]).unwrap_or_default();
    let renamed = arguments.iter().filter(|argument| argument.name == "rename").find_map(read_name);
    renamed.unwrap_or_else(|| case.of_field(&ident(field)))
}

/// Returns the name of a field in Rust, without `r#`.
pub(super) fn ident(field: &Field) -> String {
    let ident = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    ident.strip_prefix("r#").unwrap_or(&ident).to_owned()
}

/// Returns the singular of a word: `ports` has the items `port`.
pub(super) fn singular(word: &str) -> String {
    for (plural, singular) in [("ies", "y"), ("sses", "ss"), ("ases", "as"), ("ches", "ch"), ("xes", "x")] {
        if let Some(stem) = word.strip_suffix(plural) {
            return format!("{stem}{singular}");
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if !word.ends_with("ss") && !stem.is_empty() => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// Returns the name of `name = "..."` or `name(deserialize = "...")`.
fn read_name(argument: &Argument) -> Option<String> {
    match argument.nested() {
        Some(Ok(nested)) => {
            let read = nested.iter().find(|one| one.name == "deserialize")?;
            Some(read.text().ok()?.value())
        }
        Some(Err(_)) => None,
        None => Some(argument.text().ok()?.value()),
    }
}

fn pascal(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let first = word.chars().next().map_or(0, char::len_utf8);
            word[..first].to_ascii_uppercase() + &word[first..]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn names_are_those_of_serde() {
        let field = |field: Field, case| of_field(&field, case);
        assert_eq!(field(parse_quote!(opening_hours: String), Case::Camel), "openingHours");
        assert_eq!(field(parse_quote!(opening_hours: String), Case::Pascal), "OpeningHours");
        assert_eq!(field(parse_quote!(opening_hours: String), Case::Kebab), "opening-hours");
        assert_eq!(field(parse_quote!(opening_hours: String), Case::ScreamingSnake), "OPENING_HOURS");
        assert_eq!(field(parse_quote!(r#type: String), Case::Snake), "type");
        assert_eq!(field(parse_quote!(#[serde(rename = "hours", default)] opening: String), Case::Camel), "hours");
        let both = parse_quote!(#[serde(rename(serialize = "a", deserialize = "b"))] opening: String);
        assert_eq!(field(both, Case::Camel), "b");
    }

    #[test]
    fn items_are_named_in_the_singular() {
        for (word, expected) in
            [("ports", "port"), ("addresses", "address"), ("policies", "policy"), ("boxes", "box"), ("env", "env")]
        {
            assert_eq!(singular(word), expected);
        }
    }
}
