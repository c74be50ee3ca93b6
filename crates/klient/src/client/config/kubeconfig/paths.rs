//! Relative paths in a kubeconfig, which are relative to the directory of their file.
//!
//! Both directions use only the text of the paths, as in client-go: links are not followed.

use std::path::{Component, Path, PathBuf};

/// Returns the absolute directory that relative paths in this file start from.
pub(super) fn base_of(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    file.parent().map(clean).unwrap_or_default()
}

/// Returns the absolute form of a path in a file of that directory.
pub(super) fn resolve(base: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { clean(&base.join(path)) }
}

/// Returns the form relative to that directory, or the path itself if it is not below the directory.
pub(super) fn relativize(base: &Path, path: &Path) -> PathBuf {
    match clean(path).strip_prefix(base) {
        Ok(relative) if !relative.as_os_str().is_empty() => relative.to_owned(),
        _ => path.to_owned(),
    }
}

fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) => {
                cleaned.pop();
            }
            // The root has no parent.
            Component::ParentDir if cleaned.has_root() => {}
            other => cleaned.push(other),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_resolved_against_the_directory_of_its_file() {
        for (path, resolved) in [
            ("ca.crt", "/home/me/.kube/ca.crt"),
            ("./pki/ca.crt", "/home/me/.kube/pki/ca.crt"),
            ("../pki/./ca.crt", "/home/me/pki/ca.crt"),
            ("../../../../../ca.crt", "/ca.crt"),
            ("/etc/../ca.crt", "/etc/../ca.crt"),
        ] {
            assert_eq!(resolve(Path::new("/home/me/.kube"), Path::new(path)), Path::new(resolved), "{path}");
        }
    }

    #[test]
    fn only_a_path_below_the_directory_is_made_relative() {
        for (path, relative) in [
            ("/home/me/.kube/pki/ca.crt", "pki/ca.crt"),
            ("/home/me/.kube/a/../ca.crt", "ca.crt"),
            ("/home/me/pki/ca.crt", "/home/me/pki/ca.crt"),
            ("/home/me/.kube2/ca.crt", "/home/me/.kube2/ca.crt"),
            ("pki/ca.crt", "pki/ca.crt"),
            ("/home/me/.kube", "/home/me/.kube"),
        ] {
            assert_eq!(relativize(Path::new("/home/me/.kube"), Path::new(path)), Path::new(relative), "{path}");
        }
    }
}
