//! Values as JSON. serde_json looks at each byte of a text for characters that need an escape; most texts have none, which a look at many
//! bytes at a time finds out.

use serde_json::Value;

/// Writes a value whose keys are in alphabetical order.
pub(super) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text),
        Value::Array(items) => write_list(out, items, write),
        Value::Object(fields) => {
            let mut object = Object::begin(out);
            for (name, value) in fields {
                write(object.key(name), value);
            }
            object.end();
        }
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        // Memory accepts all writes.
        Value::Number(_) => drop(serde_json::to_writer(out, value)),
    }
}

pub(super) fn write_list(out: &mut Vec<u8>, items: &[Value], mut write: impl FnMut(&mut Vec<u8>, &Value)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let needs_escape = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    // All bytes of a chunk are looked at, without an early end: that is what the compiler makes vectors of.
    let has_escape = |chunk: &[u8]| chunk.iter().fold(false, |found, byte| found | needs_escape(byte));
    if text.as_bytes().chunks(64).any(has_escape) {
        drop(serde_json::to_writer(out, text));
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// An object that is written field by field.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Writes the name of a field, whose value is next.
    pub(super) fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write_text(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![any::<String>(), "[a-z\"\\\\\u{0}-\u{1f}\u{7f}\u{e9}]{0,200}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(text.clone(), inner, 0..4).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_written_as_by_serde_json(value in values()) {
            let mut out = Vec::new();
            write(&mut out, &value);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
