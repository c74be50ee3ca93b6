//! The encoding of optional values, lists and maps as fields.

use std::collections::BTreeMap;

use super::{FieldValue, Message, Reader, Result, WireType, Writer};

impl<T: OptionValue> FieldValue for Option<T> {
    fn empty() -> Self {
        None
    }

    #[inline]
    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        T::read_option(self, wire, r)
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        if let Some(value) = self {
            value.write_field(number, w);
        }
    }
}

/// A type that may be in an `Option`.
pub(crate) trait OptionValue: FieldValue {
    #[inline]
    fn read_option(slot: &mut Option<Self>, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        slot.get_or_insert_with(Self::empty).read_field(wire, r)
    }
}

impl OptionValue for String {}
impl OptionValue for bool {}
impl OptionValue for i32 {}
impl OptionValue for i64 {}
impl OptionValue for f64 {}
impl OptionValue for k8s_openapi::ByteString {}
impl<T: ListItem> OptionValue for Vec<T> {}
impl<V: FieldValue> OptionValue for BTreeMap<String, V> {}

impl<T: Message> OptionValue for T {
    #[inline]
    fn read_option(slot: &mut Option<Self>, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        if T::EMPTY_IS_ABSENT {
            let mut fields = 0usize;
            let mut value = Self::new();
            r.each_field(wire, |number, wire, r| {
                fields += 1;
                value.merge_field(number, wire, r)
            })?;
            *slot = (fields > 0).then_some(value);
            return Ok(());
        }
        slot.get_or_insert_with(Self::empty).read_field(wire, r)
    }
}

/// A type that may be an item of a list.
pub(crate) trait ListItem: FieldValue {
    /// Whether several items may be packed into one length-delimited field.
    const PACKABLE: bool = false;
}

impl ListItem for String {}
impl ListItem for bool {
    const PACKABLE: bool = true;
}
impl ListItem for i32 {
    const PACKABLE: bool = true;
}
impl ListItem for i64 {
    const PACKABLE: bool = true;
}
impl<T: Message> ListItem for T {}

impl<T: ListItem> FieldValue for Vec<T> {
    fn empty() -> Self {
        Self::new()
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        if T::PACKABLE && wire == WireType::Bytes {
            let mut packed = Reader::new(r.bytes(wire)?);
            while !packed.is_at_end() {
                r.charge(size_of::<T>())?;
                let mut value = T::empty();
                value.read_field(WireType::Varint, &mut packed)?;
                self.push(value);
            }
            return Ok(());
        }
        if self.capacity() == 0 && wire == WireType::Bytes {
            self.reserve_exact(r.count_items());
        }
        r.charge(size_of::<T>())?;
        // Read in place, because items are large. An error discards the whole list.
        let index = self.len();
        self.push(T::empty());
        self[index].read_field(wire, r).map_err(|error| error.at_index(index))
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        for item in self.iter().rev() {
            item.write_field(number, w);
        }
    }
}

impl<V: FieldValue> FieldValue for BTreeMap<String, V> {
    fn empty() -> Self {
        Self::new()
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        let (key, value) = read_entry(wire, r, V::read_field)?;
        r.charge(size_of::<(String, V)>())?;
        self.insert(key, value);
        Ok(())
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        for (key, value) in self.iter().rev() {
            w.message(number, |w| {
                value.write_field(2, w);
                key.write_field(1, w);
            });
        }
    }
}

fn read_entry<V: FieldValue>(
    wire: WireType,
    r: &mut Reader<'_>,
    read_value: impl Fn(&mut V, WireType, &mut Reader<'_>) -> Result<()>,
) -> Result<(String, V)> {
    let (mut key, mut value) = (String::new(), V::empty());
    r.each_field(wire, |number, wire, r| match number {
        1 => key.read_field(wire, r),
        2 => read_value(&mut value, wire, r),
        _ => r.skip(wire),
    })?;
    Ok((key, value))
}

/// Reads a message whose field 1 is a list of strings.
pub(crate) fn read_string_list(list: &mut Vec<String>, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
    r.each_field(wire, |number, wire, r| match number {
        1 => list.read_field(wire, r),
        _ => r.skip(wire),
    })
}

/// Writes a message whose field 1 is a list of strings.
pub(crate) fn write_string_list(list: &Vec<String>, number: u32, w: &mut Writer) {
    w.message(number, |w| list.write_field(1, w));
}

/// Reads an entry of a map of such messages.
pub(crate) fn read_string_list_map(
    map: &mut Option<BTreeMap<String, Vec<String>>>,
    wire: WireType,
    r: &mut Reader<'_>,
) -> Result<()> {
    let (key, value) = read_entry(wire, r, read_string_list)?;
    map.get_or_insert_default().insert(key, value);
    Ok(())
}

/// Writes a map of such messages.
pub(crate) fn write_string_list_map(map: &Option<BTreeMap<String, Vec<String>>>, number: u32, w: &mut Writer) {
    for (key, value) in map.iter().flatten().rev() {
        w.message(number, |w| {
            write_string_list(value, 2, w);
            key.write_field(1, w);
        });
    }
}
