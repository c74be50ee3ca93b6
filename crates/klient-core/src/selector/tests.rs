//! Selectors against the API server's own answers, and parsing against printing.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector as ApiLabelSelector, LabelSelectorRequirement as ApiRequirement,
};
use proptest::prelude::*;

use super::*;

type Labels<'a> = &'a [(&'a str, &'a str)];

fn map(labels: Labels<'_>) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn selector(text: &str) -> LabelSelector {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn agrees_with_apimachinery_on_the_golden_label_selectors() {
    // Made by a Go program over k8s.io/apimachinery v0.37.0; one line per text:
    // text|String()|which of these label sets match, or text|error.
    let sets: [Labels<'_>; 6] = [
        &[],
        &[("a", "1"), ("b", "2")],
        &[("a", "2"), ("app", "web"), ("n", "10")],
        &[("in", "in"), ("notin", "notin"), ("x.io/a", ""), ("a", "")],
        &[("n", "5x"), ("b", "web"), ("a_b", "a-b"), ("A-1", "A.b_c")],
        &[("n", "3"), ("a", "5"), ("b", "7"), ("app", "9"), ("in", "11")],
    ];
    for line in include_str!("../../testdata/label_selector_golden.txt").lines() {
        let columns: Vec<&str> = line.split('|').collect();
        let parsed = columns[0].parse::<LabelSelector>();
        let &[_, printed, matches] = &columns[..] else {
            assert!(parsed.is_err(), "{line}: {parsed:?}");
            continue;
        };
        let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
        // Go remembers whether `=` was doubled; for us that is one operator.
        assert_eq!(parsed.to_string(), printed.replace("==", "="), "{line}");
        let matched: String = sets.iter().map(|set| if parsed.matches_map(&map(set)) { '1' } else { '0' }).collect();
        assert_eq!(matched, matches, "{line}");
        assert_eq!(parsed.validate(), Ok(()), "{line}");
    }
}

#[test]
fn agrees_with_apimachinery_on_the_golden_field_selectors() {
    // Made as above: text|String(), or text|error.
    for line in include_str!("../../testdata/field_selector_golden.txt").lines() {
        let (text, printed) = line.split_once('|').unwrap();
        match text.parse::<FieldSelector>() {
            Err(error) => assert_eq!(printed, "error", "{error}"),
            // Go sorts before it reads, so a doubled `=` may change its order.
            Ok(selector) if text.contains("==") => assert_eq!(selector.to_string().len(), printed.len(), "{line}"),
            Ok(selector) => assert_eq!(selector.to_string(), printed, "{line}"),
        }
    }
}

#[test]
fn says_where_and_why_a_text_is_no_label_selector() {
    for (text, at, why) in [
        ("a,", 2, "expected a label key"),
        ("!", 1, "expected a label key"),
        ("a b", 2, "expected one of = == != > < in notin"),
        ("a=b c", 4, "expected `,` or the end"),
        ("a in b", 5, "expected `(`"),
        ("a in (b c)", 8, "expected `,` or `)`"),
        ("a in (b", 7, "expected `,` or `)`"),
        ("a in (=", 6, "expected a label value, `,` or `)`"),
        ("a=(", 2, "expected a label value"),
        ("a > x", 4, "expected an integer"),
        ("x.io/a$b", 6, "expected a letter, a digit, `-`, `_` or `.`"),
        ("a in (b, c/d)", 10, "expected a letter, a digit, `-`, `_` or `.`"),
        ("a\0", 1, "expected a letter, a digit, `-`, `_` or `.`"),
    ] {
        let error = text.parse::<LabelSelector>().unwrap_err().to_string();
        assert_eq!(error, format!("label selector {text:?} at byte {at}: {why}"));
    }
}

#[test]
fn says_where_and_why_a_text_is_no_field_selector() {
    for (text, at, why) in [
        ("a=b,c", 5, "expected =, == or !="),
        ("a=b=c", 3, "needs a backslash before it in a value"),
        ("a=b,c=\\d", 6, "a backslash must stand before `\\`, `,` or `=`"),
        ("a=\\", 2, "a backslash must stand before `\\`, `,` or `=`"),
    ] {
        let error = text.parse::<FieldSelector>().unwrap_err().to_string();
        assert_eq!(error, format!("field selector {text:?} at byte {at}: {why}"));
    }
}

#[test]
fn matches_an_absent_label_only_with_negative_requirements() {
    for (text, matches) in [("a=", false), ("a in ()", false), ("a", false), ("a<1", false)] {
        assert_eq!(selector(text).matches_map(&map(&[])), matches, "{text}");
    }
    for text in ["a!=1", "a notin (1,2)", "!a", ""] {
        assert!(selector(text).matches_map(&map(&[])), "{text}");
    }
}

#[test]
fn matches_nothing_here_and_on_a_server() {
    let nothing = LabelSelector::nothing();
    assert!(!nothing.matches_map(&map(&[])) && !nothing.matches_map(&map(&[("nothing", "")])));
    assert!(nothing.is_nothing() && selector(&nothing.to_string()).is_nothing());
    assert!(!LabelSelector::everything().is_nothing() && LabelSelector::everything().is_everything());
}

#[test]
fn matches_the_labels_of_an_object() {
    use k8s_openapi::api::core::v1::Pod;
    let mut pod = Pod::default();
    assert!(!selector("app=web").matches_object(&pod));
    pod.metadata.labels = Some(map(&[("app", "web")]));
    assert!(selector("app=web").matches_object(&pod));
}

#[test]
fn tells_the_exact_value_that_is_required() {
    assert_eq!(selector("a in (1),b!=2").exact_value("a"), Some("1"));
    assert_eq!(selector("a in (1,2),b!=2").exact_value("a"), None);
    assert_eq!(selector("a=1,b!=2").exact_value("b"), None);
    let fields: FieldSelector = "metadata.name=x,a!=b".parse().unwrap();
    assert_eq!((fields.exact_value("metadata.name"), fields.exact_value("a")), (Some("x"), None));
}

#[test]
fn builders_let_anything_in_and_validation_finds_it() {
    let faulty = [
        LabelSelector::new().eq("a b", "1"),
        LabelSelector::new().eq("a", "x y"),
        LabelSelector::new().is_in("a", ["x", "y,z"]),
        LabelSelector::new().not_in("a", Vec::<String>::new()),
        LabelSelector::new().exists(""),
        LabelSelector::new().greater_than("a", -1),
        LabelSelector::new().with(LabelRequirement::new("a", LabelOperator::LessThan, ["x"])),
        LabelSelector::new().with(LabelRequirement::new("a", LabelOperator::Exists, ["x"])),
        LabelSelector::new().with(LabelRequirement::new("a", LabelOperator::Equals, ["x", "y"])),
    ];
    for selector in faulty {
        assert!(selector.validate().is_err(), "{selector}");
    }
    for field in ["", "a=b", "a,b", "a!", "a\\"] {
        assert!(FieldSelector::new().eq(field, "x").validate().is_err(), "{field}");
    }
    assert_eq!(FieldSelector::new().ne("a.b", "x,=\\").validate(), Ok(()));
}

fn expression(key: &str, operator: &str, values: &[&str]) -> ApiLabelSelector {
    let values = Some(values.iter().map(|value| (*value).to_owned()).collect());
    let requirement = ApiRequirement { key: key.into(), operator: operator.into(), values };
    ApiLabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }
}

#[test]
fn converts_from_the_api_type_and_names_the_wrong_field() {
    let mut api = expression("tier", "NotIn", &["b", "a"]);
    api.match_labels = Some(map(&[("app", "web")]));
    assert_eq!(LabelSelector::try_from(&api).unwrap().to_string(), "app=web,tier notin (a,b)");
    assert!(LabelSelector::from_api(None).unwrap().is_nothing());
    assert!(LabelSelector::from_api(Some(&ApiLabelSelector::default())).unwrap().is_everything());

    for (api, expected) in [
        (
            expression("a", "Gt", &["1"]),
            "matchExpressions[0].operator: \"Gt\" is none of In, NotIn, Exists, DoesNotExist",
        ),
        (expression("a", "In", &[]), "matchExpressions[0].values: expected at least one value"),
        (expression("a", "Exists", &["x"]), "matchExpressions[0].values: expected no values"),
        (expression("", "Exists", &[]), "matchExpressions[0].key: key \"\" at byte 0: expected a name"),
        (
            ApiLabelSelector { match_labels: Some(map(&[("a", "b c")])), match_expressions: None },
            "matchLabels[\"a\"]: value \"b c\" at byte 1: expected a letter, a digit, `-`, `_` or `.`",
        ),
    ] {
        assert_eq!(LabelSelector::try_from(&api).unwrap_err().to_string(), format!("selector at {expected}"));
    }
}

#[test]
fn converts_to_the_api_type_what_it_can_say() {
    for text in ["", "a=1", "a=1,a=2,b!=3", "a in (1,2),!b,c", "a notin (x)"] {
        let api = ApiLabelSelector::try_from(&selector(text)).unwrap();
        let back = LabelSelector::try_from(&api).unwrap();
        for labels in [&[][..], &[("a", "1")], &[("a", "2"), ("c", "")], &[("b", "3"), ("a", "x")]] {
            let labels = map(labels);
            assert_eq!(back.matches_map(&labels), selector(text).matches_map(&labels), "{text} {labels:?}");
        }
    }
    let error = ApiLabelSelector::try_from(&selector("a>1")).unwrap_err();
    assert_eq!(error.to_string(), "requirement \"a>1\" has no form in matchLabels and matchExpressions");
}

fn any_label_selector() -> impl Strategy<Value = LabelSelector> {
    let key = "([a-z0-9]{1,3}(\\.[a-z]{1,2})?/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,3}[A-Za-z0-9])?";
    let value = "([A-Za-z0-9]([-_.A-Za-z0-9]{0,3}[A-Za-z0-9])?)?";
    let requirement =
        (key, prop::collection::vec(value, 1..4), 0..8, 0..i64::MAX).prop_map(|(key, values, kind, bound)| {
            let first = values[0].clone();
            let none = LabelSelector::new();
            let selector = match kind {
                0 => none.eq(key, first),
                1 => none.ne(key, first),
                2 => none.is_in(key, values),
                3 => none.not_in(key, values),
                4 => none.exists(key),
                5 => none.does_not_exist(key),
                6 => none.greater_than(key, bound),
                _ => none.less_than(key, bound),
            };
            selector.requirements()[0].clone()
        });
    prop::collection::vec(requirement, 0..5)
        .prop_map(|all| all.into_iter().fold(LabelSelector::new(), LabelSelector::with))
}

fn any_field_selector() -> impl Strategy<Value = FieldSelector> {
    let requirement = ("[a-zA-Z.]{1,8}", any::<bool>(), "[a-z,=!\\\\é]{0,6}").prop_map(|(field, equal, value)| {
        let operator = if equal { FieldOperator::Equals } else { FieldOperator::NotEquals };
        FieldRequirement::new(field, operator, value)
    });
    prop::collection::vec(requirement, 0..5)
        .prop_map(|all| all.into_iter().fold(FieldSelector::new(), FieldSelector::with))
}

proptest! {
    #[test]
    fn parses_the_label_selector_it_prints(selector in any_label_selector()) {
        prop_assert_eq!(selector.validate(), Ok(()));
        prop_assert_eq!(selector.to_string().parse::<LabelSelector>(), Ok(selector));
    }

    #[test]
    fn parses_the_field_selector_it_prints(selector in any_field_selector()) {
        prop_assert_eq!(selector.to_string().parse::<FieldSelector>(), Ok(selector));
    }

    #[test]
    fn never_panics_on_any_text(text in "\\PC*", near in "[a-c/., =!()<>\\\\é\t0-9int]{0,20}") {
        for text in [text, near] {
            if let Ok(selector) = text.parse::<LabelSelector>() {
                prop_assert_eq!(selector.to_string().parse::<LabelSelector>(), Ok(selector));
            }
            if let Ok(selector) = text.parse::<FieldSelector>() {
                prop_assert_eq!(selector.to_string().parse::<FieldSelector>(), Ok(selector));
            }
        }
    }
}
