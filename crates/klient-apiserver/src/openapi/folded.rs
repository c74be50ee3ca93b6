//! The recorded documents of the real server, folded: a value that occurs repeatedly is stored once.
//!
//! `documents.gz` is text. Each line up to the first empty line is a piece of JSON. Each line after it is a document: its name, its
//! entity tag and its JSON, separated by tabs. `\x01<number>\x02` stands for the piece with that number. A piece contains only
//! pieces with lower numbers. `cargo xtask registry` writes the file.
//!
//! Documents keep the bytes of the real server, so that their entity tags are the real server's, too.

use std::{collections::BTreeMap, io::Read as _, sync::OnceLock};

/// All recorded documents.
pub(super) struct Folded {
    pieces: Vec<&'static str>,
    documents: BTreeMap<&'static str, Entry>,
}

struct Entry {
    etag: &'static str,
    text: &'static str,
}

impl Folded {
    /// Returns the documents, which are decompressed at the first call.
    pub(super) fn recorded() -> &'static Self {
        static TEXT: OnceLock<String> = OnceLock::new();
        static FOLDED: OnceLock<Folded> = OnceLock::new();
        FOLDED.get_or_init(|| Self::parse(TEXT.get_or_init(decompress)))
    }

    fn parse(text: &'static str) -> Self {
        let (pieces, documents) = text.split_once("\n\n").expect("the file is generated and tested");
        let document = |line: &'static str| {
            let mut columns = line.splitn(3, '\t');
            Some((columns.next()?, Entry { etag: columns.next()?, text: columns.next()? }))
        };
        Self { pieces: pieces.lines().collect(), documents: documents.lines().filter_map(document).collect() }
    }

    /// Returns the names of the documents.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.documents.keys().copied()
    }

    /// Returns the entity tag of a document, without quotes.
    pub(super) fn etag(&self, name: &str) -> Option<&'static str> {
        Some(self.documents.get(name)?.etag)
    }

    /// Returns the JSON of a document.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let mut out = String::new();
        self.unfold(self.documents.get(name)?.text, &mut out);
        Some(out)
    }

    fn unfold(&self, mut folded: &str, out: &mut String) {
        while let Some((before, rest)) = folded.split_once('\u{1}') {
            out.push_str(before);
            let (number, rest) = rest.split_once('\u{2}').unwrap_or((rest, ""));
            if let Some(piece) = number.parse::<usize>().ok().and_then(|number| self.pieces.get(number)) {
                self.unfold(piece, out);
            }
            folded = rest;
        }
        out.push_str(folded);
    }
}

fn decompress() -> String {
    let mut text = String::new();
    let compressed = include_bytes!("documents.gz");
    let read = flate2::read::GzDecoder::new(&compressed[..]).read_to_string(&mut text);
    read.expect("the file is generated and tested");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_documents_have_their_etags() {
        let folded = Folded::recorded();
        for name in folded.names().filter(|name| !folded.etag(name).unwrap().is_empty()) {
            let text = folded.text(name).unwrap();
            assert_eq!(crate::openapi::etag(text.as_bytes()), folded.etag(name).unwrap(), "{name}");
        }
        assert!(folded.etag("api/v1").is_some_and(|etag| etag.len() == 128));
    }

    #[test]
    fn pieces_contain_only_earlier_pieces() {
        for (at, piece) in Folded::recorded().pieces.iter().enumerate() {
            for number in piece.split('\u{1}').skip(1).filter_map(|rest| rest.split_once('\u{2}')) {
                assert!(number.0.parse::<usize>().unwrap() < at, "piece {at}");
            }
        }
    }
}
