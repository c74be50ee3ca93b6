//! The blocks of PEM data, as Go finds them.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A block of PEM data.
pub(super) struct Block {
    pub(super) label: String,
    pub(super) contents: Vec<u8>,
}

/// Returns the blocks of PEM data. Whatever is not a block is ignored.
pub(super) fn blocks(data: &[u8]) -> Vec<Block> {
    // Only ASCII can be part of a block.
    let text = String::from_utf8_lossy(data);
    let mut rest: &str = &text;
    let mut blocks = Vec::new();
    while let Some((before, after)) = rest.split_once("\n-----END ") {
        blocks.extend(block(before, after));
        rest = after;
    }
    blocks
}

/// Returns the block between the last begin line of a text and the end line after it.
fn block(before: &str, after: &str) -> Option<Block> {
    let begin = before.rfind(BEGIN).filter(|begin| *begin == 0 || before.as_bytes()[begin - 1] == b'\n')?;
    let block = &before[begin + BEGIN.len()..];
    let (label, mut body) = block.split_once('\n').unwrap_or((block, ""));
    let label = label.trim_end().strip_suffix(DASHES)?;
    let end = after.strip_prefix(label)?.strip_prefix(DASHES)?;
    if !end.lines().next().unwrap_or_default().trim().is_empty() {
        return None;
    }
    // Headers have a colon, and come first.
    while let Some((_, rest)) = body.split_once('\n').filter(|(line, _)| line.contains(':')) {
        body = rest;
    }
    let body: String = body.split_ascii_whitespace().collect();
    Some(Block { label: label.to_owned(), contents: STANDARD.decode(body).ok()? })
}

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_among_other_text() {
        let data = b"x\n-----BEGIN A-----\nAA==\n-----END B-----\n-----BEGIN B-----\r\nk: v\n\nAQ==\n-----END B-----\n\
            -----BEGIN C-----\n-----END C-----\n-----BEGIN D-----\n!\n-----END D-----\n-----BEGIN E-----\nAA==\n";
        let found: Vec<(String, Vec<u8>)> =
            blocks(data).into_iter().map(|block| (block.label, block.contents)).collect();
        assert_eq!(found, [("B".to_owned(), vec![1]), ("C".to_owned(), vec![])]);
    }
}
