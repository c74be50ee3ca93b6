//! Scalars.

use std::num::{NonZeroI32, NonZeroU8, NonZeroU64};

use super::derives::*;

specs! {
    Signed SignedSpec "Signed" { a: i8, b: i16, c: i32, d: i64, e: isize, f: i128 }
    Unsigned UnsignedSpec "Unsigned" { a: u8, b: u16, c: u32, d: u64, e: usize, f: u128 }
    NonZero NonZeroSpec "NonZero" { a: NonZeroU8, b: NonZeroI32, c: NonZeroU64 }
    Floats FloatsSpec "Floats" { a: f32, b: f64 }
    Booleans BooleansSpec "Booleans" { a: bool }
    Characters CharactersSpec "Characters" { a: char }
    Texts TextsSpec "Texts" { a: String, b: Box<str>, c: std::borrow::Cow<'static, str> }
    Paths PathsSpec "Paths" { a: std::path::PathBuf }
    Durations DurationsSpec "Durations" { a: std::time::Duration }
    Addresses AddressesSpec "Addresses" { a: std::net::Ipv4Addr, b: std::net::Ipv6Addr, c: std::net::IpAddr }
}
