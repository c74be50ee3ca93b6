//! The text of field sets: `fieldsV1`.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{element::PathElement, set::FieldSet, value};

/// An error in the text of a field set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFieldSetError {
    reason: String,
}

impl ParseFieldSetError {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for ParseFieldSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid fieldsV1: {}", self.reason)
    }
}

impl std::error::Error for ParseFieldSetError {}

impl FieldSet {
    /// Parses the value of `fieldsV1`.
    ///
    /// Elements of an unknown kind are left out, as in Go.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not an object of objects, or if a name is not a path element.
    pub fn from_value(value: &Value) -> Result<Self, ParseFieldSetError> {
        Ok(read(value)?.0.unwrap_or_default())
    }

    /// Returns the value of `fieldsV1`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, is_member: bool) -> Map<String, Value> {
        let mut out = Map::new();
        if is_member {
            out.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            out.insert(element_text(element), Value::Object(child.to_map(self.has_member(element))));
        }
        for member in self.members.iter().filter(|member| self.child(member).is_none()) {
            out.insert(element_text(member), Value::Object(Map::new()));
        }
        out
    }

    fn write(&self, out: &mut String, is_member: bool) {
        out.push('{');
        let mut first = true;
        let mut name = |out: &mut String, text: Name<'_>| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            match text {
                Name::This => out.push_str("\".\""),
                // Most names need no escapes.
                Name::Of(PathElement::Field(field)) if is_plain(field) => {
                    out.push_str("\"f:");
                    out.push_str(field);
                    out.push('"');
                }
                Name::Of(element) => value::write_json_string(out, &element_text(element)),
            }
            out.push(':');
        };
        if is_member {
            name(out, Name::This);
            out.push_str("{}");
        }
        let (mut members, mut children) = (self.members.iter().peekable(), self.children.iter().peekable());
        loop {
            let order = match (members.peek(), children.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(member), Some((element, _))) => (*member).cmp(element),
            };
            let member = if order.is_le() { members.next() } else { None };
            let child = if order.is_ge() { children.next() } else { None };
            match (member, child) {
                (member, Some((element, child))) => {
                    name(out, Name::Of(element));
                    child.write(out, member.is_some());
                }
                (Some(member), None) => {
                    name(out, Name::Of(member));
                    out.push_str("{}");
                }
                (None, None) => break,
            }
        }
        out.push('}');
    }
}

/// Prints the text of `fieldsV1` in its canonical order.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out, false);
        f.write_str(&out)
    }
}

/// The name of a node: its own place, or the path element that leads to it.
enum Name<'a> {
    This,
    Of(&'a PathElement),
}

/// Returns whether a name is the same in JSON.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&'))
}

impl FromStr for FieldSet {
    type Err = ParseFieldSetError;

    fn from_str(text: &str) -> Result<Self, ParseFieldSetError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        if let Ok((set, _)) = Node.deserialize(&mut deserializer)
            && deserializer.end().is_ok()
        {
            return Ok(set.unwrap_or_default());
        }
        // The value tells what is wrong.
        let value = serde_json::from_str(text).map_err(|error| ParseFieldSetError::new(error.to_string()))?;
        Self::from_value(&value)
    }
}

/// Reads a node without a tree of values in between. Gives what [`read`] gives.
struct Node;

impl<'de> DeserializeSeed<'de> for Node {
    type Value = (Option<FieldSet>, bool);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node {
    type Value = (Option<FieldSet>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((None, true))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut is_member = false;
        let mut set: Option<FieldSet> = None;
        while let Some(name) = fields.next_key_seed(NodeName)? {
            if name == "." {
                fields.next_value::<serde::de::IgnoredAny>()?;
                is_member = true;
                continue;
            }
            let Some(element) = parse_element(&name).map_err(|error| A::Error::custom(error.reason))? else {
                fields.next_value::<serde::de::IgnoredAny>()?;
                continue;
            };
            let (below, is_inner_member) = fields.next_value_seed(Self)?;
            add(set.get_or_insert_default(), element, below, is_inner_member);
        }
        let is_member = is_member || set.is_none();
        Ok((set, is_member))
    }
}

/// Reads a name, without a copy where it has no escapes.
struct NodeName;

impl<'de> DeserializeSeed<'de> for NodeName {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NodeName {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path element")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// Adds a node, or a member, or both.
fn add(set: &mut FieldSet, element: PathElement, below: Option<FieldSet>, is_member: bool) {
    match below {
        Some(below) => {
            if is_member {
                set.insert_member(element.clone());
            }
            set.insert_child(element, below);
        }
        None if is_member => set.insert_member(element),
        None => {}
    }
}

/// Returns the nodes below a value, and whether the value itself is a member.
fn read(value: &Value) -> Result<(Option<FieldSet>, bool), ParseFieldSetError> {
    let fields = match value {
        Value::Null => return Ok((None, true)),
        Value::Object(fields) => fields,
        other => return Err(ParseFieldSetError::new(format!("expected an object, found {}", value::go_type(other)))),
    };
    let mut is_member = false;
    let mut set: Option<FieldSet> = None;
    for (name, inner) in fields {
        if name == "." {
            is_member = true;
            continue;
        }
        let Some(element) = parse_element(name)? else { continue };
        let (below, is_inner_member) = read(inner)?;
        add(set.get_or_insert_default(), element, below, is_inner_member);
    }
    let is_member = is_member || set.is_none();
    Ok((set, is_member))
}

/// Parses the text of a path element. Returns nothing for an element of an unknown kind.
fn parse_element(text: &str) -> Result<Option<PathElement>, ParseFieldSetError> {
    if text.len() < 2 {
        return Err(ParseFieldSetError::new(format!("path element {text:?} is shorter than two characters")));
    }
    let Some((kind, rest)) = text.split_at_checked(1).and_then(|(kind, rest)| Some((kind, rest.strip_prefix(':')?)))
    else {
        return Err(ParseFieldSetError::new(format!("path element {text:?} has no colon")));
    };
    let json = || -> Result<Value, ParseFieldSetError> {
        let value = serde_json::from_str(rest)
            .map_err(|error| ParseFieldSetError::new(format!("path element {text:?}: {error}")))?;
        Ok(with_floats(value))
    };
    Ok(Some(match kind {
        "f" => PathElement::Field(rest.to_owned()),
        "v" => PathElement::Value(json()?),
        "k" => match json()? {
            Value::Object(fields) => PathElement::key(fields),
            Value::Null => PathElement::Key(Vec::new()),
            _ => return Err(ParseFieldSetError::new(format!("path element {text:?} is not an object"))),
        },
        "i" => PathElement::Index(
            rest.parse().map_err(|_| ParseFieldSetError::new(format!("path element {text:?} is not a number")))?,
        ),
        _ => return Ok(None),
    }))
}

/// Returns a value with all numbers as floats, as Go reads JSON. Messages show it.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) => Value::from(float),
            None => Value::Number(number),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(with_floats).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, with_floats(value))).collect())
        }
        other => other,
    }
}

/// Returns the text of a path element.
pub(super) fn element_text(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(fields) => {
            let mut out = "k:{".to_owned();
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                value::write_json_string(&mut out, name);
                out.push(':');
                value::write_json(&mut out, value);
            }
            out.push('}');
            out
        }
        PathElement::Value(value) => {
            let mut out = "v:".to_owned();
            value::write_json(&mut out, value);
            out
        }
        PathElement::Index(index) => format!("i:{index}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_printed_as_it_was_parsed() {
        for text in [
            "{}",
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}},"f:c":{"k:{\"name\":\"x\",\"port\":80}":{".":{},"f:d":{}}}}"#,
            r#"{"f:finalizers":{"v:\"a\"":{},"v:\"b\"":{}}}"#,
            r#"{"f:l":{"i:0":{},"i:10":{}}}"#,
        ] {
            let set: FieldSet = text.parse().unwrap();
            assert_eq!(set.to_string(), text);
            assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set);
            assert_eq!(FieldSet::from_value(&serde_json::from_str(text).unwrap()).unwrap(), set);
        }
    }

    #[test]
    fn text_is_put_into_canonical_order() {
        let set: FieldSet = r#"{"k:{\"port\":443}":{},"k:{\"port\":80}":{},"f:b":{},"f:a":null}"#.parse().unwrap();
        assert_eq!(set.to_string(), r#"{"f:a":{},"f:b":{},"k:{\"port\":80}":{},"k:{\"port\":443}":{}}"#);
    }

    #[test]
    fn html_is_escaped_in_values_and_not_in_names() {
        let mut set = FieldSet::new();
        set.insert(&[PathElement::field("a<b"), PathElement::Value(Value::from("a<b"))]);
        let Value::Object(fields) = set.to_value() else { panic!("not an object") };
        assert!(fields["f:a<b"].get(r#"v:"a\u003cb""#).is_some(), "{fields:?}");
    }

    #[test]
    fn malformed_elements_are_errors_and_unknown_ones_are_left_out() {
        for text in [
            r#"{"a":{}}"#,
            r#"{"fa":{}}"#,
            r#"{"v:x":{}}"#,
            r#"{"k:1":{}}"#,
            r#"{"i:x":{}}"#,
            "[]",
            "1",
            r#"{"f:a":1}"#,
        ] {
            assert!(text.parse::<FieldSet>().is_err(), "{text}");
        }
        assert!(r#"{"x:a":{"f:b":{}}}"#.parse::<FieldSet>().unwrap().is_empty());
        assert!(r#"{".":{}}"#.parse::<FieldSet>().unwrap().is_empty());
    }
}
