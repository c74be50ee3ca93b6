//! Validation of IP addresses and address ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::{Causes, Field};

/// An address range: its address, and the length of its prefix.
pub(in crate::builtin) struct Range {
    pub(in crate::builtin) address: IpAddr,
    pub(in crate::builtin) prefix: u8,
}

impl Range {
    /// Returns whether an address is in the range.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                masked(own.to_bits().into(), self.prefix, 32) == masked(other.to_bits().into(), self.prefix, 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                masked(own.to_bits(), self.prefix, 128) == masked(other.to_bits(), self.prefix, 128)
            }
            _ => false,
        }
    }

    fn has_bits_beyond_prefix(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => masked(address.to_bits().into(), self.prefix, 32) != u128::from(address.to_bits()),
            IpAddr::V6(address) => masked(address.to_bits(), self.prefix, 128) != address.to_bits(),
        }
    }
}

fn masked(bits: u128, prefix: u8, width: u8) -> u128 {
    let rest = u32::from(width.saturating_sub(prefix));
    bits.checked_shr(rest).and_then(|bits| bits.checked_shl(rest)).unwrap_or_default()
}

/// Parses an address. Numbers of IPv4 addresses may have leading zeros.
pub(in crate::builtin) fn parse(text: &str) -> Option<IpAddr> {
    match text.parse() {
        Ok(IpAddr::V6(address)) => Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)),
        Ok(address) => Some(address),
        Err(_) => sloppy(text).map(IpAddr::V4),
    }
}

fn sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Parses an address range.
pub(in crate::builtin) fn parse_range(text: &str) -> Option<Range> {
    let (address, prefix) = text.split_once('/')?;
    let is_mapped = address.parse::<Ipv6Addr>().is_ok();
    let address = if is_mapped { address.parse().ok()? } else { parse(address)? };
    let prefix = Some(prefix).filter(|prefix| !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit()));
    let prefix: u8 = prefix?.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    (prefix <= width).then_some(Range { address, prefix })
}

impl Field<'_, '_> {
    /// Validates an address. Addresses of the stored object stay valid.
    pub(super) fn address(&self, before: &[&str], causes: &mut Causes) {
        let text = self.text();
        if before.contains(&text) {
            return;
        }
        match (parse(text), text.parse::<IpAddr>()) {
            (None, _) => self.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", causes),
            (Some(_), Err(_)) => self.invalid("must not have leading 0s", causes),
            (Some(_), Ok(IpAddr::V6(address))) if address.to_ipv4_mapped().is_some() => {
                self.invalid("must not be an IPv4-mapped IPv6 address", causes);
            }
            _ => {}
        }
    }

    /// Validates an address range. Ranges of the stored object stay valid.
    pub(super) fn address_range(&self, before: &[&str], causes: &mut Causes) {
        self.address_range_text(self.text(), before, causes);
    }

    /// Validates a text of this field as an address range.
    pub(super) fn address_range_text(&self, text: &str, before: &[&str], causes: &mut Causes) {
        if before.contains(&text) {
            return;
        }
        let Some(range) = parse_range(text) else {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            return self.invalid_as(text, detail, causes);
        };
        let (address, prefix) = text.split_once('/').unwrap_or_default();
        let has_zeros = prefix.len() > 1 && prefix.starts_with('0');
        match address.parse::<IpAddr>() {
            Err(_) => self.invalid_as(text, "must not have leading 0s in IP or prefix length", causes),
            Ok(_) if has_zeros => self.invalid_as(text, "must not have leading 0s in IP or prefix length", causes),
            Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
                self.invalid_as(text, "must not have an IPv4-mapped IPv6 address", causes);
            }
            Ok(_) if range.has_bits_beyond_prefix() => {
                self.invalid_as(text, "must not have bits set beyond the prefix length", causes);
            }
            Ok(_) => {}
        }
    }

    /// Validates that an address can be that of an endpoint.
    pub(super) fn endpoint_address(&self, causes: &mut Causes) {
        let text = self.text();
        let Some(address) = parse(text) else { return self.invalid("must be a valid IP address", causes) };
        if address.is_unspecified() {
            self.invalid(&format!("may not be unspecified ({text})"), causes);
        }
        if address.is_loopback() {
            self.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)", causes);
        }
        let (is_local, is_local_multicast) = match address {
            IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
            IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02),
        };
        if is_local {
            self.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)", causes);
        }
        if is_local_multicast {
            self.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)", causes);
        }
    }
}
