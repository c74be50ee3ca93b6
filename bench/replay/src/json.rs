//! Recorded JSON: splits lists and watches, and inserts placeholders into objects.
//!
//! Text is changed in place, so that clients read the server's bytes. The server writes an object's own name, uid and
//! version before any other.

use anyhow::{Context as _, Result};

use crate::template::{NAME, Template, UID, VERSION};

/// The lines of a watch, each with its line feed.
pub(crate) fn events(body: &[u8]) -> Result<Vec<Vec<u8>>> {
    Ok(std::str::from_utf8(body)?.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect())
}

/// Returns whether an event has a type.
pub(crate) fn is_of_type(event: &[u8], kind: &str) -> bool {
    event.starts_with(format!(r#"{{"type":"{kind}","#).as_bytes())
}

/// Returns the items of a list.
pub(crate) fn items(body: &[u8]) -> Result<Vec<Vec<u8>>> {
    let text = std::str::from_utf8(body)?;
    let mut rest = text.split_once(r#""items":["#).context("no items")?.1;
    let mut items = Vec::new();
    while rest.starts_with('{') {
        let (object, after) = rest.split_at(object_length(rest).context("an item does not end")?);
        items.push(object.as_bytes().to_vec());
        rest = after.trim_start_matches(',');
    }
    Ok(items)
}

/// Returns the object of an event.
pub(crate) fn object(event: &[u8]) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(event)?;
    let object = text.split_once(r#""object":"#).context("no object")?.1;
    Ok(object.as_bytes()[..object_length(object).context("the object does not end")?].to_vec())
}

/// Creates a template from an object or an event.
pub(crate) fn template(object: &[u8]) -> Result<Template> {
    let text = std::str::from_utf8(object)?;
    let (before, metadata) = text.split_at(text.find(r#""metadata":{"#).context("no metadata")?);
    let metadata = replace(metadata, "name", NAME)?;
    let metadata = replace(&metadata, "uid", UID)?;
    Template::object(format!("{before}{}", replace(&metadata, "resourceVersion", VERSION)?).into_bytes())
}

pub(crate) fn bookmark(event: &[u8]) -> Result<Template> {
    Template::bookmark(replace(std::str::from_utf8(event)?, "resourceVersion", VERSION)?.into_bytes())
}

/// Replaces the first value of a member.
fn replace(text: &str, name: &str, value: &str) -> Result<String> {
    let start = format!(r#""{name}":""#);
    let (before, rest) = text.split_once(&start).with_context(|| format!("no {name}"))?;
    let (_, after) = rest.split_once('"').context("no end of a string")?;
    Ok(format!(r#"{before}{start}{value}"{after}"#))
}

/// Returns the length of the object at the start of a text.
fn object_length(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str =
        r#"{"metadata":{"name":"web-000001","uid":"ab","resourceVersion":"7","labels":{"a":"}\""}},"spec":{}}"#;

    #[test]
    fn takes_a_list_apart() {
        let list = format!(r#"{{"kind":"PodList","metadata":{{}},"items":[{POD},{POD}]}}"#);
        assert_eq!(items(list.as_bytes()).unwrap(), vec![POD.as_bytes(); 2]);
    }

    #[test]
    fn an_event_gets_places_and_keeps_the_rest() {
        let event = format!(r#"{{"type":"ADDED","object":{POD}}}{}"#, "\n");
        assert!(is_of_type(event.as_bytes(), "ADDED") && !is_of_type(event.as_bytes(), "MODIFIED"));
        assert_eq!(object(event.as_bytes()).unwrap(), POD.as_bytes());
        let mut out = Vec::new();
        template(event.as_bytes()).unwrap().write(3, 1_000_000_005, &mut out);
        let expected = event
            .replace("web-000001", "web-000003")
            .replace("\"ab\"", "\"00000000-0000-4000-8000-000000000003\"")
            .replace("\"7\"", "\"1000000005\"");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
