//! Goes through the members of an object or the items of an array, as pieces of the text.

use std::borrow::Cow;

use super::{skip_whitespace, unquote, value_end};
use crate::error::{DecodeError, Problem};

/// One member of an object.
pub(crate) struct Member<'a> {
    /// The key, unescaped.
    pub(crate) key: Cow<'a, str>,
    /// The value's text.
    pub(crate) value: &'a [u8],
    /// Where the key's opening quote is.
    pub(crate) key_start: usize,
    /// Where the value starts.
    pub(crate) value_start: usize,
}

/// The members of the object that is `text`, with optional white space around.
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Start,
    AfterItem,
    Done,
}

impl<'a> Members<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0, state: State::Start }
    }

    /// The next member; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, DecodeError> {
        if !step(self.text, &mut self.at, &mut self.state, (b'{', b'}'))? {
            return Ok(None);
        }
        let key_start = self.at;
        let key_end = match self.text.get(key_start) {
            Some(b'"') => value_end(self.text, key_start),
            _ => None,
        };
        let key_end = key_end.ok_or_else(|| malformed("expected a key", key_start))?;
        let key = unquote(&self.text[key_start..key_end]).ok_or_else(|| malformed("malformed key", key_start))?;
        let colon = skip_whitespace(self.text, key_end);
        if self.text.get(colon) != Some(&b':') {
            return Err(malformed("expected `:`", colon));
        }
        let value_start = skip_whitespace(self.text, colon + 1);
        let end = value_end(self.text, value_start).ok_or_else(|| malformed("expected a value", value_start))?;
        self.at = end;
        Ok(Some(Member { key, value: &self.text[value_start..end], key_start, value_start }))
    }

    /// The value of the first member with this key.
    pub(crate) fn find(mut self, key: &str) -> Result<Option<&'a [u8]>, DecodeError> {
        while let Some(member) = self.next()? {
            if member.key == key {
                return Ok(Some(member.value));
            }
        }
        Ok(None)
    }
}

/// The items of the array that is `text`.
pub(crate) struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

impl<'a> Elements<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0, state: State::Start }
    }

    /// The next item's text; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        if !step(self.text, &mut self.at, &mut self.state, (b'[', b']'))? {
            return Ok(None);
        }
        let end = value_end(self.text, self.at).ok_or_else(|| malformed("expected a value", self.at))?;
        let value = &self.text[self.at..end];
        self.at = end;
        Ok(Some(value))
    }
}

/// Moves to the next item: past the opening bracket or the comma. False after the closing bracket.
fn step(text: &[u8], at: &mut usize, state: &mut State, (open, close): (u8, u8)) -> Result<bool, DecodeError> {
    *at = skip_whitespace(text, *at);
    let first = *state == State::Start;
    match (&*state, text.get(*at)) {
        (State::Done, _) => return Ok(false),
        (State::Start, Some(&byte)) if byte == open => *at = skip_whitespace(text, *at + 1),
        (State::AfterItem, Some(b',')) => {
            *at = skip_whitespace(text, *at + 1);
            return Ok(true);
        }
        (State::AfterItem, Some(&byte)) if byte == close => {}
        (_, None) => return Err(malformed("text ends inside a value", *at)),
        (State::Start, _) => {
            return Err(malformed(if open == b'{' { "expected an object" } else { "expected an array" }, *at));
        }
        (State::AfterItem, _) => return Err(malformed("expected `,` or a closing bracket", *at)),
    }
    if text.get(*at) == Some(&close) {
        *state = State::Done;
        return Ok(false);
    }
    if first {
        *state = State::AfterItem;
    }
    Ok(true)
}

#[cold]
fn malformed(reason: &str, at: usize) -> DecodeError {
    DecodeError::new(Problem::Json(reason.to_owned()), at)
}
