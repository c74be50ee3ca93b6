//! Options are encoded as the parameters that a server reads, or rejected with the reason.

use proptest::prelude::*;

use super::*;
use crate::VersionMatch;

fn query(append: impl FnOnce(&mut Query) -> Result<(), InvalidOptionError>) -> String {
    let mut query = Query::default();
    match append(&mut query) {
        Ok(()) => query.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn get_options_make_these_queries() {
    for (version, expected) in [
        (VersionMatch::MostRecent, ""),
        (VersionMatch::Any, "resourceVersion=0"),
        (VersionMatch::NotOlderThan("7".into()), "resourceVersion=7"),
        (VersionMatch::Exact("7".into()), "option resourceVersion: a get does not support an exact version"),
    ] {
        assert_eq!(query(|query| GetOptions::default().version(version).append_query(query)), expected);
    }
}

#[test]
fn list_options_make_these_queries() {
    let options = ListOptions::default;
    let seconds = Duration::from_secs;
    for (options, expected) in [
        (options(), ""),
        (options().limit(0), ""),
        (
            options().labels("a=b,c!=d").fields("metadata.name=x"),
            "labelSelector=a%3Db%2Cc%21%3Dd&fieldSelector=metadata.name%3Dx",
        ),
        (options().shard_selector("shardRange(x)"), "shardSelector=shardRange%28x%29"),
        (
            options().version(VersionMatch::Exact("7".into())).limit(5).timeout(Duration::from_millis(1500)),
            "resourceVersion=7&resourceVersionMatch=Exact&limit=5&timeoutSeconds=2",
        ),
        (options().version(VersionMatch::Any).continue_token("t=").limit(5), "limit=5&continue=t%3D"),
        (
            options().version(VersionMatch::Exact("7".into())).continue_token("t"),
            "option resourceVersion: cannot be set together with a continue token, which has its own version",
        ),
        (options().continue_token(""), "option continue: is empty: omit it for the first page"),
        (options().timeout(seconds(0)), "option timeoutSeconds: is zero: omit it for no limit"),
        (options().timeout(Duration::MAX), "timeoutSeconds=9223372036854775807"),
    ] {
        assert_eq!(query(|query| options.append_query(query)), expected);
    }
}

#[test]
fn watch_options_make_these_queries() {
    for (options, expected) in [
        (WatchOptions::default(), "watch=true"),
        (WatchOptions::after("7").labels("a"), "watch=true&labelSelector=a&resourceVersion=7"),
        (
            WatchOptions::initial_events(),
            "watch=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true",
        ),
        (
            WatchOptions::initial_events()
                .version(VersionMatch::NotOlderThan("7".into()))
                .timeout(Duration::from_secs(60)),
            "watch=true&resourceVersion=7&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&\
             allowWatchBookmarks=true&timeoutSeconds=60",
        ),
        (
            WatchOptions::default().send_initial_events(false).version(VersionMatch::Any),
            "watch=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=false",
        ),
        (
            WatchOptions::after("7").send_initial_events(true).bookmarks(),
            "option resourceVersion: initial events require `NotOlderThan` instead of `Exact`",
        ),
        (
            WatchOptions::default().version(VersionMatch::NotOlderThan("7".into())),
            "option resourceVersion: a watch without initial events requires `Exact` or `MostRecent`",
        ),
        (
            WatchOptions { allow_bookmarks: false, ..WatchOptions::initial_events() },
            "option sendInitialEvents: requires bookmarks, which mark the end of the initial events",
        ),
    ] {
        assert_eq!(query(|query| options.append_query(query)), expected);
    }
}

#[test]
fn write_options_make_these_queries() {
    let full = "dryRun=All&fieldManager=me&fieldValidation=Strict";
    let strict = FieldValidation::Strict;
    let create = CreateOptions::default().dry_run().manager("me").field_validation(strict);
    assert_eq!(query(|query| create.append_query(query)), full);
    let update = UpdateOptions::default().dry_run().manager("me").field_validation(strict);
    assert_eq!(query(|query| update.append_query(query)), full);
    let patch = PatchOptions::default().dry_run().manager("me").field_validation(strict);
    assert_eq!(query(|query| patch.append_query(query)), full);
    let apply = ApplyOptions::new("me").dry_run().field_validation(strict).force();
    assert_eq!(query(|query| apply.append_query(query)), format!("{full}&force=true"));
    assert_eq!(
        query(|query| ApplyOptions::new("").append_query(query)),
        "option fieldManager: is required to apply: set it with `manager`"
    );
}

#[test]
fn field_manager_must_be_short_and_printable() {
    for (manager, expected) in [
        ("me and you".to_owned(), Ok(())),
        ("m".repeat(128), Ok(())),
        ("m".repeat(129), Err("option fieldManager: has 129 bytes, at most 128 are allowed")),
        ("a\tb".to_owned(), Err(r"option fieldManager: character '\t' at byte 1 is not printable")),
        (String::new(), Err("option fieldManager: is empty: omit it to use the user agent")),
    ] {
        let result = validate_field_manager(&manager).map_err(|error| error.to_string());
        assert_eq!(result, expected.map_err(str::to_owned));
    }
}

#[test]
fn delete_options_make_these_bodies() {
    let options = DeleteOptions::default;
    for (options, expected) in [
        (options(), r#"{"apiVersion":"v1","kind":"DeleteOptions"}"#),
        (
            options().dry_run().grace_period(Duration::ZERO).uid("u").resource_version("7"),
            r#"{"apiVersion":"v1","dryRun":["All"],"gracePeriodSeconds":0,"kind":"DeleteOptions","preconditions":{"resourceVersion":"7","uid":"u"}}"#,
        ),
        (
            options().propagation_policy(PropagationPolicy::Orphan),
            r#"{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Orphan"}"#,
        ),
        (
            options().propagation_policy(PropagationPolicy::Orphan).orphan_dependents(true),
            "option propagationPolicy: cannot be set together with orphanDependents",
        ),
        (options().uid(""), "option preconditions.uid: is empty: the object was never stored"),
        (
            options().ignore_store_read_error(true).grace_period(Duration::ZERO),
            "option ignoreStoreReadErrorWithClusterBreakingPotential: cannot be set together with gracePeriodSeconds",
        ),
    ] {
        let body = match options.to_openapi() {
            Ok(body) => serde_json::to_value(body).unwrap().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(body, expected);
    }
}

#[test]
fn delete_collection_rejects_preconditions() {
    let options = DeleteCollectionOptions::default().labels("a").fields("b=c");
    assert_eq!(query(|query| options.append_query(query)), "labelSelector=a&fieldSelector=b%3Dc");
    let error = options.delete(DeleteOptions::default().uid("u")).to_openapi().unwrap_err();
    assert_eq!(error.option(), "preconditions");
}

proptest! {
    #[test]
    fn field_manager_check_never_panics(manager in ".{0,140}") {
        let _ = validate_field_manager(&manager);
    }
}
