//! The preset dictionary of SPDY/3: the text that both ends assume before the first header block.

use std::sync::LazyLock;

/// Returns the dictionary: each of the words after its length, then the rest of the text.
pub(super) fn dictionary() -> &'static [u8] {
    static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes = Vec::with_capacity(LENGTH);
        for word in WORDS {
            // Every word is short.
            bytes.extend_from_slice(&(word.len() as u32).to_be_bytes());
            bytes.extend_from_slice(word.as_bytes());
        }
        for text in TEXT {
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    });
    &DICTIONARY
}

const LENGTH: usize = 1423;

#[rustfmt::skip]
const WORDS: [&str; 65] = [
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding", "accept-language",
    "accept-ranges", "age", "allow", "authorization", "cache-control", "connection", "content-base", "content-encoding",
    "content-language", "content-length", "content-location", "content-md5", "content-range", "content-type", "date", "etag",
    "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
    "last-modified", "location", "max-forwards", "pragma", "proxy-authenticate", "proxy-authorization", "range", "referer",
    "retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning",
    "www-authenticate", "method", "get", "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie",
    "keep-alive", "origin",
];

const TEXT: [&str; 4] = [
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative ",
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal \
     Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 ",
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
     application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch",
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_has_the_checksum_that_peers_expect() {
        let (mut a, mut b) = (1u32, 0u32);
        for byte in dictionary() {
            a = (a + u32::from(*byte)) % 65521;
            b = (b + a) % 65521;
        }
        assert_eq!(dictionary().len(), LENGTH);
        assert_eq!((b << 16) | a, 0xe3c6_a7c2);
    }
}
