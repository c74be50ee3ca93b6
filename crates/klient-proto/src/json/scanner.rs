//! Finds the end of one JSON value, in one piece or across chunks.

use super::blocks::{BLOCK, Masks, masks};

/// A scan for the end of one value, which can stop at any byte and continue with the next chunk.
#[derive(Clone, Debug)]
pub(crate) enum ValueScanner {
    /// An object or array.
    Container(ContainerScanner),
    /// A string, and whether its last byte was an escaping backslash.
    String { escaped: bool, opened: bool },
    /// A number, `true`, `false` or `null`.
    Scalar,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl ValueScanner {
    /// Returns a scan for a value that begins with this byte, which must be fed again; `None` if no value does.
    pub(crate) fn starting_with(first: u8) -> Option<Self> {
        match first {
            b'{' | b'[' => Some(Self::Container(ContainerScanner::default())),
            b'"' => Some(Self::String { escaped: false, opened: false }),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Some(Self::Scalar),
            _ => None,
        }
    }

    /// Scans the next bytes and returns how many of them belong to the value, if it ends among them.
    ///
    /// A number ends at the byte after it, which is not counted.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Container(container) => container.feed(bytes),
            Self::String { escaped, opened } => {
                let mut at = 0;
                if !*opened && !bytes.is_empty() {
                    *opened = true;
                    at = 1;
                }
                if *escaped && at < bytes.len() {
                    *escaped = false;
                    at += 1;
                }
                loop {
                    let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
                    if bytes[found] == b'"' {
                        return Some(found + 1);
                    }
                    at = found + 2;
                    *escaped = at > bytes.len();
                }
            }
            Self::Scalar => bytes
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b' ' | b'\t' | b'\n' | b'\r')),
        }
    }

    /// Returns whether the value is complete if no bytes follow.
    pub(crate) fn may_end_here(&self) -> bool {
        matches!(self, Self::Scalar)
    }
}

impl ContainerScanner {
    fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let (blocks, tail) = bytes.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            if let Some(end) = self.block(masks(block), BLOCK) {
                return Some(index * BLOCK + end);
            }
        }
        if tail.is_empty() {
            return None;
        }
        self.tail(tail).map(|end| blocks.len() * BLOCK + end)
    }

    /// Scans less than a block.
    fn tail(&mut self, tail: &[u8]) -> Option<usize> {
        let mut block = [b' '; BLOCK];
        block[..tail.len()].copy_from_slice(tail);
        self.block(masks(&block), tail.len())
    }

    /// Scans the first `len` bytes of a block and returns the position after the last bracket, if it is in the block.
    #[inline(always)]
    fn block(&mut self, masks: Masks, len: usize) -> Option<usize> {
        let quotes = masks.quotes & !self.escaped_bytes(masks.backslashes, len);
        let mut in_string = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            in_string ^= in_string << shift;
        }
        if self.in_string {
            in_string = !in_string;
        }
        self.in_string ^= quotes.count_ones() % 2 == 1;
        let (opens, closes) = (masks.opens & !in_string, masks.closes & !in_string);
        let closing = closes.count_ones() as usize;
        if closing < self.depth {
            // In any order, these cannot close the outermost bracket.
            self.depth += opens.count_ones() as usize;
            self.depth -= closing;
            return None;
        }
        self.last_bracket(opens, closes)
    }

    /// Searches the closing brackets of a block that may contain the last one.
    #[inline(never)]
    fn last_bracket(&mut self, opens: u64, mut closes: u64) -> Option<usize> {
        let mut closed = 0;
        while closes != 0 {
            let at = closes.trailing_zeros();
            closed += 1;
            let opened = (opens & ((1 << at) - 1)).count_ones() as usize;
            if self.depth + opened <= closed {
                return Some(at as usize + 1);
            }
            closes &= closes - 1;
        }
        self.depth = self.depth + opens.count_ones() as usize - closed;
        None
    }

    /// Returns the bytes that are escaped by a preceding backslash.
    #[inline(always)]
    fn escaped_bytes(&mut self, backslashes: u64, len: usize) -> u64 {
        let mut escaped = u64::from(self.escaped);
        self.escaped = false;
        let mut left = backslashes & !escaped;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            if at + 1 >= len {
                self.escaped = true;
                break;
            }
            escaped |= 1 << (at + 1);
            left &= !(0b11 << at);
        }
        escaped
    }
}

/// Returns the position after the value that starts at `at`; `None` if the value is incomplete.
pub(crate) fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let mut scanner = ValueScanner::starting_with(*rest.first()?)?;
    match scanner.feed(rest) {
        Some(len) => Some(at + len),
        None if scanner.may_end_here() => Some(text.len()),
        None => None,
    }
}

/// Returns the position of the first byte at or after `at` that is not white space.
#[inline]
pub(crate) fn skip_whitespace(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the end that a byte-by-byte scan finds.
    fn slow_end(text: &[u8]) -> Option<usize> {
        let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
        for (index, &byte) in text.iter().enumerate() {
            if in_string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(index + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    proptest::proptest! {
        #[test]
        fn scanner_agrees_with_a_byte_by_byte_scan_at_every_split(
            // Backslashes occur only inside strings.
            parts in proptest::collection::vec(
                proptest::sample::select(vec!["{", "}", "[", "]", "1", ",", " ", "\"a\"", "\"\\\\\"", "\"\\\"\"", "\"{\\\\\\\"\""]),
                0..80,
            ),
            split in 0usize..200,
        ) {
            let text = format!("{{{}", parts.concat()).into_bytes();
            let expected = slow_end(&text);
            let mut whole = ContainerScanner::default();
            assert_eq!(whole.feed(&text), expected);
            let split = split.min(text.len());
            let mut halves = ContainerScanner::default();
            let found = halves.feed(&text[..split]).or_else(|| halves.feed(&text[split..]).map(|end| end + split));
            assert_eq!(found, expected);
        }

        #[test]
        fn string_end_is_found_at_every_split(content in "[a\\\\\"]{0,12}", split in 0usize..20) {
            let quoted = serde_json::to_string(&content).unwrap();
            let text = format!("{quoted},1").into_bytes();
            assert_eq!(value_end(&text, 0), Some(quoted.len()));
            let split = split.min(quoted.len());
            let mut scanner = ValueScanner::starting_with(b'"').unwrap();
            let found = scanner.feed(&text[..split]).or_else(|| scanner.feed(&text[split..]).map(|end| end + split));
            assert_eq!(found, Some(quoted.len()));
        }
    }

    #[test]
    fn scalar_ends_at_the_next_delimiter_or_the_end() {
        assert_eq!(value_end(b"12,3", 0), Some(2));
        assert_eq!(value_end(b"true", 0), Some(4));
        assert_eq!(value_end(b"null}", 0), Some(4));
        assert_eq!(value_end(b"}", 0), None);
        assert_eq!(value_end(b"{\"a\":1", 0), None);
    }
}
