//! Sources other than shared informers: an `Api`, and streams of keys.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use klient::{Controller, ObjectKey, controller::ReasonKind, metrics::Registry};
use tokio::sync::mpsc;

use super::{Running, builder, done, key};
use crate::informer::World;

/// The keys of a channel, as a stream.
struct KeyStream(mpsc::UnboundedReceiver<ObjectKey>);

impl Stream for KeyStream {
    type Item = ObjectKey;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ObjectKey>> {
        self.0.poll_recv(context)
    }
}

#[tokio::test(start_paused = true)]
async fn controller_takes_an_api_as_its_source() {
    let world = World::start().await;
    world.create("a").await;
    let builder = Controller::builder("maps", world.maps.clone()).registry(Registry::new());
    let mut running = Running::start(builder, |_| done());
    assert_eq!(running.next().await, "a: configmaps default/a found");
    world.set("a", "1").await;
    assert_eq!(running.next().await, "a: configmaps default/a changed");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controller_reconciles_keys_of_a_stream() {
    let world = World::start().await;
    let (sender, receiver) = mpsc::unbounded_channel();
    let builder = builder(&world).keys_from("webhook", KeyStream(receiver));
    sender.send(key("before")).unwrap();
    let mut running = Running::start(builder, |_| done());
    assert_eq!(running.next().await, "before: webhook event");
    sender.send(key("after")).unwrap();
    let call = running.call().await;
    assert_eq!(call.key(), &key("after"));
    assert!(call.reasons().has(ReasonKind::External));
    // The end of the stream does not stop the controller.
    drop(sender);
    running.quiet_for(Duration::from_secs(60)).await;
    world.create("a").await;
    assert_eq!(running.next().await, "a: configmaps default/a added");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controller_reads_no_keys_after_shutdown() {
    let world = World::start().await;
    let (sender, receiver) = mpsc::unbounded_channel();
    let running = Running::start(builder(&world).keys_from("webhook", KeyStream(receiver)), |_| done());
    running.stop().await.unwrap();
    sender.closed().await;
    assert!(sender.send(key("late")).is_err(), "the stream was dropped");
}
