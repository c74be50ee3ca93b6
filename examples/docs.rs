//! The examples in README.md and in the guide compile and run: `cargo test -p klient-examples --doc`.

/// Compiles the examples of one page.
macro_rules! pages {
    ($($name:ident $path:literal;)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!($path)]
        struct $name;
    )*};
}

pages! {
    Readme "../README.md";
    QuickStart "../docs/guide/src/quick-start.md";
    CustomResources "../docs/guide/src/custom-resources.md";
    ReadingAndWriting "../docs/guide/src/reading-and-writing.md";
    Streams "../docs/guide/src/streams.md";
    Informers "../docs/guide/src/informers.md";
    Controllers "../docs/guide/src/controllers.md";
    Webhooks "../docs/guide/src/webhooks.md";
    Testing "../docs/guide/src/testing.md";
    Authentication "../docs/guide/src/authentication.md";
    Production "../docs/guide/src/production.md";
    Growing "../docs/guide/src/growing.md";
    NotReconciled "../docs/guide/src/not-reconciled.md";
    FromKubeRs "../docs/guide/src/from-kube-rs.md";
    FromClientGo "../docs/guide/src/from-client-go.md";
    WhyItIsFast "../docs/guide/src/why-it-is-fast.md";
}
