//! The field sets of `managedFields`: JSON in which every value is an object.
//!
//! They are half of a typical object, so they have their own reader. It reads only the format that servers write, and
//! leaves everything else, errors included, to the general one. The result is always the same.

use serde_json::{Map, Value};

/// Reads a field set; `None` if it is anything but nested objects without white space.
pub(super) fn read(bytes: &[u8]) -> Option<Value> {
    // Checked once for all keys.
    let text = std::str::from_utf8(bytes).ok()?;
    let mut reader = FieldSet { text, at: 0 };
    let set = reader.object(MAX_DEPTH)?;
    (reader.at == bytes.len()).then_some(set)
}

struct FieldSet<'a> {
    text: &'a str,
    at: usize,
}

impl FieldSet<'_> {
    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take(b'{')?;
        let mut members = Map::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(Value::Object(members));
        }
        let depth = depth.checked_sub(1)?;
        loop {
            let key = self.key()?;
            self.take(b':')?;
            members.insert(key, self.object(depth)?);
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(Value::Object(members));
                }
                _ => return None,
            }
        }
    }

    /// Reads a quoted key. The keys of list items are quoted JSON, and so contain escaped quotes.
    fn key(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut key = String::new();
        let mut start = self.at;
        loop {
            match self.peek()? {
                b'"' => {
                    key.push_str(self.text.get(start..self.at)?);
                    self.at += 1;
                    return Some(key);
                }
                b'\\' => {
                    let escaped = *self.text.as_bytes().get(self.at + 1)?;
                    if !matches!(escaped, b'"' | b'\\') {
                        return None;
                    }
                    if key.is_empty() {
                        // More escapes will follow, so memory for all of them is reserved.
                        key.reserve(ESCAPED_KEY);
                    }
                    key.push_str(self.text.get(start..self.at)?);
                    // An escaped byte is copied as it is, as the first byte of the next part.
                    start = self.at + 1;
                    self.at += 2;
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

/// The depth of the general reader, without the innermost object, which is empty.
const MAX_DEPTH: usize = 126;
/// Longer than most keys with escapes.
const ESCAPED_KEY: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    fn general(text: &str) -> Option<Value> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn field_sets_of_servers_are_read() {
        for text in [
            r#"{}"#,
            r#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{}}}"#,
            r#"{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}"#,
            r#"{"v:\"a\\b\"":{},"\\":{},"f:grün":{}}"#,
            r#"{"f:a":{"f:b":{}},"f:a":{}}"#,
        ] {
            let read = read(text.as_bytes());
            assert!(read.is_some(), "{text}");
            assert_eq!(read, general(text), "{text}");
        }
    }

    #[test]
    fn other_json_is_left_to_the_general_reader() {
        let deep = |depth: usize| "{\"f:a\":".repeat(depth) + "{}" + &"}".repeat(depth);
        for text in
            ["", "{", "{}{}", "{} ", "null", "[]", "{\"a\":1}", "{\"a\":{},}", "{\"\\n\":{}}", "{\"\n\":{}}", "{\"a\"}"]
        {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read(b"{\"\xff\":{}}"), None);
        for depth in [100, 126, 127, 128, 200] {
            let text = deep(depth);
            assert_eq!(read(text.as_bytes()), general(&text), "{depth}");
        }
        assert_eq!(read(deep(100_000).as_bytes()), None);
    }
}
