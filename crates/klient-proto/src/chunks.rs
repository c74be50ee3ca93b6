//! Pieces of known length from a stream of chunks.
//!
//! A piece within one chunk is used in place; only one that crosses a boundary is copied.

/// The start of a piece whose end has not arrived.
#[derive(Default)]
pub(crate) struct Carry {
    buffer: Vec<u8>,
}

impl Carry {
    /// Returns whether the buffer is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Takes `len` bytes from the buffer and `input`, and calls `use_piece` once all of them have arrived.
    pub(crate) fn take<T>(&mut self, input: &mut &[u8], len: usize, use_piece: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if self.buffer.is_empty()
            && let Some((piece, rest)) = input.split_at_checked(len)
        {
            *input = rest;
            return Some(use_piece(piece));
        }
        let missing = len.saturating_sub(self.buffer.len()).min(input.len());
        let (part, rest) = input.split_at(missing);
        if self.buffer.is_empty() {
            // The length was checked against the limit, but is not reserved at once.
            self.buffer.reserve_exact(len.min(MAX_RESERVED));
        }
        self.buffer.extend_from_slice(part);
        *input = rest;
        if self.buffer.len() < len {
            return None;
        }
        let result = use_piece(&self.buffer);
        self.clear();
        Some(result)
    }

    /// Stores bytes whose meaning depends on the following ones.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the stored bytes.
    pub(crate) fn held(&self) -> &[u8] {
        &self.buffer
    }

    /// Clears the buffer, and frees an unusually large one.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(MAX_KEPT);
    }
}

/// The reserved memory is limited, so that a hostile length does not allocate memory that is never filled.
const MAX_RESERVED: usize = 64 << 10;
const MAX_KEPT: usize = 1 << 20;
