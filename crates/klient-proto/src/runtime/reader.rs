//! Reads protobuf from a slice, one field at a time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use super::{FieldValue, Result, text};
use crate::error::{DecodeError, Problem};

/// The wire type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireType {
    Varint,
    Fixed64,
    Bytes,
    StartGroup,
    EndGroup,
    Fixed32,
}

/// A cursor over protobuf bytes.
pub(crate) struct Reader<'a> {
    /// All bytes, from which the offset of `rest` is computed.
    base: &'a [u8],
    /// The rest of the innermost message.
    rest: &'a [u8],
    /// The number of the current field.
    field: u32,
    depth: u8,
    /// The memory that decoded lists may still use, so that tiny items on the wire cannot become huge structs without
    /// limit.
    budget: usize,
    skip_managed_fields: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let budget = MIN_BUDGET.saturating_add(bytes.len().saturating_mul(BUDGET_PER_BYTE));
        Self { base: bytes, rest: bytes, field: 0, depth: MAX_DEPTH, budget, skip_managed_fields: false }
    }

    /// Skips `metadata.managedFields` when decoding.
    pub(crate) fn without_managed_fields(mut self) -> Self {
        self.skip_managed_fields = true;
        self
    }

    /// Returns the next field's number and wire type, or `None` at the end of the message.
    #[inline]
    pub(crate) fn next_field(&mut self) -> Result<Option<(u32, WireType)>> {
        // Nearly every key is one byte: a number below 16 with a varint or a length.
        let (number, wire) = match self.rest {
            [] => return Ok(None),
            [first @ 0x08..0x80, rest @ ..] if first & 0b101 == 0 => {
                self.rest = rest;
                let wire = if first & 0b010 == 0 { WireType::Varint } else { WireType::Bytes };
                (u32::from(first >> 3), wire)
            }
            _ => self.any_key()?,
        };
        self.field = number;
        Ok(Some((number, wire)))
    }

    #[inline(never)]
    fn any_key(&mut self) -> Result<(u32, WireType)> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            3 => WireType::StartGroup,
            4 => WireType::EndGroup,
            5 => WireType::Fixed32,
            _ => return Err(self.error(Problem::WrongWireType)),
        };
        match u32::try_from(key >> 3) {
            Ok(number @ 1..=MAX_FIELD_NUMBER) => Ok((number, wire)),
            _ => Err(self.error(Problem::BadVarint)),
        }
    }

    /// Reads a nested message by calling `field` for each of its fields.
    #[inline]
    pub(crate) fn each_field(
        &mut self,
        wire: WireType,
        mut field: impl FnMut(u32, WireType, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let inner = self.bytes(wire)?;
        if self.depth == 0 {
            return Err(self.error(Problem::TooDeep));
        }
        let after = std::mem::replace(&mut self.rest, inner);
        self.depth -= 1;
        while let Some((number, wire)) = self.next_field()? {
            if let Err(error) = field(number, wire, self) {
                return Err(error.within(number));
            }
        }
        self.depth += 1;
        self.rest = after;
        Ok(())
    }

    /// Reads a separate message, whose errors count from its start, with the rest of the budget.
    pub(crate) fn apart<T>(&mut self, message: &'a [u8], read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut reader = Self::new(message);
        reader.budget = self.budget;
        let outcome = read(&mut reader);
        self.budget = reader.budget;
        outcome
    }

    /// Reads the remaining fields of the outermost message.
    pub(crate) fn each_remaining_field(
        &mut self,
        mut field: impl FnMut(u32, WireType, &mut Self) -> Result<()>,
    ) -> Result<()> {
        while let Some((number, wire)) = self.next_field()? {
            if let Err(error) = field(number, wire, self) {
                return Err(error.within(number));
            }
        }
        Ok(())
    }

    /// Reads a varint field.
    #[inline]
    pub(crate) fn int(&mut self, wire: WireType) -> Result<u64> {
        if wire != WireType::Varint {
            return Err(self.error(Problem::WrongWireType));
        }
        self.varint()
    }

    /// Reads a length-delimited field.
    #[inline]
    pub(crate) fn bytes(&mut self, wire: WireType) -> Result<&'a [u8]> {
        if wire != WireType::Bytes {
            return Err(self.error(Problem::WrongWireType));
        }
        let len = self.varint()?;
        match usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len)) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(self.error(Problem::Truncated)),
        }
    }

    /// Reads a string field.
    #[inline]
    pub(crate) fn str(&mut self, wire: WireType) -> Result<&'a str> {
        let bytes = self.bytes(wire)?;
        text::from_utf8(bytes).ok_or_else(|| self.error_before(Problem::NotUtf8, bytes.len()))
    }

    /// Reads a double field.
    pub(crate) fn double(&mut self, wire: WireType) -> Result<f64> {
        if wire != WireType::Fixed64 {
            return Err(self.error(Problem::WrongWireType));
        }
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(|| self.error(Problem::Truncated))?;
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// Reads the managed fields of an object, unless they are skipped.
    pub(crate) fn managed_fields(&mut self, slot: &mut Option<Vec<ManagedFieldsEntry>>, wire: WireType) -> Result<()> {
        if self.skip_managed_fields { self.skip(wire) } else { slot.read_field(wire, self) }
    }

    /// Skips the value of an unknown field.
    pub(crate) fn skip(&mut self, wire: WireType) -> Result<()> {
        match wire {
            WireType::Varint => drop(self.varint()?),
            WireType::Fixed64 => drop(self.advance(8)?),
            WireType::Fixed32 => drop(self.advance(4)?),
            WireType::Bytes => drop(self.bytes(wire)?),
            WireType::EndGroup => return Err(self.error(Problem::WrongWireType)),
            WireType::StartGroup => {
                let mut open = 1usize;
                while open > 0 {
                    match self.next_field()? {
                        Some((_, WireType::StartGroup)) => open += 1,
                        Some((_, WireType::EndGroup)) => open -= 1,
                        Some((_, wire)) => self.skip(wire)?,
                        None => return Err(self.error(Problem::Truncated)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Deducts the memory of decoded list items from the budget.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<()> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.error(Problem::TooLarge)),
        }
    }

    /// Returns how often the current field occurs from here on without interruption, as the initial size of a list.
    ///
    /// The count is limited, so that lists of tiny items do not reserve much more than their bytes. They grow as usual
    /// then.
    #[inline]
    pub(crate) fn count_items(&self) -> usize {
        let mut ahead =
            Self { rest: self.rest, base: self.base, field: 0, depth: 0, budget: 0, skip_managed_fields: false };
        let mut count = 0;
        while count < MAX_COUNTED && ahead.bytes(WireType::Bytes).is_ok() {
            count += 1;
            match ahead.next_field() {
                Ok(Some((number, WireType::Bytes))) if number == self.field => {}
                _ => break,
            }
        }
        count
    }

    /// Returns whether the innermost message is read to its end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the current offset.
    pub(crate) fn offset(&self) -> usize {
        // Both slices are in the same buffer, so the difference of addresses is the offset.
        (self.rest.as_ptr() as usize).saturating_sub(self.base.as_ptr() as usize)
    }

    #[cold]
    pub(crate) fn error(&self, problem: Problem) -> DecodeError {
        DecodeError::new(problem, self.offset())
    }

    /// Returns an error about bytes that were just read.
    #[cold]
    pub(crate) fn error_before(&self, problem: Problem, len: usize) -> DecodeError {
        DecodeError::new(problem, self.offset().saturating_sub(len))
    }

    fn advance(&mut self, len: usize) -> Result<&'a [u8]> {
        let (skipped, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.error(Problem::Truncated))?;
        self.rest = rest;
        Ok(skipped)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            // Lengths up to 16 KB.
            Some((&low, [high, rest @ ..])) if *high < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                // The tenth byte can contain only one bit.
                if index == 9 && byte > 1 {
                    return Err(self.error(Problem::BadVarint));
                }
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        let problem = if self.rest.len() < 10 { Problem::Truncated } else { Problem::BadVarint };
        Err(self.error(problem))
    }
}

const MAX_FIELD_NUMBER: u32 = (1 << 29) - 1;
const MAX_COUNTED: usize = 16;
const MAX_DEPTH: u8 = 100;
const MIN_BUDGET: usize = 64 << 20;
const BUDGET_PER_BYTE: usize = 64;
