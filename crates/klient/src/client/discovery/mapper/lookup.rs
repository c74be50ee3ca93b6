//! Lookup of a resource among all that a server serves, in the server's order: the first match is preferred.

use klient_core::{ApiResource, GroupKind, GroupVersionKind};

use super::{Resolved, name::Reading};
use crate::client::discovery::{ApiGroup, ServedResource, ServerApis};

/// Returns the resource that serves a kind in one version.
pub(super) fn by_kind(apis: &ServerApis, gvk: &GroupVersionKind) -> Option<ApiResource> {
    let version = apis.version(&gvk.group_version())?;
    version.resources.iter().find(|served| served.resource.kind == gvk.kind).map(|served| served.resource.clone())
}

/// Returns the resource that serves a kind, in the preferred version or the first that has it.
pub(super) fn by_group_kind(apis: &ServerApis, kind: &GroupKind) -> Option<ApiResource> {
    let versions = &apis.group(&kind.group)?.versions;
    versions.iter().find_map(|version| by_kind(apis, &version.group_version.clone().with_kind(kind.kind.clone())))
}

/// Returns the resource that a name resolves to, with all other matches.
pub(super) fn by_name(apis: &ServerApis, readings: &[Reading]) -> Option<Resolved> {
    readings.iter().find_map(|reading| {
        // A group may be abbreviated, as in `deploy.app`, if no group has exactly that name.
        let exact = |group: &ApiGroup| reading.group.as_ref().is_none_or(|asked| group.name == *asked);
        let begins = |group: &ApiGroup| reading.group.as_ref().is_some_and(|asked| group.name.starts_with(asked));
        in_groups(apis, reading, exact).or_else(|| in_groups(apis, reading, begins))
    })
}

/// Returns every resource of a category once.
pub(super) fn in_category(apis: &ServerApis, category: &str) -> Vec<ApiResource> {
    let members = apis.preferred_resources().filter(|served| served.has_objects() && served.is_in_category(category));
    members.map(|served| served.resource.clone()).collect()
}

/// Returns names that are similar to a name, for an error message.
pub(super) fn close_to(apis: &ServerApis, name: &str) -> Vec<String> {
    let name = name.to_lowercase();
    let allowed = if name.chars().count() < 4 { 1 } else { 2 };
    let near = |other: &str| other.len().abs_diff(name.len()) <= 4 && distance(other, &name) <= allowed;
    let found = apis.preferred_resources().filter(|served| {
        served.has_objects()
            && (near(&served.resource.plural) || near(&served.singular) || near(&served.resource.kind.to_lowercase()))
    });
    let text = |served: &ServedResource| {
        let kind = GroupKind::new(served.resource.group.clone(), served.resource.kind.clone());
        format!("{} ({kind})", served.resource.group_resource())
    };
    found.take(MAX_CLOSE).map(text).collect()
}

/// Returns whether a name matches a resource in that way.
fn matches(served: &ServedResource, name: &str, way: Way) -> bool {
    match way {
        Way::Plural => served.resource.plural == name,
        Way::Singular => served.singular == name,
        Way::Short => served.short_names.iter().any(|short| short == name),
        Way::Kind => served.resource.kind.to_lowercase() == name,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plural,
    Singular,
    Short,
    Kind,
}

fn in_groups(apis: &ServerApis, reading: &Reading, group: impl Fn(&ApiGroup) -> bool) -> Option<Resolved> {
    [Way::Plural, Way::Singular, Way::Short, Way::Kind].into_iter().find_map(|way| {
        let mut found: Vec<ApiResource> = Vec::new();
        for group in apis.groups.iter().filter(|one| group(one)) {
            let asked = |name: &str| reading.version.as_ref().is_none_or(|asked| asked == name);
            let versions = group.versions.iter().filter(|version| asked(&version.group_version.version));
            for served in versions.flat_map(|version| &version.resources) {
                let known = || found.iter().any(|other| other.group_resource() == served.resource.group_resource());
                if served.has_objects() && matches(served, &reading.resource, way) && !known() {
                    found.push(served.resource.clone());
                }
            }
        }
        let mut found = found.into_iter();
        let resource = found.next()?;
        let short_name = (way == Way::Short).then(|| reading.resource.clone());
        Some(Resolved { resource, others: found.collect(), short_name })
    })
}

/// Returns the edit distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = line + 1;
        for (column, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

const MAX_CLOSE: usize = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, expected) in
            [("", "", 0), ("pods", "pods", 0), ("pds", "pods", 1), ("pod", "dop", 2), ("", "abc", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_bounded_by_the_lengths(a in ".{0,8}", b in ".{0,8}") {
            let (long, short) = (a.chars().count().max(b.chars().count()), a.chars().count().min(b.chars().count()));
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert!((long - short..=long).contains(&distance(&a, &b)));
        }
    }
}
