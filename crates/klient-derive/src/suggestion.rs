//! Suggestions for misspelt names: the known name with the fewest edits.

/// Returns `: did you mean ...?`, or the list of known names if none is similar.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    match closest(name, known) {
        Some(closest) => format!(": did you mean `{closest}`?"),
        None => format!(": expected one of {}", quoted(known)),
    }
}

fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() >= 3
        && let Some(longer) = known.iter().find(|known| known.starts_with(name))
    {
        return Some(longer);
    }
    let limit = name.chars().count() / 3 + 1;
    let distances = known.iter().map(|known| (distance(&name.to_lowercase(), known), *known));
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the number of insertions, deletions and replacements between two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_is_the_most_similar_name() {
        let known = ["shortname", "schema", "scale", "status", "storage"];
        assert_eq!(did_you_mean("shortnames", &known), ": did you mean `shortname`?");
        assert_eq!(did_you_mean("Scale", &known), ": did you mean `scale`?");
        assert_eq!(did_you_mean("stats", &known), ": did you mean `status`?");
        assert_eq!(did_you_mean("int", &["number", "integer"]), ": did you mean `integer`?");
        assert_eq!(did_you_mean("x", &["alpha", "beta"]), ": expected one of `alpha`, `beta`");
    }
}
