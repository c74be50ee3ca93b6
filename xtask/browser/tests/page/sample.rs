//! The page of Kubernetes' sample controller.

use std::net::SocketAddr;

use k8s_openapi::api::apps::v1::Deployment;
use klient::{Api, InformerFactory, Manager, manager::DebugPage};
use klient_cli::sample_controller::{Foo, FooSpec, Syncer, builder, events, install};
use serde_json::json;

use crate::{
    browser::{Page, browse},
    world::World,
};

#[tokio::test]
async fn page_tells_the_story_of_a_foo_and_its_deployment() {
    browse(|page| async move {
        let mut world = World::start().await;
        let address = serve(&mut world, DebugPage::local()).await;
        page.open(address).await;
        check(&page, &world).await;
    })
    .await;
}

/// Runs the sample controller with a debug page.
pub(crate) async fn serve(world: &mut World, page: DebugPage) -> SocketAddr {
    install(&world.client).await.unwrap();
    let factory = InformerFactory::new(world.client.clone());
    let (foos, deployments) = (factory.namespaced::<Foo>(), factory.apps_v1().deployments());
    let (recorder, sink) = events(world.client.clone());
    let syncer = Syncer::new(world.client.clone(), deployments.lister(), recorder);
    let controller = builder(foos, deployments).registry(world.registry.clone()).reconcile(syncer);
    world.spawn(async move {
        let _sink = sink;
        std::future::pending::<()>().await;
    });
    world.run(Manager::builder().controller(controller), page).await
}

/// Checks the stories of a Foo that is done and of one that cannot be done, on a page that is open.
pub(crate) async fn check(page: &Page, world: &World) {
    let api: Api<Foo> = Api::namespaced(world.client.clone(), "default");
    let example = Foo::new("example", FooSpec::new("example-deployment", Some(1)));
    api.create(&example).await.unwrap();
    page.story("default/example", "and nothing changed since").await;
    let wrote = |text: &str| text.contains("deployments.apps default/example-deployment");
    page.wait_for("#story-body", wrote).await;

    // A Deployment that another object controls is an error, which the page shows.
    let taken: Deployment = serde_json::from_value(json!({"metadata": {"name": "taken"}, "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }}))
    .unwrap();
    Api::<Deployment>::namespaced(world.client.clone(), "default").create(&taken).await.unwrap();
    let blocked = Foo::new("blocked", FooSpec::new("taken", Some(1)));
    api.create(&blocked).await.unwrap();
    page.story("default/blocked", "taken").await;
    page.screenshot("sample").await;
}
