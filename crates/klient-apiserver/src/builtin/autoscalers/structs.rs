//! The Go structs in annotations of autoscalers: their fields in Go's order, and where version v2 has each of them.

/// A field of a Go struct.
pub(super) struct Field {
    /// The name in JSON.
    pub(super) name: &'static str,
    /// The path in version v2.
    pub(super) at: &'static [&'static str],
    pub(super) kind: Kind,
    pub(super) empty: Empty,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Number,
    Quantity,
    Time,
    Texts,
    TextMap,
    Struct(&'static [Field]),
    List(&'static [Field]),
}

/// How Go writes a field without a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// As the zero value of its type.
    Zero,
    /// Not at all. An empty text or list has no value.
    Omitted,
    /// Not at all. An empty text is a value.
    Absent,
    /// As null.
    Null,
}

/// A metric that an autoscaler aims at.
pub(super) static METRICS: [Field; 6] = [
    zero("type", &["type"], Kind::Text),
    absent("object", &["object"], Kind::Struct(&OBJECT)),
    absent("pods", &["pods"], Kind::Struct(&PODS)),
    absent("resource", &["resource"], Kind::Struct(&RESOURCE)),
    absent("containerResource", &["containerResource"], Kind::Struct(&CONTAINER)),
    absent("external", &["external"], Kind::Struct(&EXTERNAL)),
];

/// A metric that an autoscaler has measured.
pub(super) static CURRENT_METRICS: [Field; 6] = [
    zero("type", &["type"], Kind::Text),
    absent("object", &["object"], Kind::Struct(&CURRENT_OBJECT)),
    absent("pods", &["pods"], Kind::Struct(&CURRENT_PODS)),
    absent("resource", &["resource"], Kind::Struct(&CURRENT_RESOURCE)),
    absent("containerResource", &["containerResource"], Kind::Struct(&CURRENT_CONTAINER)),
    absent("external", &["external"], Kind::Struct(&CURRENT_EXTERNAL)),
];

/// A condition.
pub(super) static CONDITIONS: [Field; 5] = [
    zero("type", &["type"], Kind::Text),
    zero("status", &["status"], Kind::Text),
    zero("lastTransitionTime", &["lastTransitionTime"], Kind::Time),
    omitted("reason", &["reason"], Kind::Text),
    omitted("message", &["message"], Kind::Text),
];

/// The behavior, which has the names of Go's fields, because the real server writes it in a form that has no names in JSON.
pub(super) static BEHAVIOR: [Field; 2] =
    [null("ScaleUp", &["scaleUp"], Kind::Struct(&SCALING)), null("ScaleDown", &["scaleDown"], Kind::Struct(&SCALING))];

static SCALING: [Field; 4] = [
    null("StabilizationWindowSeconds", &["stabilizationWindowSeconds"], Kind::Number),
    null("SelectPolicy", &["selectPolicy"], Kind::Text),
    null("Policies", &["policies"], Kind::List(&POLICY)),
    null("Tolerance", &["tolerance"], Kind::Quantity),
];

static POLICY: [Field; 3] = [
    zero("Type", &["type"], Kind::Text),
    zero("Value", &["value"], Kind::Number),
    zero("PeriodSeconds", &["periodSeconds"], Kind::Number),
];

static OBJECT: [Field; 5] = [
    zero("target", &["describedObject"], Kind::Struct(&REFERENCE)),
    zero("metricName", &["metric", "name"], Kind::Text),
    zero("targetValue", &["target", "value"], Kind::Quantity),
    absent("selector", &["metric", "selector"], Kind::Struct(&SELECTOR)),
    absent("averageValue", &["target", "averageValue"], Kind::Quantity),
];

static PODS: [Field; 3] = [
    zero("metricName", &["metric", "name"], Kind::Text),
    zero("targetAverageValue", &["target", "averageValue"], Kind::Quantity),
    absent("selector", &["metric", "selector"], Kind::Struct(&SELECTOR)),
];

static RESOURCE: [Field; 3] = [
    zero("name", &["name"], Kind::Text),
    absent("targetAverageUtilization", &["target", "averageUtilization"], Kind::Number),
    absent("targetAverageValue", &["target", "averageValue"], Kind::Quantity),
];

static CONTAINER: [Field; 4] = [
    zero("name", &["name"], Kind::Text),
    absent("targetAverageUtilization", &["target", "averageUtilization"], Kind::Number),
    absent("targetAverageValue", &["target", "averageValue"], Kind::Quantity),
    zero("container", &["container"], Kind::Text),
];

static EXTERNAL: [Field; 4] = [
    zero("metricName", &["metric", "name"], Kind::Text),
    absent("metricSelector", &["metric", "selector"], Kind::Struct(&SELECTOR)),
    absent("targetValue", &["target", "value"], Kind::Quantity),
    absent("targetAverageValue", &["target", "averageValue"], Kind::Quantity),
];

static CURRENT_OBJECT: [Field; 5] = [
    zero("target", &["describedObject"], Kind::Struct(&REFERENCE)),
    zero("metricName", &["metric", "name"], Kind::Text),
    zero("currentValue", &["current", "value"], Kind::Quantity),
    absent("selector", &["metric", "selector"], Kind::Struct(&SELECTOR)),
    absent("averageValue", &["current", "averageValue"], Kind::Quantity),
];

static CURRENT_PODS: [Field; 3] = [
    zero("metricName", &["metric", "name"], Kind::Text),
    zero("currentAverageValue", &["current", "averageValue"], Kind::Quantity),
    absent("selector", &["metric", "selector"], Kind::Struct(&SELECTOR)),
];

static CURRENT_RESOURCE: [Field; 3] = [
    zero("name", &["name"], Kind::Text),
    absent("currentAverageUtilization", &["current", "averageUtilization"], Kind::Number),
    zero("currentAverageValue", &["current", "averageValue"], Kind::Quantity),
];

static CURRENT_CONTAINER: [Field; 4] = [
    zero("name", &["name"], Kind::Text),
    absent("currentAverageUtilization", &["current", "averageUtilization"], Kind::Number),
    zero("currentAverageValue", &["current", "averageValue"], Kind::Quantity),
    zero("container", &["container"], Kind::Text),
];

static CURRENT_EXTERNAL: [Field; 4] = [
    zero("metricName", &["metric", "name"], Kind::Text),
    absent("metricSelector", &["metric", "selector"], Kind::Struct(&SELECTOR)),
    zero("currentValue", &["current", "value"], Kind::Quantity),
    absent("currentAverageValue", &["current", "averageValue"], Kind::Quantity),
];

static REFERENCE: [Field; 3] = [
    zero("kind", &["kind"], Kind::Text),
    zero("name", &["name"], Kind::Text),
    omitted("apiVersion", &["apiVersion"], Kind::Text),
];

static SELECTOR: [Field; 2] = [
    omitted("matchLabels", &["matchLabels"], Kind::TextMap),
    omitted("matchExpressions", &["matchExpressions"], Kind::List(&REQUIREMENT)),
];

static REQUIREMENT: [Field; 3] = [
    zero("key", &["key"], Kind::Text),
    zero("operator", &["operator"], Kind::Text),
    omitted("values", &["values"], Kind::Texts),
];

const fn zero(name: &'static str, at: &'static [&'static str], kind: Kind) -> Field {
    Field { name, at, kind, empty: Empty::Zero }
}

const fn omitted(name: &'static str, at: &'static [&'static str], kind: Kind) -> Field {
    Field { name, at, kind, empty: Empty::Omitted }
}

const fn absent(name: &'static str, at: &'static [&'static str], kind: Kind) -> Field {
    Field { name, at, kind, empty: Empty::Absent }
}

const fn null(name: &'static str, at: &'static [&'static str], kind: Kind) -> Field {
    Field { name, at, kind, empty: Empty::Null }
}
