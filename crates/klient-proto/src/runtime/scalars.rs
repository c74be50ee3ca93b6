//! The encoding of strings, numbers and bytes as fields.

use k8s_openapi::ByteString;

use super::{FieldValue, Reader, Result, WireType, Writer};

impl FieldValue for String {
    fn empty() -> Self {
        Self::new()
    }

    #[inline]
    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        // The old allocation is not reused: it is empty in practice, and this allocates the exact size.
        *self = r.str(wire)?.to_owned();
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        w.bytes_field(number, self.as_bytes());
    }
}

impl FieldValue for bool {
    fn empty() -> Self {
        false
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        *self = r.int(wire)? != 0;
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        w.int_field(number, u64::from(*self));
    }
}

impl FieldValue for i32 {
    fn empty() -> Self {
        0
    }

    #[expect(clippy::cast_possible_truncation, reason = "protobuf defines int32 as the low 32 bits")]
    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        *self = r.int(wire)? as Self;
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        // Negative numbers are sign-extended to 64 bits.
        w.int_field(number, i64::from(*self).cast_unsigned());
    }
}

impl FieldValue for i64 {
    fn empty() -> Self {
        0
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        *self = r.int(wire)?.cast_signed();
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        w.int_field(number, self.cast_unsigned());
    }
}

impl FieldValue for f64 {
    fn empty() -> Self {
        0.0
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        *self = r.double(wire)?;
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        w.double_field(number, *self);
    }
}

impl FieldValue for ByteString {
    fn empty() -> Self {
        Self::default()
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        self.0 = r.bytes(wire)?.to_vec();
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        w.bytes_field(number, &self.0);
    }
}

/// Reads a field that Go writes even if it is zero, and whose zero means not set.
#[inline]
pub(crate) fn read_unless_zero<T: FieldValue + Default + PartialEq>(
    slot: &mut Option<T>,
    wire: WireType,
    r: &mut Reader<'_>,
) -> Result<()> {
    let mut value = T::default();
    value.read_field(wire, r)?;
    *slot = (value != T::default()).then_some(value);
    Ok(())
}
