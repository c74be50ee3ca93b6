//! A protobuf watch body: the same events in any chunks.

#![no_main]

use klient_fuzz::{check_watch, options};
use klient_proto::WatchSplitter;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    check_watch(data, || WatchSplitter::protobuf(options(data)));
});
