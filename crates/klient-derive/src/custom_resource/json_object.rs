//! The JSON objects that `printcolumn` and `scale` accept as a string: flat, with strings, integers and null.

use std::collections::BTreeMap;

/// A value of the object.
#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Text(String),
    Integer(i32),
    Null,
}

/// Parses an object; the error says what is wrong.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Json>, String> {
    let mut rest = Rest(text.trim());
    let mut object = BTreeMap::new();
    rest.expect('{')?;
    while !rest.takes('}') {
        let name = rest.string()?;
        rest.expect(':')?;
        object.insert(name, rest.value()?);
        if !rest.takes(',') {
            rest.expect('}')?;
            break;
        }
    }
    if rest.0.is_empty() { Ok(object) } else { Err(format!("unexpected text after the JSON object: {}", rest.0)) }
}

struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn takes(&mut self, wanted: char) -> bool {
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.takes(wanted) {
            Ok(())
        } else {
            Err(format!("expected `{wanted}` in the JSON object, at `{}`", self.0))
        }
    }

    fn value(&mut self) -> Result<Json, String> {
        if self.0.starts_with('"') {
            return self.string().map(Json::Text);
        }
        let end = self.0.find([',', '}']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        match word.trim() {
            "null" => Ok(Json::Null),
            word => {
                word.parse().map(Json::Integer).map_err(|_| format!("expected a string or an integer, found `{word}`"))
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.0.char_indices();
        if characters.next().map(|(_, first)| first) != Some('"') {
            return Err(format!("expected a string in the JSON object, at `{}`", self.0));
        }
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = self.0[at + 1..].trim_start();
                    return Ok(text);
                }
                '\\' => match characters.next().map(|(_, escaped)| escaped) {
                    Some(escaped @ ('"' | '\\' | '/')) => text.push(escaped),
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    _ => return Err("unsupported escape in the JSON object".to_owned()),
                },
                other => text.push(other),
            }
        }
        Err("unterminated string in the JSON object".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_object_has_strings_integers_and_null() {
        let object =
            parse(r#" {"name":"A \"b\"", "priority" : 1, "format": null, "jsonPath":".a[?(@.b=='c')]" } "#).unwrap();
        assert_eq!(object["name"], Json::Text("A \"b\"".to_owned()));
        assert_eq!((&object["priority"], &object["format"]), (&Json::Integer(1), &Json::Null));
        assert_eq!(object["jsonPath"], Json::Text(".a[?(@.b=='c')]".to_owned()));
        assert!(parse("{}").unwrap().is_empty());
        for wrong in ["", "[]", "{", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":"b"} c"#, r#"{"a":"b"#, r#"{"a":[1]}"#] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
