//! Unpacking of archives from containers, which are not trusted.
//!
//! Every entry is below the requested name and has no `..`. Links are made after all files, so that no file is written through one, and must
//! not lead out of the target. Links that are in the target already are not followed.

use std::{
    fs,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use tar::{Archive, EntryType};

use super::Copied;

/// Unpacks the entries below a name to a target.
pub(super) fn unpack(
    archive: impl Read,
    name: &Path,
    target: &Path,
    on_progress: &dyn Fn(&Copied),
) -> io::Result<Copied> {
    let mut copied = Copied::default();
    let mut links: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut folders: Vec<(PathBuf, u32)> = Vec::new();
    let mut archive = Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let place = place(&path, name)?;
        let kind = entry.header().entry_type();
        let mode = entry.header().mode()? & PERMISSIONS;
        let full = below(target, &place);
        make_parents(target, &place)?;
        match kind {
            EntryType::Directory => {
                make_folder(&full)?;
                folders.push((full, mode));
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                write_file(&mut entry, &full, mode, &mut copied, on_progress)?;
            }
            EntryType::Symlink => {
                let to = entry.link_name()?.ok_or_else(|| refused(&path, "is a link to nothing"))?.into_owned();
                check_link(&path, &place, &to)?;
                links.push((full, to));
            }
            EntryType::Link => {
                let to = entry.link_name()?.ok_or_else(|| refused(&path, "is a link to nothing"))?.into_owned();
                let first = self::place(&to, name)?;
                make_parents(target, &first)?;
                let first = below(target, &first);
                // Only a file that was unpacked can be linked.
                if !fs::symlink_metadata(&first)?.is_file() {
                    return Err(refused(&path, "is a link to something that is not a file of the archive"));
                }
                remove_file(&full)?;
                fs::hard_link(first, full)?;
            }
            _ => return Err(refused(&path, "is neither a file, nor a directory, nor a link")),
        }
        copied.entries += 1;
        on_progress(&copied);
    }
    if copied.entries == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is empty"));
    }
    for (link, to) in links {
        remove_file(&link)?;
        make_link(&to, &link)?;
    }
    // A directory that cannot be written gets its permissions after its files.
    for (folder, mode) in folders.into_iter().rev() {
        set_mode(&folder, mode)?;
    }
    Ok(copied)
}

/// Returns where an entry belongs below the target.
fn place(path: &Path, name: &Path) -> io::Result<PathBuf> {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if plain.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(refused(path, "leads out of the target"));
    }
    let below = plain.strip_prefix(name).map_err(|_| refused(path, "was not requested"))?;
    Ok(below.to_owned())
}

/// Returns a place below the target, or the target itself, without a slash at the end.
fn below(target: &Path, place: &Path) -> PathBuf {
    if place.as_os_str().is_empty() { target.to_owned() } else { target.join(place) }
}

/// Makes the directories of an entry, which archives need not contain. Refuses an entry below something else, such as a link.
fn make_parents(target: &Path, place: &Path) -> io::Result<()> {
    let Some(parent) = place.parent() else { return Ok(()) };
    let mut at = target.to_owned();
    make_folder(&at)?;
    for part in parent.components() {
        at.push(part);
        make_folder(&at)?;
    }
    Ok(())
}

/// Refuses a link that may lead out of the target.
///
/// `..` is accepted only at the start, where it leaves directories that this code has made. After another name, which may be a link itself,
/// it could be any directory.
fn check_link(path: &Path, place: &Path, to: &Path) -> io::Result<()> {
    // The number of directories that can be left.
    let mut depth = place.components().count().saturating_sub(1);
    for part in to.components() {
        match part {
            Component::Normal(_) => depth = 0,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return Err(refused(path, "is a link that leads out of the target")),
        }
    }
    Ok(())
}

fn make_folder(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(refused(path, "is in the way and is not a directory")),
        Err(_) => fs::create_dir(path),
    }
}

fn write_file(
    content: &mut impl Read,
    path: &Path,
    mode: u32,
    copied: &mut Copied,
    on_progress: &dyn Fn(&Copied),
) -> io::Result<()> {
    // A link that is there is replaced, not followed.
    remove_file(path)?;
    let mut file = fs::File::options().write(true).create_new(true).open(path)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = content.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        io::Write::write_all(&mut file, &buffer[..read])?;
        copied.bytes += read as u64;
        on_progress(copied);
    }
    set_mode(path, mode)
}

/// Removes a file or link, if there is one.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn make_link(to: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn make_link(_: &Path, link: &Path) -> io::Result<()> {
    Err(refused(link, "is a link, which this platform does not have"))
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the archive is refused: {} {why}", path.display()))
}

/// The permissions that are kept: no set-user-id bits.
const PERMISSIONS: u32 = 0o777;
/// The size of pieces in which files are written.
const BUFFER: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    /// An entry of an archive: type, path, and content or target.
    type Entry<'a> = (EntryType, &'a str, &'a str);

    fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (kind, path, content) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o640);
            // Builders refuse hostile paths, so that they are written into the header as they are.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            let is_file = *kind == EntryType::Regular;
            if !is_file {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            header.set_size(if is_file { content.len() as u64 } else { 0 });
            header.set_cksum();
            builder.append(&header, if is_file { content.as_bytes() } else { &[] }).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(entries: &[Entry<'_>]) -> (tempfile::TempDir, io::Result<Copied>) {
        let folder = tempfile::tempdir().unwrap();
        let copied = unpack(&archive(entries)[..], Path::new("a"), &folder.path().join("t"), &|_| {});
        (folder, copied)
    }

    use EntryType::{Char, Directory, Link, Regular, Symlink};

    #[test]
    fn files_directories_and_links_are_kept() {
        let entries = [(Directory, "a/", ""), (Regular, "a/f", "text"), (Symlink, "a/l", "f"), (Link, "a/h", "a/f")];
        let (folder, copied) = unpacked(&entries);
        assert_eq!(copied.unwrap(), Copied { entries: 4, bytes: 4 });
        let target = folder.path().join("t");
        assert_eq!(fs::read_to_string(target.join("l")).unwrap(), "text");
        assert_eq!(fs::read_link(target.join("l")).unwrap(), Path::new("f"));
        assert_eq!(fs::read_to_string(target.join("h")).unwrap(), "text");
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(target.join("f")).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn single_file_gets_the_name_of_the_target() {
        let (folder, copied) = unpacked(&[(Regular, "a", "text")]);
        assert_eq!(copied.unwrap(), Copied { entries: 1, bytes: 4 });
        assert_eq!(fs::read_to_string(folder.path().join("t")).unwrap(), "text");
    }

    #[test]
    fn hostile_archives_are_refused_and_write_nothing_outside() {
        let cases: [(&[Entry<'_>], &str); 10] = [
            (&[(Regular, "../evil", "x")], "leads out"),
            (&[(Regular, "/evil", "x")], "leads out"),
            (&[(Directory, "a", ""), (Regular, "a/../../evil", "x")], "leads out"),
            (&[(Regular, "b/evil", "x")], "was not requested"),
            (&[(Directory, "a", ""), (Symlink, "a/l", "/etc")], "leads out"),
            (&[(Directory, "a", ""), (Symlink, "a/l", "../../x")], "leads out"),
            // The first link is the target itself, so that the second one would be the directory above.
            (&[(Directory, "a/d", ""), (Symlink, "a/d/l", ".."), (Symlink, "a/m", "d/l/..")], "leads out"),
            (&[(Directory, "a", ""), (Link, "a/h", "/etc/passwd")], "leads out"),
            (&[(Directory, "a", ""), (Char, "a/c", "")], "neither a file"),
            (&[], "empty"),
        ];
        for (entries, why) in cases {
            let (folder, copied) = unpacked(entries);
            let error = copied.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert!(!folder.path().join("evil").exists());
        }
    }

    #[test]
    fn nothing_is_written_through_links() {
        // A link of the archive is made last, so that the file is in a directory of its own.
        let (folder, copied) = unpacked(&[(Directory, "a", ""), (Symlink, "a/l", "d"), (Regular, "a/l/evil", "x")]);
        assert!(copied.is_err(), "{copied:?}");
        drop(folder);
        // A link that was in the target before is in the way.
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let target = folder.path().join("t");
        fs::create_dir(&target).unwrap();
        make_link(outside.path(), &target.join("d")).unwrap();
        let text = archive(&[(Directory, "a", ""), (Regular, "a/d/evil", "x")]);
        let error = unpack(&text[..], Path::new("a"), &target, &|_| {}).unwrap_err();
        assert!(error.to_string().contains("is in the way"), "{error}");
        assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
        // A link in the place of a file is replaced.
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        make_link(&secret, &target.join("f")).unwrap();
        let text = archive(&[(Directory, "a", ""), (Regular, "a/f", "x")]);
        unpack(&text[..], Path::new("a"), &target, &|_| {}).unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(fs::read_to_string(target.join("f")).unwrap(), "x");
    }

    fn hostile_path() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::strategy::Strategy as _;
        let part = proptest::sample::select(vec!["..", ".", "d", "l", "m", "f", "/", ""]);
        proptest::collection::vec(part, 0..5).prop_map(|parts| parts.join("/"))
    }

    proptest::proptest! {
        #[test]
        fn no_archive_leads_out_of_the_target(
            entries in proptest::collection::vec((0..4usize, hostile_path(), hostile_path()), 1..8),
            cut in 0..4096usize,
            damage in (0..8192usize, proptest::prelude::any::<u8>()),
        ) {
            let kinds = [Directory, Regular, Symlink, Link];
            let mut named = vec![(Directory, "a".to_owned(), String::new()), (Directory, "a/d".to_owned(), String::new())];
            named.extend(entries.into_iter().map(|(kind, path, to)| {
                let to = if kinds[kind] == Link { format!("a/{to}") } else { to };
                (kinds[kind], format!("a/{path}"), to)
            }));
            let named: Vec<Entry<'_>> = named.iter().map(|(kind, path, to)| (*kind, &path[..], &to[..])).collect();
            let mut bytes = archive(&named);
            // Some archives are damaged or cut off, most are not.
            if let Some(byte) = bytes.get_mut(damage.0) {
                *byte ^= if damage.1 < 32 { damage.1 } else { 0 };
            }
            bytes.truncate(bytes.len() - if cut < 1024 { cut.min(bytes.len()) } else { 0 });
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("t");
            let _ = unpack(&bytes[..], Path::new("a"), &target, &|_| {});
            let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            proptest::prop_assert!(beside.iter().all(|name| name == "t"), "{beside:?}");
            let root = fs::canonicalize(folder.path()).unwrap().join("t");
            let mut folders = vec![root.clone()];
            while let Some(at) = folders.pop() {
                for entry in fs::read_dir(at).into_iter().flatten() {
                    let (path, kind) = (entry.as_ref().unwrap().path(), entry.unwrap().file_type().unwrap());
                    if kind.is_dir() {
                        folders.push(path);
                    } else if kind.is_symlink() && let Ok(to) = fs::canonicalize(&path) {
                        proptest::prop_assert!(to.starts_with(&root), "{} leads to {}", path.display(), to.display());
                    }
                }
            }
        }
    }

    #[test]
    fn archive_that_is_cut_off_is_an_error() {
        let whole = archive(&[(Directory, "a", ""), (Regular, "a/f", &"x".repeat(2000))]);
        let folder = tempfile::tempdir().unwrap();
        let copied = unpack(&whole[..1600], Path::new("a"), &folder.path().join("t"), &|_| {});
        assert!(copied.is_err());
    }
}
