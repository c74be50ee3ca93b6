//! Warnings about addresses and address ranges that are not in their usual form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Told, warn};
use crate::builtin::rules::{Field, parse_address, parse_range};

/// Adds a warning about an address that Go reads, but does not write in this form.
pub(super) fn address(field: &Field<'_, '_>, told: &mut Told) {
    let text = field.text();
    let Some(read) = parse_address(text) else { return };
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => {
            if address.to_string() != text {
                let why = format!("IPv6 address {text:?} should be in RFC 5952 canonical format ({:?})", text_of(read));
                warn(field, &why, told);
            }
        }
        Ok(IpAddr::V4(_)) => {}
        _ => {
            let why = format!("non-standard IP address {text:?} is invalid: use {:?}", text_of(read));
            warn(field, &why, told);
        }
    }
}

/// Adds warnings about the addresses of a list.
pub(super) fn addresses(list: &Field<'_, '_>, told: &mut Told) {
    list.items().for_each(|item| address(&item, told));
}

/// Adds warnings about an address range: bits beyond its prefix, or another form than the usual one.
pub(super) fn range(field: &Field<'_, '_>, told: &mut Told) {
    let text = field.text();
    let Some(read) = parse_range(text) else { return };
    let network = network(read.address, read.prefix);
    let is_exact = network == read.address;
    let preferred = range_text(network, read.prefix);
    if !is_exact {
        let width = if read.address.is_ipv4() { 32 } else { 128 };
        let single = format!("{}/{width}", text_of(read.address));
        let why = format!("CIDR value {text:?} is ambiguous in this context (should be {preferred:?} or {single:?}?)");
        warn(field, &why, told);
    }
    let (address, prefix) = text.split_once('/').unwrap_or_default();
    let has_zeros = prefix.len() > 1 && prefix.starts_with('0');
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() && !has_zeros => {
            let canonical = format!("{address}/{prefix}");
            if is_exact && canonical != text {
                let why = format!("IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})");
                warn(field, &why, told);
            }
        }
        Ok(IpAddr::V4(_)) if !has_zeros => {}
        _ => warn(field, &format!("non-standard CIDR value {text:?} is invalid: use {preferred:?}"), told),
    }
}

/// Returns the first address of a range.
fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or_default();
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or_default();
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// Returns the text of an address. Go writes IPv4 addresses in IPv6 form as IPv4 addresses.
fn text_of(address: IpAddr) -> String {
    address.to_canonical().to_string()
}

/// Returns the text of a range. Go writes ranges of IPv4 addresses in IPv6 form as those of IPv4 addresses.
fn range_text(network: IpAddr, prefix: u8) -> String {
    match (network, network.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(mapped)) => format!("{mapped}/{}", prefix.saturating_sub(96)),
        _ => format!("{network}/{prefix}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(warn: fn(&Field<'_, '_>, &mut Told), text: &str, expected: &[&str]) {
        let object = json!({"a": text});
        let mut told = Told::default();
        warn(&Field::of(&object, "a"), &mut told);
        let expected: Vec<String> = expected.iter().map(|why| format!("a: {why}")).collect();
        assert_eq!(told.texts, expected, "about {text}");
    }

    #[test]
    fn addresses_in_other_forms_are_warned_about() {
        check(address, "10.1.2.3", &[]);
        check(address, "2001:db8::1", &[]);
        check(address, "no address", &[]);
        check(address, "010.1.2.3", &["non-standard IP address \"010.1.2.3\" is invalid: use \"10.1.2.3\""]);
        check(address, "::ffff:1.2.3.4", &["non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""]);
        let why = "IPv6 address \"2001:DB8:0::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")";
        check(address, "2001:DB8:0::1", &[why]);
    }

    #[test]
    fn ranges_in_other_forms_are_warned_about() {
        check(range, "10.1.0.0/16", &[]);
        check(range, "0.0.0.0/0", &[]);
        check(range, "2001:db8::/64", &[]);
        let ambiguous =
            "CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)";
        check(range, "10.1.2.3/8", &[ambiguous]);
        check(range, "10.0.0.0/08", &["non-standard CIDR value \"10.0.0.0/08\" is invalid: use \"10.0.0.0/8\""]);
        let why = "IPv6 CIDR value \"2001:DB8::/64\" should be in RFC 5952 canonical format (\"2001:db8::/64\")";
        check(range, "2001:DB8::/64", &[why]);
        let mapped = "non-standard CIDR value \"::ffff:1.2.3.0/120\" is invalid: use \"1.2.3.0/24\"";
        check(range, "::ffff:1.2.3.0/120", &[mapped]);
    }
}
