//! Classification of 64 bytes of JSON at a time: quotes, backslashes and brackets.
//!
//! With SSE2, which every x86-64 processor has, it processes several gigabytes per second. Elsewhere, it processes
//! eight bytes at a time, at about a third of that speed.

/// One bit per byte of a block, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    /// `{` and `[`.
    pub(super) opens: u64,
    /// `}` and `]`.
    pub(super) closes: u64,
}

pub(super) const BLOCK: usize = 64;

/// `[` and `{`, and `]` and `}`, differ in this one bit.
const BRACKET_FOLD: u8 = 0x20;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
    // SAFETY: the only requirement of `sse2::masks` is that the processor has SSE2. This function exists only where
    // the target as a whole is compiled for SSE2 (the `cfg` above), so the program could not run without it.
    #[expect(unsafe_code, reason = "calling a function with a target feature that the whole target has")]
    unsafe {
        sse2::masks(block)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline]
pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
    portable::masks(block)
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8};

    use super::{BLOCK, BRACKET_FOLD, Masks};

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        let mut masks = Masks::default();
        let (words, _) = block.as_chunks::<8>();
        let (lanes, _) = words.as_chunks::<2>();
        for (index, [low, high]) in lanes.iter().enumerate() {
            let lanes = _mm_set_epi64x(i64::from_le_bytes(*high), i64::from_le_bytes(*low));
            let folded = _mm_or_si128(lanes, _mm_set1_epi8(BRACKET_FOLD.cast_signed()));
            masks.quotes |= equal(lanes, b'"') << (16 * index);
            masks.backslashes |= equal(lanes, b'\\') << (16 * index);
            masks.opens |= equal(folded, b'{') << (16 * index);
            masks.closes |= equal(folded, b'}') << (16 * index);
        }
        masks
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(lanes: __m128i, byte: u8) -> u64 {
        let found = _mm_cmpeq_epi8(lanes, _mm_set1_epi8(byte.cast_signed()));
        u64::from(_mm_movemask_epi8(found).cast_unsigned())
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod portable {
    use super::{BLOCK, BRACKET_FOLD, Masks};

    const EVERY_BYTE: u64 = u64::MAX / 255;

    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        let mut masks = Masks::default();
        let (words, _) = block.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let folded = word | (EVERY_BYTE * u64::from(BRACKET_FOLD));
            masks.quotes |= equal(word, b'"') << (8 * index);
            masks.backslashes |= equal(word, b'\\') << (8 * index);
            masks.opens |= equal(folded, b'{') << (8 * index);
            masks.closes |= equal(folded, b'}') << (8 * index);
        }
        masks
    }

    /// Returns one bit for each byte of the word that equals `byte`.
    fn equal(word: u64, byte: u8) -> u64 {
        let low_bits = EVERY_BYTE * 0x7f;
        let difference = word ^ (EVERY_BYTE * u64::from(byte));
        // The high bit of each byte is now set if the byte differs; no carry crosses bytes.
        let differs = ((difference & low_bits) + low_bits) | difference;
        let high_bits = !differs & (EVERY_BYTE * 0x80);
        // Gathers the eight high bits in the top byte, in order.
        (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn both_implementations_agree_with_a_byte_by_byte_search(
            bytes in proptest::collection::vec(
                proptest::sample::select(b"\"\\[]{}a\x02\x22\xa2\xdb\xfb\xfd\x00\xff".to_vec()), BLOCK
            )
        ) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            let find = |wanted: &[u8]| {
                (0..BLOCK).fold(0u64, |mask, index| mask | u64::from(wanted.contains(&block[index])) << index)
            };
            let expected =
                Masks { quotes: find(b"\""), backslashes: find(b"\\"), opens: find(b"{["), closes: find(b"}]") };
            assert_eq!(masks(&block), expected);
            assert_eq!(portable::masks(&block), expected);
        }
    }
}
