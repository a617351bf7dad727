//! Which addresses are contacted: never a link-local one, no other origin because a server says so, and none on this
//! computer or in the person's own network because a server out there names it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use http::StatusCode;
use reqwest::dns;
use url::{Host, Url};

const MAX_REDIRECTS: usize = 5;

/// The link-local address that a URL names literally, if it does.
pub(crate) fn link_local_host(url: &Url) -> Option<IpAddr> {
    let literal = match url.host()? {
        Host::Ipv4(ip) => IpAddr::V4(ip),
        Host::Ipv6(ip) => IpAddr::V6(ip),
        Host::Domain(_) => return None,
    };
    is_link_local(literal).then_some(literal)
}

/// Redirects stay on their origin and keep their method.
pub(crate) fn follow_same_origin(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let same_origin = attempt
        .previous()
        .last()
        .is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps_method && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some_and(|v4| v4.is_link_local()),
    }
}

/// How near a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Zone {
    /// On this computer.
    Loopback,
    /// In a network of the person's.
    Private,
    Public,
}

impl Zone {
    /// How near a server is that the person named. Only names of this computer itself count as such: any other name could
    /// be pointed here by whoever owns it.
    ///
    /// # Errors
    /// When its name cannot be looked up.
    pub(crate) async fn of(url: &Url) -> io::Result<Self> {
        if is_loopback(url) {
            return Ok(Self::Loopback);
        }
        let addresses: Vec<IpAddr> = match url.host() {
            Some(Host::Ipv4(ip)) => vec![ip.into()],
            Some(Host::Ipv6(ip)) => vec![ip.into()],
            Some(Host::Domain(name)) => tokio::net::lookup_host((name, 0))
                .await?
                .map(|found| found.ip())
                .collect(),
            None => Vec::new(),
        };
        let is_private = |ip: &IpAddr| nearness(*ip) == Some(Self::Private);
        Ok(if !addresses.is_empty() && addresses.iter().all(is_private) {
            Self::Private
        } else {
            Self::Public
        })
    }

    /// Whether something that a server so near names may be contacted at this address.
    pub(crate) fn may_name(self, ip: IpAddr) -> bool {
        match (nearness(ip), self) {
            (None, Self::Loopback | Self::Private | Self::Public) => false,
            (Some(Self::Public), Self::Loopback | Self::Private | Self::Public) => true,
            (Some(Self::Private), of) => of != Self::Public,
            (Some(Self::Loopback), of) => of == Self::Loopback,
        }
    }

    /// Whether a URL that names an address literally, or this computer, may be contacted; names are checked as they are
    /// looked up.
    pub(crate) fn may_name_url(self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(ip)) => self.may_name(ip.into()),
            Some(Host::Ipv6(ip)) => self.may_name(ip.into()),
            Some(Host::Domain(_)) => self == Self::Loopback || !is_loopback(url),
            None => false,
        }
    }
}

/// Whether what is sent there cannot be read on the way: it is encrypted, or does not leave this computer.
pub(crate) fn is_secure(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Whether a URL names this computer.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_name_of_this_computer(name),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
        None => false,
    }
}

/// RFC 6761 §6.3; what these names resolve to is checked all the same, because not every system keeps to it.
fn is_name_of_this_computer(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a name may stand for this address, for an address that the person gave or that a server so near named.
fn may_be_contacted(name: &str, ip: IpAddr, named_by: Option<Zone>) -> bool {
    if is_name_of_this_computer(name) && !ip.to_canonical().is_loopback() {
        return false;
    }
    match named_by {
        None => !is_link_local(ip),
        Some(zone) => zone.may_name(ip),
    }
}

/// `None`: an address that nothing is contacted at.
fn nearness(ip: IpAddr) -> Option<Zone> {
    if is_link_local(ip) || ip.is_multicast() {
        return None;
    }
    match ip {
        IpAddr::V4(ip) => near_v4(ip),
        IpAddr::V6(ip) => {
            let segments = ip.segments();
            // Addresses of the older family in newer clothes: mapped, and behind a translator (RFC 6052).
            let inner = match segments {
                [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some((high, low)),
                _ => None,
            };
            if let Some((high, low)) = inner {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                return near_v4(Ipv4Addr::new(a, b, c, d));
            }
            if ip.is_loopback() || ip.is_unspecified() {
                Some(Zone::Loopback)
            } else if ip.is_unique_local() {
                Some(Zone::Private)
            } else {
                Some(Zone::Public)
            }
        }
    }
}

fn near_v4(ip: Ipv4Addr) -> Option<Zone> {
    let [first, second, ..] = ip.octets();
    if ip.is_link_local() || ip.is_broadcast() || ip.is_multicast() {
        None
    } else if ip.is_loopback() || first == 0 {
        Some(Zone::Loopback)
    } else if ip.is_private() || (first == 100 && (64..128).contains(&second)) {
        Some(Zone::Private)
    } else {
        Some(Zone::Public)
    }
}

/// Resolves names and hands on only addresses that may be contacted, so that the checked address is the one used.
pub(crate) enum Resolver {
    /// For an address that the person gave: anything but link-local ones.
    Given,
    /// For what a server so near named.
    NamedBy(Zone),
}

impl dns::Resolve for Resolver {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let zone = match self {
            Self::Given => None,
            Self::NamedBy(zone) => Some(*zone),
        };
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0))
                .await?
                .filter(|address| may_be_contacted(&host, address.ip(), zone))
                .collect();
            if found.is_empty() {
                return Err(format!("{host} has no address that may be contacted").into());
            }
            let addresses: dns::Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_server_out_there_names_nothing_in_here() {
        let own_network = [
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "100.64.0.1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
        ];
        let this_computer = ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"];
        let never = [
            "169.254.169.254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
        ];
        let out_there = ["93.184.216.34", "2606:2800:220:1::1"];
        for (addresses, allowed) in [
            (&own_network[..], [true, true, false]),
            (&this_computer[..], [true, false, false]),
            (&never[..], [false, false, false]),
            (&out_there[..], [true, true, true]),
        ] {
            for address in addresses {
                let zones = [Zone::Loopback, Zone::Private, Zone::Public];
                let found = zones.map(|zone| zone.may_name(address.parse().unwrap()));
                assert_eq!(found, allowed, "{address}");
            }
        }
    }

    #[test]
    fn a_name_of_this_computer_stands_for_no_other_address() {
        for (name, ip, may) in [
            ("localhost", "127.0.0.1", true),
            ("localhost.", "::1", true),
            ("app.localhost", "::ffff:127.0.0.1", true),
            ("app.localhost", "93.184.216.34", false),
            ("localhost", "10.0.0.1", false),
            ("example.com", "93.184.216.34", true),
        ] {
            for zone in [None, Some(Zone::Loopback)] {
                assert_eq!(may_be_contacted(name, ip.parse().unwrap(), zone), may, "{name} {ip}");
            }
        }
    }

    #[test]
    fn what_is_sent_is_encrypted_or_stays_on_this_computer() {
        for (text, is_safe) in [
            ("https://example.com/mcp", true),
            ("http://127.0.0.1:80/mcp", true),
            ("http://[::1]/mcp", true),
            ("http://[::ffff:127.0.0.1]/mcp", true),
            ("http://localhost:3000/mcp", true),
            ("http://app.localhost/mcp", true),
            ("http://example.com/mcp", false),
            ("http://10.0.0.1/mcp", false),
            ("http://localhost.example.com/mcp", false),
            ("http://127.0.0.1.nip.io/mcp", false),
            ("ws://127.0.0.1/mcp", false),
        ] {
            assert_eq!(is_secure(&url(text)), is_safe, "{text}");
        }
    }

    #[tokio::test]
    async fn only_its_own_names_are_this_computer() {
        for (text, zone) in [
            ("http://localhost:1/", Zone::Loopback),
            ("http://127.0.0.1/", Zone::Loopback),
            ("http://[::1]/", Zone::Loopback),
            ("https://10.1.2.3/", Zone::Private),
            ("https://93.184.216.34/", Zone::Public),
        ] {
            assert_eq!(Zone::of(&url(text)).await.unwrap(), zone, "{text}");
        }
        assert!(!Zone::Public.may_name_url(&url("http://localhost/")));
        assert!(!Zone::Private.may_name_url(&url("http://127.0.0.1/")));
        assert!(Zone::Loopback.may_name_url(&url("http://localhost/")));
        assert!(Zone::Public.may_name_url(&url("https://example.com/")));
    }
}
