//! UTF-8 validation. Nearly all strings in Kubernetes are short and ASCII, which is checked in a few instructions.

/// Returns the bytes as a string; `None` if they are not UTF-8.
#[inline]
pub(super) fn from_utf8(bytes: &[u8]) -> Option<&str> {
    if is_ascii(bytes) {
        // SAFETY: every byte is below 0x80, and such bytes are valid UTF-8, each a character.
        #[expect(unsafe_code, reason = "checking twice costs a tenth of all decoding")]
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let mut seen = 0u64;
    if let Some(last) = bytes.last_chunk::<8>() {
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            seen |= u64::from_ne_bytes(*word);
        }
        // Overlaps the previous word, unless the length is a multiple of eight.
        seen |= u64::from_ne_bytes(*last);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        seen = u64::from(u32::from_ne_bytes(*first) | u32::from_ne_bytes(*last));
    } else if let (Some(first), Some(last)) = (bytes.first(), bytes.last()) {
        // At most three bytes, of which the middle one is neither first nor last.
        seen = u64::from(first | bytes[bytes.len() / 2] | last);
    }
    seen & 0x8080_8080_8080_8080 == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn non_ascii_byte_is_found_at_every_position() {
        for length in 0..70 {
            let mut bytes = vec![b'a'; length];
            assert!(is_ascii(&bytes), "{length}");
            for at in 0..length {
                bytes[at] = 0x80;
                assert!(!is_ascii(&bytes) && from_utf8(&bytes).is_none(), "{at} of {length}");
                bytes[at] = b'a';
            }
        }
    }

    proptest! {
        #[test]
        fn validation_agrees_with_the_standard_library(bytes in prop::collection::vec(any::<u8>(), 0..40), text in ".{0,20}") {
            prop_assert_eq!(from_utf8(&bytes), std::str::from_utf8(&bytes).ok());
            prop_assert_eq!(from_utf8(text.as_bytes()), Some(text.as_str()));
        }
    }
}
