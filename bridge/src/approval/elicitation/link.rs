//! The address of a page that an upstream wants opened: whole, with its host as it is looked up. Nothing is contacted.

use url::{Host, Url};

use crate::reach::{is_loopback, is_secure};

/// An address that a person may be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Whole, as a browser would get it.
    pub(super) url: String,
    /// As it is looked up: letters that look like others show as `xn--…`.
    pub(super) host: String,
    pub(super) warning: Option<String>,
}

impl Link {
    /// # Errors
    /// Why nobody should be sent there, as half a sentence.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("it holds characters that no address holds");
        }
        let url = Url::parse(text).map_err(|_| "it cannot be read")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("only web pages are opened");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it hides its host behind a user name");
        }
        let host = url.host().ok_or("it names no host")?;
        if let Host::Domain(name) = &host
            && !name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        {
            return Err("its host is none that can be looked up");
        }
        let mut warnings = Vec::new();
        if let Host::Domain(name) = &host
            && name.split('.').any(|label| label.starts_with("xn--"))
        {
            warnings
                .push("The host's name holds letters that can look like others: compare it with the one you expect.");
        }
        match (&host, is_loopback(&url)) {
            (_, true) => warnings.push("The page is on this computer."),
            (Host::Ipv4(_) | Host::Ipv6(_), false) => {
                warnings.push("The host has no name, only a number: nothing says whose it is.");
            }
            (Host::Domain(_), false) => {}
        }
        if !is_secure(&url) {
            warnings.push("The connection is not encrypted: others can read and change what you enter there.");
        }
        Ok(Self {
            host: host.to_string(),
            warning: (!warnings.is_empty()).then(|| warnings.join(" ")),
            url: url.into(),
        })
    }
}
