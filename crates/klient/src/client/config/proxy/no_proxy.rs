//! `NO_PROXY`: the hosts that are reached directly. The rules are those of Go's `httpproxy`.

use std::net::IpAddr;

/// The hosts that are reached directly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NoProxy {
    all: bool,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Range { network: IpAddr, bits: u32 },
    Address { address: IpAddr, port: Option<u16> },
    Domain { below: String, itself: bool, port: Option<u16> },
}

impl NoProxy {
    /// Parses a list. Invalid entries are skipped, as in Go.
    pub(super) fn parse(list: &str) -> Self {
        let entries = || list.split(',').map(|entry| entry.trim().to_lowercase());
        Self { all: entries().any(|entry| entry == "*"), rules: entries().filter_map(|entry| rule(&entry)).collect() }
    }

    /// Returns whether that host is reached directly. This machine always is.
    pub(super) fn covers(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        let is_local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        is_local || self.all || self.rules.iter().any(|rule| rule.covers(&host, address, port))
    }
}

fn rule(entry: &str) -> Option<Rule> {
    if let Some((network, bits)) = entry.split_once('/') {
        let network = network.parse::<IpAddr>().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= width(network))?;
        // An IPv4 address may be written as an IPv6 address.
        return Some(match network.to_canonical() {
            plain @ IpAddr::V4(_) if network.is_ipv6() => Rule::Range { network: plain, bits: bits.checked_sub(96)? },
            _ => Rule::Range { network, bits },
        });
    }
    let (host, port) = split_port(entry)?;
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(Rule::Address { address: address.to_canonical(), port });
    }
    let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
    let (itself, below) = match name.strip_prefix('.') {
        Some(_) => (false, name.to_owned()),
        None => (true, format!(".{name}")),
    };
    (below.len() > 1).then_some(Rule::Domain { below, itself, port })
}

/// Splits an entry into host and port. An IPv6 address has colons, so only brackets separate a port from it.
fn split_port(entry: &str) -> Option<(&str, Option<u16>)> {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => Some((address, Some(port.parse().ok()?))),
            None => rest.is_empty().then_some((address, None)),
        };
    }
    match entry.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host, Some(port.parse().ok()?))),
        _ => Some((entry, None)),
    }
}

impl Rule {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let fits = |wanted: &Option<u16>| wanted.is_none_or(|wanted| wanted == port);
        match (self, address) {
            (Self::Range { network, bits }, Some(address)) => contains(*network, *bits, address),
            (Self::Address { address: wanted, port }, Some(address)) => *wanted == address && fits(port),
            (Self::Domain { below, itself, port }, None) => {
                (host.ends_with(below.as_str()) || *itself && host == &below[1..]) && fits(port)
            }
            _ => false,
        }
    }
}

fn contains(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let high = |number: u128, width: u32| number.checked_shr(width - bits).unwrap_or_default();
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            high(u32::from(network).into(), 32) == high(u32::from(address).into(), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => high(network.into(), 128) == high(address.into(), 128),
        _ => false,
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All results are those of `golang.org/x/net/http/httpproxy` 0.49.
    #[test]
    fn no_proxy_lists_match_as_in_go() {
        for (list, host, direct) in [
            ("", "example.org", false),
            ("*", "example.org", true),
            ("other, * ,x", "10.0.0.1", true),
            ("example.org", "example.org", true),
            ("example.org", "api.example.org", true),
            ("example.org", "badexample.org", false),
            ("EXAMPLE.org", "Example.ORG", true),
            (".example.org", "example.org", false),
            (".example.org", "api.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "api.example.org", true),
            (" a , example.org:6443 ", "example.org", true),
            ("example.org:443", "example.org", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.0.0.0/8", "10.example.org", false),
            ("0.0.0.0/0", "11.1.2.3", true),
            ("0.0.0.0/0", "[2001:db8::1]", false),
            ("::/0", "[2001:db8::1]", true),
            ("2001:db8::/32", "[2001:db8::1]", true),
            ("2001:db8::/32", "[2001:db9::1]", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1:443", "10.0.0.1", false),
            ("10.0.0.1:6443", "10.0.0.1", true),
            ("[2001:db8::1]:6443", "[2001:db8::1]", true),
            ("[2001:db8::1]:443", "[2001:db8::1]", false),
            ("2001:db8::1", "[2001:db8::1]", true),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("::ffff:10.0.0.0/104", "10.0.0.1", true),
            ("::ffff:10.0.0.0/104", "11.0.0.1", false),
            ("0.0.0.1", "10.0.0.1", false),
            (".", "example.org", false),
            ("*.", "example.org", false),
            ("*example.org", "badexample.org", false),
            ("example.org:x", "example.org", false),
            (",,.,:80,10.0.0.0/99,[::1,x:y", "example.org", false),
        ] {
            assert_eq!(NoProxy::parse(list).covers(host, 6443), direct, "{host} with {list:?}");
        }
    }

    #[test]
    fn loopback_is_always_reached_directly() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(NoProxy::default().covers(host, 80), "{host}");
        }
        assert!(!NoProxy::default().covers("0.0.0.0", 80));
    }
}
