//! Validation of volumes that are projected from several sources.

use std::collections::HashSet;

use super::{
    field::{Causes, Field},
    volume_sources, volumes,
};

/// Validates the sources of a projected volume.
pub(super) fn validate(projected: &Field<'_, '_>, causes: &mut Causes) {
    projected.field("defaultMode").file_mode(causes);
    let mut paths: HashSet<&str> = HashSet::new();
    for source in projected.field("sources").items() {
        let mut count = 0;
        for name in ["secret", "configMap"] {
            let Some(map) = source.set(name) else { continue };
            count += 1;
            map.field("name").not_empty(causes);
            for item in map.field("items").items() {
                volume_sources::file(&item, causes);
                let path = item.field("path").text();
                if !path.is_empty() {
                    unique(projected, path, map.field("name").text(), &mut paths, causes);
                }
            }
        }
        if let Some(downward) = source.set("downwardAPI") {
            count += 1;
            for file in downward.field("items").list() {
                volumes::downward_file(&downward.with(file), causes);
                let path = volume_sources::text(file, "path");
                if !path.is_empty() {
                    unique(projected, path, path, &mut paths, causes);
                }
            }
        }
        if let Some(token) = source.set("serviceAccountToken") {
            count += 1;
            let seconds = token.field("expirationSeconds");
            if seconds.number() < 600 {
                seconds.invalid_as(seconds.number(), "may not specify a duration less than 10 minutes", causes);
            }
            if seconds.number() > 1 << 32 {
                seconds.invalid("may not specify a duration larger than 2^32 seconds", causes);
            }
            let path = projected.field("path");
            let path = path.with(&token.value["path"]);
            if path.not_empty(causes) {
                path.local_path(causes);
            }
        }
        if count > 1 {
            source.forbidden("may not specify more than 1 volume type per source", causes);
        }
    }
}

/// Validates that a path is new. Messages show the name of its source.
fn unique<'v>(
    projected: &Field<'_, '_>,
    path: &'v str,
    shown: &str,
    paths: &mut HashSet<&'v str>,
    causes: &mut Causes,
) {
    if paths.contains(&path) {
        projected.invalid_as(shown, "conflicting duplicate paths", causes);
    } else {
        paths.insert(path);
    }
}
