//! Results and errors of evaluations.

use klient_cel::{AccessQuery, Authorizer, Budget, CelValue, Decision, Expression, Variables, from_cel, to_cel};
use proptest::prelude::*;
use serde_json::{Value, json};

fn variables() -> Variables<'static> {
    let object = json!({
        "replicas": 3, "name": "web", "ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}],
        "labels": {"app": "web", "tier": "front"}, "empty": [], "ratio": 0.5, "nothing": null,
    });
    let mut variables = Variables::new();
    variables.set("self", to_cel(&object, &Value::Null));
    variables
}

fn evaluate(text: &str) -> Result<CelValue, String> {
    let expression = Expression::parse(text).map_err(|error| error.to_string())?;
    expression.evaluate(&variables(), &mut Budget::new(1_000_000)).map_err(|error| error.to_string())
}

#[test]
fn call_with_too_few_arguments_is_an_error() {
    let functions =
        ["string", "ip", "cidr", "reverse", "quantity", "semver", "url", "validate", "containsIP", "contains"];
    let methods =
        ["containsIP", "containsCIDR", "contains", "matches", "validate", "replace", "fieldSelector", "slice"];
    let calls = functions.map(|name| format!("{name}() == 1")).into_iter();
    for text in calls.chain(methods.map(|name| format!("self.name.{name}() == 1"))) {
        assert!(evaluate(&text).is_err(), "{text}");
    }
}

#[test]
fn expressions_are_true() {
    for text in [
        "self.replicas == 3 && self.replicas < 4 && self.replicas >= 3u && 3.0 == 3",
        "has(self.name) && !has(self.absent)",
        "self.ports.all(p, p.port > 0) && self.ports.exists(p, p.name == 'http')",
        "self.ports.exists_one(p, p.port == 80) && self.ports.filter(p, p.port > 100).size() == 1",
        "self.ports.map(p, p.port) == [80, 9090] && self.ports.map(p, p.port > 100, p.name) == ['metrics']",
        "self.labels.all(key, key in ['app', 'tier']) && 'app' in self.labels && self.labels['app'] == 'web'",
        "size(self.labels) == 2 && self.name.size() == 3 && size('über') == 4",
        "self.ports.sortBy(p, p.name)[0].port == 80 && [3, 1, 2].sortBy(x, -x) == [3, 2, 1]",
        "[1, 2, 3].all(i, v, v == i + 1) && self.labels.exists(k, v, k == 'app' && v == 'web')",
        "[1, 2].transformList(i, v, i * v) == [0, 2] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "self.?absent.orValue('x') == 'x' && self.?name.hasValue() && self.?labels.?app.value() == 'web'",
        "self.?name.optMap(n, n + '!').orValue('') == 'web!' && optional.none().or(optional.of(1)).value() == 1",
        "[1, ?optional.none(), 2] == [1, 2] && {'a': 1, ?'b': optional.none()} == {'a': 1}",
        "self.name.startsWith('w') && self.name.matches('^[a-z]+$') && 'a,b'.split(',') == ['a', 'b']",
        "quantity('1Gi').isGreaterThan(quantity('500Mi')) && isQuantity('10m') && !isQuantity('x')",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isURL('https://example.com/x')",
        "url('https://example.com:8443/x').getHostname() == 'example.com'",
        "duration('1h') > duration('59m') && timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')",
        "type(self.replicas) == int && type(self.name) == string && type(self.ports) == list && type(null) == null_type",
        "(1 / 0 > 1) || true",
        "!(false && self.absent)",
        "self.replicas > 2 ? true : self.absent",
        "self.nothing == null && self.empty == [] && self.ratio < 1",
        "int('5') + 1 == 6 && string(7) == '7' && double('1.5') == 1.5 && bool('true') && dyn(1) == 1",
        "optional.of(1).orValue(1 / 0) == 1 && optional.none().or(optional.of(2)).orValue(0) == 2",
        "'%s has %d'.format([self.name, self.replicas]) == 'web has 3' && 'TacoCat'.lowerAscii() == 'tacocat'",
        "sets.contains([1, 2, 3], [2]) && math.greatest(1, 5, 3) == 5 && base64.decode('aGk=') == b'hi'",
        "[1, 2, 2].distinct() == [1, 2] && [[1], [2]].flatten() == [1, 2] && [3, 1].sort() == [1, 3] && [1, 2].sum() == 3",
        "!format.dns1123Label().validate('web').hasValue() && 'a.b'.replace('.', '-') == 'a-b' && ['a'].join(',') == 'a'",
    ] {
        assert_eq!(evaluate(text), Ok(true.into()), "{text}");
    }
}

#[test]
fn errors_are_those_of_the_real_server() {
    for (text, error) in [
        ("self.absent", "no such key: absent"),
        ("self.labels['absent']", "no such key: absent"),
        ("self.ports[2]", "index out of bounds: 2"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("self.name + 1", "no such overload"),
        ("self.name < 1", "no such overload"),
        ("self.replicas.startsWith('a')", "no such overload"),
        ("self.replicas && true", "no such overload"),
        ("self.ports.all(p, p.absent)", "no such key: absent"),
        ("optional.none().value()", "optional.none() dereference"),
        ("[1, 1].transformMapEntry(i, v, {v: i})", "insert failed: key 1 already exists"),
        ("[1, 1].transformMapEntry(i, v, {'c': i, 'a': i, 'b': i})", "insert failed: key a already exists"),
        ("unknown", "no such attribute(s): unknown"),
    ] {
        assert_eq!(evaluate(text), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn expensive_expression_is_stopped() {
    let many = "[0,1,2,3,4,5,6,7,8,9]";
    let bomb = format!(
        "{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, {many}.all(f, a+b+c+d+e+f >= 0))))))"
    );
    let expression = Expression::parse(&bomb).unwrap();
    let mut budget = Budget::new(1_000_000);
    let error = expression.evaluate(&Variables::new(), &mut budget).unwrap_err();
    assert!(error.is_too_expensive());
    assert_eq!(error.to_string(), "operation cancelled: actual cost limit exceeded");
    assert_eq!(budget.left(), 0);
    let long = format!("'{}' + '{}' != ''", "x".repeat(10_000), "y".repeat(10_000));
    let error = Expression::parse(&long).unwrap().evaluate(&Variables::new(), &mut Budget::new(1_000)).unwrap_err();
    assert!(error.is_too_expensive());
}

#[test]
fn deep_expression_is_an_error_and_not_a_crash() {
    for levels in [30, 100, 10_000] {
        for (open, inner, close) in
            [("(", "1", ")"), ("[", "1", "]"), ("!", "true", ""), ("-", "1", ""), ("size([", "1", "])")]
        {
            let deep = format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
            match Expression::parse(&deep) {
                Ok(expression) => drop(expression.evaluate(&Variables::new(), &mut Budget::new(100_000))),
                Err(_) => assert!(levels > 30 || open == "size([", "{deep}"),
            }
        }
        for operator in ["+", "&&", "==", "."] {
            let long = vec!["a"; levels].join(operator);
            if let Ok(expression) = Expression::parse(&long) {
                drop(expression.evaluate(&Variables::new(), &mut Budget::new(100_000)));
            }
        }
    }
}

#[test]
fn expressions_of_policies_read_earlier_ones() {
    let parse = |text: &str| Expression::parse(text).unwrap();
    let composed = [("a".to_owned(), parse("self.replicas")), ("b".to_owned(), parse("variables.a + 1"))];
    let total = variables().with_expressions(&composed, |variables| {
        parse("variables.b * 10").evaluate(variables, &mut Budget::new(1_000)).map_err(|error| error.to_string())
    });
    assert_eq!(total, Ok(40.into()));
    let reversed = [composed[1].clone(), composed[0].clone()];
    let error = variables().with_expressions(&reversed, |variables| {
        parse("variables.b").evaluate(variables, &mut Budget::new(1_000)).unwrap_err()
    });
    assert_eq!(error.to_string(), "no such attribute(s): variables");
}

#[test]
fn authorizer_is_asked() {
    let request = AccessQuery { resource: "pods".to_owned(), namespace: "shop".to_owned(), ..AccessQuery::default() };
    let authorizer = Authorizer::new(request, |query| {
        let allowed =
            query.resource == "pods" && query.verb == "get" && query.namespace == "shop" || query.path.is_some();
        Decision { allowed, reason: format!("asked for {}", query.verb), ..Decision::default() }
    });
    let mut variables = Variables::new();
    variables.set("authorizer", authorizer.into());
    for (text, expected) in [
        ("authorizer.group('').resource('pods').namespace('shop').check('get').allowed()", true),
        ("authorizer.group('').resource('pods').namespace('shop').check('delete').allowed()", false),
        ("authorizer.requestResource.check('get').allowed()", true),
        ("authorizer.requestResource.check('delete').reason() == 'asked for delete'", true),
        ("authorizer.path('/healthz').check('get').allowed()", true),
    ] {
        let value = Expression::parse(text).unwrap().evaluate(&variables, &mut Budget::new(1_000_000));
        assert_eq!(value, Ok(expected.into()), "{text}");
    }
    let twice = "authorizer.path('/a').check('get').allowed() && authorizer.path('/b').check('get').allowed()";
    let error = Expression::parse(twice).unwrap().evaluate(&variables, &mut Budget::new(500_000)).unwrap_err();
    assert!(error.is_too_expensive());
}

proptest! {
    #[test]
    fn values_survive_the_way_there_and_back(number in any::<i64>(), name in "[a-z_.\\-/]{0,8}", text in ".{0,8}") {
        let properties = json!({name.clone(): {"type": "string"}, "n": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties});
        let object = json!({name: text, "n": number});
        prop_assert_eq!(from_cel(&to_cel(&object, &schema)), Some(object));
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9.()\\[\\]{}?:!&|+*/%<>=' ,_-]{0,40}") {
        if let Ok(expression) = Expression::parse(&text) {
            drop(expression.evaluate(&variables(), &mut Budget::new(10_000)));
        }
    }
}
