//! The part of DER that certificates need: values with a tag, a length and a content, one after another.

/// The rest of a DER document.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Returns the tag and content of the next value.
    pub(crate) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk::<2>()?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > size_of::<u32>() {
                return None;
            }
            let (bytes, after) = rest.split_at_checked(count)?;
            length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// Returns the content of the next value, if it has a tag.
    pub(crate) fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// The version of a certificate, which is absent from old ones.
pub(crate) const VERSION: u8 = 0xa0;
/// The extensions of a certificate.
pub(crate) const EXTENSIONS: u8 = 0xa3;
