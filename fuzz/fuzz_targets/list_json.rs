//! A JSON list body: the same items in any chunks.

#![no_main]

use klient_fuzz::{check_list, options};
use klient_proto::ListSplitter;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    check_list(data, || ListSplitter::json(options(data)));
});
