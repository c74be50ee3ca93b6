//! Pieces of known length out of a stream of chunks.
//!
//! A piece that lies in one chunk is handed out in place; only one that crosses a boundary is copied.

/// The beginning of a piece whose end has not arrived.
#[derive(Default)]
pub(crate) struct Carry {
    buffer: Vec<u8>,
}

impl Carry {
    /// Returns whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Takes `len` bytes from what is held and from `input`, and calls `use_piece` with them once they are all there.
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
            // The whole length at once is fine: whoever sends it was checked against the limit, and is sending it.
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

    /// Holds bytes whose meaning depends on what follows.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// What is held.
    pub(crate) fn held(&self) -> &[u8] {
        &self.buffer
    }

    /// Lets go of what is held; an unusually large buffer is given back.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(MAX_KEPT);
    }
}

/// A hostile length must not reserve memory that no bytes fill.
const MAX_RESERVED: usize = 64 << 10;
const MAX_KEPT: usize = 1 << 20;
