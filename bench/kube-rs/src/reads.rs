//! Reads of a reflector's store by many readers, without a server and without indices.

use std::sync::Arc;

use anyhow::{Result, ensure};
use bench_jobs::{Answer, Arguments, FLEET, Measured, Reads, last_of, name};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{
    reflector::{ObjectRef, store::Writer},
    watcher::Event,
};

pub(crate) fn read(arguments: &Arguments) -> Result<(Measured, Answer)> {
    let mut template = arguments.pod()?;
    template.metadata.namespace = Some(FLEET.to_owned());
    let mut apply = |number: usize| {
        template.metadata.name = Some(name(number));
        Event::Apply(template.clone())
    };
    let mut writer: Writer<Pod> = Writer::default();
    let store = writer.as_reader();
    (0..arguments.size).for_each(|number| writer.apply_watcher_event(&apply(number)));
    ensure!(store.len() == arguments.size, "{} objects", store.len());
    let changes: Vec<_> = (0..arguments.size).map(apply).collect();
    let keys: Vec<_> = (0..arguments.size).map(|number| ObjectRef::<Pod>::new(&name(number)).within(FLEET)).collect();
    let last = |pod: Arc<Pod>| pod.metadata.name.as_deref().map_or(0, last_of);
    Reads::new(arguments).run(
        |number| store.get(&keys[number % keys.len()]).map_or(0, last),
        |number| writer.apply_watcher_event(&changes[number % changes.len()]),
    )
}
