//! Files that exist, are missing, damaged or shared.

use std::sync::Arc;

use klient_core::{ApiResource, GroupVersion, GroupVersionKind, Scope};

use super::*;
use crate::client::discovery::{ApiGroup, ApiGroupVersion, DiscoveryFailure, ServedResource, ServedSubresource};

fn apis(etag: &str) -> RootApis {
    let gvk = GroupVersionKind::new("apps", "v1", "Deployment");
    let served = ServedResource {
        resource: ApiResource::new(gvk.clone(), "deployments", Scope::Namespaced),
        response_kind: gvk,
        singular: "deployment".to_owned(),
        short_names: vec!["deploy".to_owned()],
        categories: vec!["all".to_owned()],
        verbs: vec!["get".to_owned(), "list".to_owned()],
        subresources: vec![ServedSubresource {
            name: "scale".to_owned(),
            response_kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
            verbs: vec!["get".to_owned()],
        }],
    };
    let version = ApiGroupVersion { group_version: GroupVersion::new("apps", "v1"), resources: vec![served] };
    RootApis {
        etag: Some(etag.to_owned()),
        groups: vec![Arc::new(ApiGroup { name: "apps".to_owned(), versions: vec![version] })],
        failures: vec![DiscoveryFailure::stale(GroupVersion::new("metrics.k8s.io", "v1beta1"))],
    }
}

fn cache() -> (tempfile::TempDir, DiskCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(folder.path().join("new").join("folder"));
    (folder, cache)
}

#[test]
fn cache_loads_the_saved_document() {
    let (_folder, cache) = cache();
    assert!(cache.load(Root::Named).is_none());
    cache.save(Root::Named, &apis("a")).unwrap();
    let loaded = cache.load(Root::Named).unwrap();
    assert_eq!(loaded.apis, apis("a"));
    assert!(loaded.age.unwrap() < Duration::from_secs(60));
    assert!(cache.load(Root::Core).is_none());
}

#[cfg(unix)]
#[test]
fn cache_is_accessible_to_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, cache) = cache();
    cache.save(Root::Core, &apis("a")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&cache.directory), 0o700);
    assert_eq!(mode(&cache.file(Root::Core)), 0o600);
    assert_eq!(fs::read_dir(&cache.directory).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn damaged_file_is_ignored() {
    let (_folder, cache) = cache();
    cache.save(Root::Named, &apis("a")).unwrap();
    let file = cache.file(Root::Named);
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        assert!(cache.load(Root::Named).is_none(), "{length} of {} bytes", whole.len());
    }
    let mut changed = whole.clone();
    let place = changed.len() - 20;
    changed[place] ^= 1;
    for text in [changed, b"{}\n{}".to_vec(), b"\n".to_vec(), vec![0xff; 300], [whole.as_slice(), b"x"].concat()] {
        fs::write(&file, text).unwrap();
        assert!(cache.load(Root::Named).is_none());
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(cache.load(Root::Named).is_none());
    assert!(cache.save(Root::Named, &apis("a")).is_err());
}

#[test]
fn file_of_another_server_is_ignored() {
    let (_folder, cache) = cache();
    cache.save(Root::Named, &apis("a")).unwrap();
    let other = DiskCache { server: "https://other".to_owned(), ..cache };
    assert!(other.load(Root::Named).is_none());
}

#[test]
fn file_from_the_future_has_no_age() {
    let (_folder, cache) = cache();
    cache.save(Root::Named, &apis("a")).unwrap();
    let text = fs::read_to_string(cache.file(Root::Named)).unwrap();
    let (head, body) = text.split_once('\n').unwrap();
    for saved in [u64::MAX, 99_999_999_999] {
        let mut head: Head = serde_json::from_str(head).unwrap();
        head.saved = saved;
        fs::write(cache.file(Root::Named), format!("{}\n{body}", serde_json::to_string(&head).unwrap())).unwrap();
        assert!(cache.load(Root::Named).unwrap().age.is_none());
    }
}

#[test]
fn concurrent_readers_see_whole_files() {
    let (_folder, cache) = cache();
    cache.save(Root::Named, &apis("first")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for _ in 0..50 {
                    cache.save(Root::Named, &apis(&format!("writer {writer}"))).unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(cache.load(Root::Named).expect("a whole file").apis.groups, apis("").groups);
                }
            });
        }
    });
}

#[test]
fn each_server_has_a_directory_in_the_kubectl_cache() {
    let folder_of = |server: &str, variables: &[(&str, &str)]| {
        let environment = Environment::of_test(Path::new("/nowhere"), variables);
        let cache = DiskCache::in_environment(&Config::new(server).unwrap(), &environment);
        cache.map(|cache| cache.directory.to_str().unwrap().to_owned())
    };
    let home = [("HOME", "/home/me")];
    let discovery = "/home/me/.kube/cache/klient/discovery";
    assert_eq!(folder_of("https://host:6443", &home), Some(format!("{discovery}/host_6443")));
    assert_eq!(folder_of("https://host/k8s/c-1", &home), Some(format!("{discovery}/host_k8s_c-1")));
    assert_eq!(folder_of("https://[::1]:6443", &home), Some(format!("{discovery}/___1__6443")));
    let variables = [("HOME", "/home/me"), ("KUBECACHEDIR", "/cache")];
    assert_eq!(folder_of("https://host:6443", &variables).as_deref(), Some("/cache/klient/discovery/host_6443"));
    assert_eq!(folder_of("https://host:6443", &[]), None);
    assert_eq!(folder("https://.."), "_..");
}
