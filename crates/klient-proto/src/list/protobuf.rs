//! A protobuf list body: magic bytes, an envelope, and the list message with its items.

use super::{ListEnd, SplitOptions, check_list_kind};
use crate::{
    DecodeError, Problem, RawObject,
    chunks::Carry,
    envelope::{MAGIC, check_content, type_meta},
    raw::{Encoding, RawObjectFactory, encoding_of},
    runtime::{Message as _, Reader, Result, WireType},
};

pub(super) struct ProtobufList {
    state: State,
    /// The remaining length of the list message, while inside it.
    list_left: Option<u64>,
    has_list: bool,
    carry: Carry,
    /// The number of bytes of the body that were processed.
    offset: usize,
    options: SplitOptions,
    factory: RawObjectFactory,
    encoding: Encoding,
    content_encoding: String,
    content_type: String,
    end: ListEnd,
}

#[derive(Clone, Copy)]
enum State {
    Magic,
    Key,
    Value { number: u32, len: usize },
    Skip { left: u64 },
}

/// The key of a field, with the length of its value.
enum Header {
    /// A value of so many bytes.
    Bytes { number: u32, len: u64 },
    /// A value that was read with the key.
    Small,
}

impl ProtobufList {
    pub(super) fn new(options: SplitOptions) -> Self {
        Self {
            state: State::Magic,
            list_left: None,
            has_list: false,
            carry: Carry::default(),
            offset: 0,
            options,
            factory: RawObjectFactory::new(options.managed_fields),
            encoding: Encoding::Protobuf,
            content_encoding: String::new(),
            content_type: String::new(),
            end: ListEnd::default(),
        }
    }

    pub(super) fn push(&mut self, mut input: &[u8], sink: &mut impl FnMut(Result<RawObject>)) -> Result<()> {
        loop {
            if self.list_left == Some(0) && matches!(self.state, State::Key) && self.carry.is_empty() {
                self.list_left = None;
            }
            match self.state {
                State::Magic => {
                    let Some(found) = self.carry.take(&mut input, MAGIC.len(), |bytes| bytes == MAGIC) else {
                        return Ok(());
                    };
                    if !found {
                        return Err(DecodeError::new(Problem::NoEnvelope, 0));
                    }
                    self.used(MAGIC.len() as u64)?;
                    self.state = State::Key;
                }
                State::Key => {
                    let Some(header) = self.header(&mut input)? else { return Ok(()) };
                    self.enter(&header)?;
                }
                State::Value { number, len } => {
                    let Self { carry, factory, encoding, .. } = self;
                    // Items are built from the bytes in place; the small rest is copied first.
                    let taken = if self.list_left.is_some() && number == ITEMS {
                        let made = carry.take(&mut input, len, |bytes| factory.protobuf(bytes, *encoding));
                        let Some(made) = made else { return Ok(()) };
                        self.end.items += 1;
                        sink(made.map_err(|error| error.shifted(self.offset)));
                        None
                    } else {
                        let Some(bytes) = carry.take(&mut input, len, <[u8]>::to_vec) else { return Ok(()) };
                        Some(bytes)
                    };
                    if let Some(bytes) = taken {
                        self.value(number, &bytes).map_err(|error| error.shifted(self.offset))?;
                    }
                    self.used(len as u64)?;
                    self.state = State::Key;
                }
                State::Skip { left } => {
                    let now = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    input = &input[now..];
                    self.used(now as u64)?;
                    let left = left - now as u64;
                    self.state = if left == 0 { State::Key } else { State::Skip { left } };
                    if left > 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Result<ListEnd> {
        let complete = matches!(self.state, State::Key) && self.carry.is_empty() && self.list_left.unwrap_or(0) == 0;
        // A truncated body is not an empty list: a caller that believed that would delete everything.
        if !complete || !self.has_list {
            return Err(DecodeError::new(Problem::Truncated, self.offset));
        }
        check_content(&self.content_encoding, &self.content_type)?;
        check_list_kind(&self.end.kind, 0)?;
        Ok(std::mem::take(&mut self.end))
    }

    /// Reads the next key with its length, from as many chunks as necessary.
    fn header(&mut self, input: &mut &[u8]) -> Result<Option<Header>> {
        if self.carry.is_empty() {
            if let Some((header, used)) = parse_header(input, self.offset)? {
                *input = &input[used..];
                self.used(used as u64)?;
                return Ok(Some(header));
            }
            self.carry.hold(input);
            *input = &[];
            return Ok(None);
        }
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            self.carry.hold(std::slice::from_ref(byte));
            if let Some((header, used)) = parse_header(self.carry.held(), self.offset)? {
                self.carry.clear();
                self.used(used as u64)?;
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    /// Handles the header of a field.
    fn enter(&mut self, header: &Header) -> Result<()> {
        let Header::Bytes { number, len } = *header else { return Ok(()) };
        if self.list_left.is_some_and(|left| len > left) {
            return Err(DecodeError::new(Problem::Truncated, self.offset));
        }
        match (self.list_left, number) {
            (None, RAW) => {
                check_list_kind(&self.end.kind, 0)?;
                self.list_left = Some(len);
                self.has_list = true;
            }
            (None, TYPE_META | CONTENT_ENCODING | CONTENT_TYPE) | (Some(_), LIST_METADATA | ITEMS) => {
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                if len > self.options.max_object {
                    return Err(DecodeError::new(Problem::TooLarge, self.offset));
                }
                self.state = State::Value { number, len };
            }
            _ => self.state = State::Skip { left: len },
        }
        Ok(())
    }

    /// Handles the value of a small field.
    fn value(&mut self, number: u32, bytes: &[u8]) -> Result<()> {
        if self.list_left.is_some() {
            let metadata = &mut self.end.metadata;
            return Reader::new(bytes).each_remaining_field(|number, wire, r| metadata.merge_field(number, wire, r));
        }
        let text = || std::str::from_utf8(bytes).map_err(|_| DecodeError::new(Problem::NotUtf8, 0));
        match number {
            TYPE_META => {
                let (api_version, kind) = type_meta(bytes)?;
                api_version.clone_into(&mut self.end.api_version);
                kind.clone_into(&mut self.end.kind);
                self.encoding = encoding_of(&self.end.kind);
            }
            CONTENT_ENCODING => text()?.clone_into(&mut self.content_encoding),
            _ => text()?.clone_into(&mut self.content_type),
        }
        Ok(())
    }

    /// Counts processed bytes.
    fn used(&mut self, len: u64) -> Result<()> {
        self.offset = self.offset.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        if let Some(left) = &mut self.list_left {
            *left = left.checked_sub(len).ok_or_else(|| DecodeError::new(Problem::Truncated, self.offset))?;
        }
        Ok(())
    }
}

/// Parses a key with its length and returns the bytes used; `None` if more bytes are needed.
fn parse_header(bytes: &[u8], offset: usize) -> Result<Option<(Header, usize)>> {
    let mut reader = Reader::new(bytes);
    let mut parse = || {
        let Some((number, wire)) = reader.next_field()? else { return Ok(None) };
        let header = match wire {
            WireType::Bytes => Header::Bytes { number, len: reader.int(WireType::Varint)? },
            // A group has no length. Groups are not used in practice, and skipping one would require a stack.
            WireType::StartGroup | WireType::EndGroup => return Err(reader.error(Problem::WrongWireType)),
            _ => {
                reader.skip(wire)?;
                Header::Small
            }
        };
        Ok(Some((header, reader.offset())))
    };
    match parse() {
        Err(error) if *error.problem() == Problem::Truncated => Ok(None),
        outcome => outcome.map_err(|error| error.shifted(offset)),
    }
}

const TYPE_META: u32 = 1;
const RAW: u32 = 2;
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;
const LIST_METADATA: u32 = 1;
const ITEMS: u32 = 2;
