//! Which addresses are contacted at all: never a link-local one, and no other origin because a server says so.

use std::net::{IpAddr, SocketAddr};

use http::StatusCode;
use reqwest::dns;
use url::{Host, Url};

const MAX_REDIRECTS: usize = 5;

/// The link-local address that a URL names literally, if it does.
pub(super) fn link_local_host(url: &Url) -> Option<IpAddr> {
    let literal = match url.host()? {
        Host::Ipv4(ip) => IpAddr::V4(ip),
        Host::Ipv6(ip) => IpAddr::V6(ip),
        Host::Domain(_) => return None,
    };
    is_link_local(literal).then_some(literal)
}

/// Redirects stay on their origin and keep their method.
pub(super) fn follow_same_origin(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
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

/// Resolves names and hands on only addresses that may be contacted, so that the checked address is the one used.
pub(super) struct PublicResolver;

impl dns::Resolve for PublicResolver {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0))
                .await?
                .filter(|address| !is_link_local(address.ip()))
                .collect();
            if found.is_empty() {
                return Err(format!("{host} has no address that may be contacted").into());
            }
            let addresses: dns::Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
