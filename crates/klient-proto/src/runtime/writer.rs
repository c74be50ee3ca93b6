//! Writes protobuf from the last byte to the first.
//!
//! When writing backwards, a message's length is known when its prefix is written: one pass, and no second function per
//! type that computes lengths.

/// A buffer that grows towards its front.
pub(crate) struct Writer {
    buffer: Vec<u8>,
    /// The position of the written bytes in `buffer`.
    start: usize,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::new(), start: 0 }
    }

    /// Creates a writer with room for a number of bytes.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { buffer: vec![0; capacity], start: capacity }
    }

    /// Returns the number of written bytes.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Prepends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            self.grow(bytes.len());
        }
        let start = self.start - bytes.len();
        self.buffer[start..self.start].copy_from_slice(bytes);
        self.start = start;
    }

    /// Prepends a varint.
    pub(crate) fn varint(&mut self, mut value: u64) {
        let mut bytes = [0u8; 10];
        let mut len = 0;
        loop {
            bytes[len] = (value & 0x7f) as u8;
            value >>= 7;
            len += 1;
            if value == 0 {
                break;
            }
            bytes[len - 1] |= 0x80;
        }
        self.bytes(&bytes[..len]);
    }

    /// Prepends a varint field.
    pub(crate) fn int_field(&mut self, number: u32, value: u64) {
        self.varint(value);
        self.varint(u64::from(number) << 3);
    }

    /// Prepends a double field.
    pub(crate) fn double_field(&mut self, number: u32, value: f64) {
        self.bytes(&value.to_le_bytes());
        self.varint(u64::from(number) << 3 | 1);
    }

    /// Prepends a length-delimited field.
    pub(crate) fn bytes_field(&mut self, number: u32, value: &[u8]) {
        self.bytes(value);
        self.length_prefix(number, value.len());
    }

    /// Prepends a nested message, whose fields `write` writes last to first.
    pub(crate) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let before = self.len();
        write(self);
        self.length_prefix(number, self.len() - before);
    }

    /// Returns the written bytes, front to back.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.buffer.drain(..self.start);
        self.buffer
    }

    /// Prepends the key and length of a length-delimited field.
    pub(crate) fn length_prefix(&mut self, number: u32, len: usize) {
        self.varint(len as u64);
        self.varint(u64::from(number) << 3 | 2);
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let len = self.len();
        let capacity = (len + needed).next_power_of_two().max(256);
        let mut buffer = vec![0; capacity];
        buffer[capacity - len..].copy_from_slice(&self.buffer[self.start..]);
        self.start = capacity - len;
        self.buffer = buffer;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::{Reader, WireType};

    proptest! {
        #[test]
        fn every_number_round_trips(value in any::<u64>(), shift in 0u32..64, number in 1u32..1 << 29) {
            let value = value >> shift;
            let mut w = Writer::new();
            w.int_field(number, value);
            let bytes = w.finish();
            let mut r = Reader::new(&bytes);
            prop_assert_eq!(r.next_field().unwrap(), Some((number, WireType::Varint)));
            prop_assert_eq!(r.int(WireType::Varint).unwrap(), value);
            prop_assert!(r.is_at_end());
        }

        #[test]
        fn nested_fields_round_trip_in_order(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6)) {
            let mut w = Writer::new();
            w.double_field(3, -0.5);
            w.message(2, |w| {
                for value in values.iter().rev() {
                    w.bytes_field(1, value);
                }
            });
            let bytes = w.finish();
            let mut r = Reader::new(&bytes);
            let mut found = Vec::new();
            prop_assert_eq!(r.next_field().unwrap(), Some((2, WireType::Bytes)));
            r.each_field(WireType::Bytes, |number, wire, r| {
                assert_eq!(number, 1);
                found.push(r.bytes(wire)?.to_vec());
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(found, values);
            prop_assert_eq!(r.next_field().unwrap(), Some((3, WireType::Fixed64)));
            prop_assert_eq!(r.double(WireType::Fixed64).unwrap(), -0.5);
            prop_assert!(r.next_field().unwrap().is_none());
        }
    }

    #[test]
    fn numbers_longer_than_64_bits_are_rejected() {
        let mut longest = [0xff; 10];
        longest[9] = 1;
        assert_eq!(Reader::new(&longest).int(WireType::Varint).unwrap(), u64::MAX);
        longest[9] = 2;
        assert!(Reader::new(&longest).int(WireType::Varint).is_err());
        assert!(Reader::new(&[0x80; 11]).int(WireType::Varint).is_err());
        assert!(Reader::new(&[0x80; 3]).int(WireType::Varint).is_err());
        // Longer than necessary, but valid.
        assert_eq!(Reader::new(&[0x81, 0x80, 0x00]).int(WireType::Varint).unwrap(), 1);
    }
}
