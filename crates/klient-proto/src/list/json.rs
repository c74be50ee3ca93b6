//! A JSON list body: one object, whose member `items` is split.
//!
//! Servers write the list's metadata before the items for built-in kinds and after them for custom resources.

use super::{ListEnd, SplitOptions, check_list_kind};
use crate::{
    DecodeError, Problem, RawObject,
    chunks::Carry,
    error::json_reason,
    json::{ValueScanner, skip_whitespace, unquote},
    raw::RawObjectFactory,
    runtime::Result,
};

pub(super) struct JsonList {
    state: State,
    /// The member that is being read, if it is relevant.
    member: Member,
    carry: Carry,
    /// The number of bytes of the body that were processed.
    offset: usize,
    options: SplitOptions,
    factory: RawObjectFactory,
    has_items: bool,
    end: ListEnd,
}

enum State {
    Start,
    /// After `{` or, with `true`, after a comma: a key must follow.
    Key {
        required: bool,
    },
    Colon,
    MemberValue,
    AfterMember,
    /// After `[` or, with `true`, after a comma: an item must follow.
    Item {
        required: bool,
    },
    AfterItem,
    /// Inside a value, with its purpose.
    Value {
        scanner: ValueScanner,
        purpose: Purpose,
    },
    End,
}

#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    Key,
    Member,
    Item,
}

#[derive(Clone, Copy, PartialEq)]
enum Member {
    Items,
    Metadata,
    ApiVersion,
    Kind,
    Other,
}

impl JsonList {
    pub(super) fn new(options: SplitOptions) -> Self {
        Self {
            state: State::Start,
            member: Member::Other,
            carry: Carry::default(),
            offset: 0,
            options,
            factory: RawObjectFactory::new(options.managed_fields),
            has_items: false,
            end: ListEnd::default(),
        }
    }

    pub(super) fn push(&mut self, mut input: &[u8], sink: &mut impl FnMut(Result<RawObject>)) -> Result<()> {
        loop {
            if let State::Value { scanner, purpose } = &mut self.state {
                let purpose = *purpose;
                let Some(len) = scanner.feed(input) else {
                    self.set_aside(input, purpose)?;
                    return Ok(());
                };
                let (value, rest) = input.split_at(len);
                input = rest;
                self.complete(value, purpose, sink)?;
                continue;
            }
            let space = skip_whitespace(input, 0);
            self.offset += space;
            input = &input[space..];
            let Some(&byte) = input.first() else { return Ok(()) };
            if self.punctuation(byte)? {
                self.offset += 1;
                input = &input[1..];
            }
        }
    }

    pub(super) fn finish(self) -> Result<ListEnd> {
        if !matches!(self.state, State::End) {
            return Err(DecodeError::new(Problem::Truncated, self.offset));
        }
        check_list_kind(&self.end.kind, 0)?;
        // A proxy's error, for example, must not be read as an empty list.
        if !self.has_items && self.end.kind.is_empty() {
            return Err(self.malformed("expected items or the kind of a list"));
        }
        Ok(self.end)
    }

    /// Processes the first byte of the next token. Returns whether it was consumed or starts a value.
    fn punctuation(&mut self, byte: u8) -> Result<bool> {
        self.state = match (&self.state, byte) {
            (State::Start, b'{') => State::Key { required: false },
            (State::Key { required: false }, b'}') | (State::AfterMember, b'}') => State::End,
            (State::Key { .. }, b'"') => return self.begin(byte, Purpose::Key),
            (State::Colon, b':') => State::MemberValue,
            (State::MemberValue, b'[') if self.member == Member::Items => State::Item { required: false },
            (State::MemberValue, b'n') if self.member == Member::Items => return self.begin(byte, Purpose::Member),
            (State::MemberValue, _) if self.member != Member::Items => return self.begin(byte, Purpose::Member),
            (State::AfterMember, b',') => State::Key { required: true },
            (State::Item { required: false }, b']') | (State::AfterItem, b']') => State::AfterMember,
            (State::AfterItem, b',') => State::Item { required: true },
            (State::Item { .. }, _) => return self.begin(byte, Purpose::Item),
            (state, _) => return Err(self.malformed(expected(state))),
        };
        Ok(true)
    }

    fn begin(&mut self, byte: u8, purpose: Purpose) -> Result<bool> {
        let scanner = ValueScanner::starting_with(byte).ok_or_else(|| self.malformed("expected a value"))?;
        self.state = State::Value { scanner, purpose };
        Ok(false)
    }

    /// Stores the start of a value, unless it is skipped.
    fn set_aside(&mut self, part: &[u8], purpose: Purpose) -> Result<()> {
        if self.is_unwanted(purpose) {
            self.offset += part.len();
            return Ok(());
        }
        if self.carry.held().len() + part.len() > self.options.max_object {
            return Err(DecodeError::new(Problem::TooLarge, self.offset));
        }
        self.carry.hold(part);
        Ok(())
    }

    /// Processes a value whose last part is `part`.
    fn complete(&mut self, part: &[u8], purpose: Purpose, sink: &mut impl FnMut(Result<RawObject>)) -> Result<()> {
        self.set_aside_if_started(part)?;
        let value = if self.carry.is_empty() { part } else { self.carry.held() };
        let len = value.len();
        if len > self.options.max_object && !self.is_unwanted(purpose) {
            return Err(DecodeError::new(Problem::TooLarge, self.offset));
        }
        self.state = match purpose {
            Purpose::Key => {
                let member = match unquote(value).as_deref() {
                    Some("items") => Member::Items,
                    Some("metadata") => Member::Metadata,
                    Some("apiVersion") => Member::ApiVersion,
                    Some("kind") => Member::Kind,
                    _ => Member::Other,
                };
                self.has_items |= member == Member::Items;
                self.member = member;
                State::Colon
            }
            Purpose::Item => {
                self.end.items += 1;
                sink(self.factory.json(value).map_err(|error| error.shifted(self.offset)));
                State::AfterItem
            }
            Purpose::Member => {
                take_member(self.member, value, &mut self.end).map_err(|error| error.shifted(self.offset))?;
                State::AfterMember
            }
        };
        self.carry.clear();
        self.offset += len;
        Ok(())
    }

    fn is_unwanted(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Member && self.member == Member::Other
    }

    fn set_aside_if_started(&mut self, part: &[u8]) -> Result<()> {
        if self.carry.is_empty() { Ok(()) } else { self.set_aside(part, Purpose::Item) }
    }

    #[cold]
    fn malformed(&self, reason: &str) -> DecodeError {
        DecodeError::new(Problem::Json(reason.to_owned()), self.offset)
    }
}

fn take_member(member: Member, value: &[u8], end: &mut ListEnd) -> Result<()> {
    let text = || unquote(value).map(std::borrow::Cow::into_owned).unwrap_or_default();
    match member {
        Member::Metadata => {
            end.metadata = serde_json::from_slice(value).map_err(|error| {
                DecodeError::new(Problem::Json(format!("list metadata: {}", json_reason(&error))), 0)
            })?;
        }
        Member::ApiVersion => end.api_version = text(),
        Member::Kind => end.kind = text(),
        // Go writes `null` for no items. Any other value that is not an array is an error.
        Member::Items if value != b"null" => {
            return Err(DecodeError::new(Problem::Json("items is not an array".to_owned()), 0));
        }
        Member::Items | Member::Other => {}
    }
    Ok(())
}

fn expected(state: &State) -> &'static str {
    match state {
        State::Start => "expected a list object",
        State::Key { .. } => "expected a key",
        State::Colon => "expected `:`",
        State::MemberValue => "items is not an array",
        State::AfterMember => "expected `,` or `}`",
        State::Item { .. } | State::Value { .. } => "expected a value",
        State::AfterItem => "expected `,` or `]`",
        State::End => "unexpected text after the list",
    }
}
