//! Iteration over the members of an object or the items of an array, as slices of the text.

use std::borrow::Cow;

use super::{skip_whitespace, unquote, value_end};
use crate::error::{DecodeError, Problem};

/// One member of an object.
pub(crate) struct Member<'a> {
    /// The key, unescaped.
    pub(crate) key: Cow<'a, str>,
    /// The value's text.
    pub(crate) value: &'a [u8],
    /// The position of the key's opening quote.
    pub(crate) key_start: usize,
    /// The position of the value.
    pub(crate) value_start: usize,
}

/// The key of a member.
pub(crate) struct Key<'a> {
    /// The key, unescaped.
    pub(crate) text: Cow<'a, str>,
    /// The position of the opening quote.
    pub(crate) start: usize,
    /// The position of the value.
    pub(crate) value_start: usize,
}

/// The members of the object that `text` begins with, after optional white space.
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

    /// Returns the next member; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, DecodeError> {
        let Some(key) = self.next_key()? else { return Ok(None) };
        let value = self.value(&key)?;
        let Key { text, start, value_start } = key;
        Ok(Some(Member { key: text, value, key_start: start, value_start }))
    }

    /// Returns the next member's key without searching the end of its value; `None` after the last.
    ///
    /// The value may be read in place. [`value`](Self::value) must be called before the next key.
    pub(crate) fn next_key(&mut self) -> Result<Option<Key<'a>>, DecodeError> {
        if !step(self.text, &mut self.at, &mut self.state, (b'{', b'}'))? {
            return Ok(None);
        }
        let start = self.at;
        let end = match self.text.get(start) {
            Some(b'"') => value_end(self.text, start),
            _ => None,
        };
        let end = end.ok_or_else(|| malformed("expected a key", start))?;
        let text = unquote(&self.text[start..end]).ok_or_else(|| malformed("malformed key", start))?;
        let colon = skip_whitespace(self.text, end);
        if self.text.get(colon) != Some(&b':') {
            return Err(malformed("expected `:`", colon));
        }
        Ok(Some(Key { text, start, value_start: skip_whitespace(self.text, colon + 1) }))
    }

    /// Returns the value of the key that was just returned.
    pub(crate) fn value(&mut self, key: &Key<'_>) -> Result<&'a [u8], DecodeError> {
        let start = key.value_start;
        let end = value_end(self.text, start).ok_or_else(|| malformed("expected a value", start))?;
        self.at = end;
        Ok(&self.text[start..end])
    }

    /// Returns the position after the object, once all members were read.
    pub(crate) fn end(&self) -> usize {
        self.at + 1
    }

    /// Returns the value of the first member with this key.
    pub(crate) fn find(mut self, key: &str) -> Result<Option<&'a [u8]>, DecodeError> {
        while let Some(found) = self.next_key()? {
            let value = self.value(&found)?;
            if found.text == key {
                return Ok(Some(value));
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

    /// Returns the next item's text; `None` after the last.
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

/// Moves to the next item, past the opening bracket or the comma. Returns false after the closing bracket.
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
