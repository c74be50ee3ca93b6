//! Reads of the store of informers and listers by many readers, without a server.

use anyhow::{Context as _, Result};
use bench_jobs::{Answer, Arguments, FLEET, Job, Measured, Reads, group_of, last_of, name};
use k8s_openapi::api::core::v1::Pod;
use klient::ObjectKey;
use klient::informer::{CachedObject, IndexFunc, ThreadSafeStore};
use klient::wire::{ManagedFields, RawObject};

pub(crate) fn read(arguments: &Arguments) -> Result<(Measured, Answer)> {
    let mut template = arguments.pod()?;
    template.metadata.namespace = Some(FLEET.to_owned());
    let store = ThreadSafeStore::<CachedObject<Pod>>::new();
    let by_group = IndexFunc::new(|pod: &CachedObject<Pod>, found| found.add(&group_of(pod.key().name())));
    let groups = store.add_index("group", by_group)?;
    let is_typed = arguments.job == Job::ReadTyped;
    let make = if is_typed { decoded } else { as_it_came };
    let objects = (0..arguments.size).map(|number| make(&mut template, number)).collect::<Result<Vec<_>>>()?;
    store.replace(objects.iter().cloned(), "1".into());
    let keys: Vec<_> = (0..arguments.size).map(|number| ObjectKey::namespaced(FLEET, &name(number))).collect();
    let values: Vec<_> = (0..arguments.size.div_ceil(20)).map(|group| group.to_string()).collect();
    let reads = Reads::new(arguments);
    let write = |number: usize| drop(store.insert(objects[number % objects.len()].clone()));
    if reads.by_index() {
        let last = |pod: &CachedObject<Pod>| last_of(pod.key().name());
        reads.run(|number| (&groups.get(&values[number % values.len()])).into_iter().map(last).sum(), write)
    } else if is_typed {
        let last = |pod: &CachedObject<Pod>| Some(last_of(pod.decoded()?.metadata.name.as_deref()?));
        reads.run(|number| store.get(&keys[number % keys.len()]).as_ref().and_then(last).unwrap_or_default(), write)
    } else {
        let last = |pod: CachedObject<Pod>| last_of(pod.key().name());
        reads.run(|number| store.get(&keys[number % keys.len()]).map_or(0, last), write)
    }
}

/// Returns an object as an informer with decoded objects caches it.
fn decoded(template: &mut Pod, number: usize) -> Result<CachedObject<Pod>> {
    template.metadata.name = Some(name(number));
    Ok(CachedObject::from_object(template.clone()))
}

/// Returns an object as other informers cache it.
fn as_it_came(template: &mut Pod, number: usize) -> Result<CachedObject<Pod>> {
    template.metadata.name = Some(name(number));
    template.metadata.resource_version = Some((number + 1).to_string());
    let message = klient::wire::encode(template).context("a pod cannot be encoded")?;
    Ok(CachedObject::from_wire(RawObject::from_protobuf(&message, ManagedFields::Drop)?))
}
