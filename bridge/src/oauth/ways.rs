//! The ways back from a browser, and which of them a sign-in takes. Pure.

use super::{
    callback::{CALLBACK_PATH, DEEP_LINK},
    fault::SignInError,
};
use crate::{config::Redirect, snapshot::RedirectKind};

/// The ways back that reach this process now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ways {
    pub(super) deep_links: bool,
    /// Of our own server on 127.0.0.1.
    pub(super) port: Option<u16>,
}

/// Who chooses a way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The person or the entry: this one or none.
    This(RedirectKind),
    /// This one, where it reaches us.
    Rather(RedirectKind),
    Any,
}

impl Choice {
    /// What the person says now counts, then the entry, then what they chose before.
    pub(super) fn of(now: Option<RedirectKind>, entry: Redirect, before: Option<RedirectKind>) -> Self {
        match (now, entry, before) {
            (Some(kind), _, _) => Self::This(kind),
            (None, Redirect::DeepLink, _) => Self::This(RedirectKind::DeepLink),
            (None, Redirect::Loopback, _) => Self::This(RedirectKind::Loopback),
            (None, Redirect::Auto, Some(kind)) => Self::Rather(kind),
            (None, Redirect::Auto, None) => Self::Any,
        }
    }
}

/// Who knows the address of the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registers {
    /// This app registers it, and sees whether the server takes it.
    ThisApp,
    /// It was registered elsewhere.
    Others,
}

impl Ways {
    /// The exact address of a way back; `None` where it does not reach us.
    pub(super) fn uri(self, kind: RedirectKind) -> Option<String> {
        match kind {
            RedirectKind::DeepLink => self.deep_links.then(|| DEEP_LINK.to_owned()),
            RedirectKind::Loopback => self.port.map(|port| format!("http://127.0.0.1:{port}{CALLBACK_PATH}")),
        }
    }

    /// Ways to try, the first one first; never empty.
    pub(super) fn to_try(
        self,
        choice: Choice,
        registers: Registers,
    ) -> Result<Vec<(RedirectKind, String)>, SignInError> {
        let wanted: &[RedirectKind] = match (choice, registers) {
            (Choice::This(kind), _) => return self.only(kind),
            (Choice::Rather(kind), _) if self.uri(kind).is_some() => return self.only(kind),
            (Choice::Rather(_) | Choice::Any, Registers::ThisApp) => &[RedirectKind::DeepLink, RedirectKind::Loopback],
            // The specification allows only addresses on this computer or https, so that is what people register.
            (Choice::Rather(_) | Choice::Any, Registers::Others) => &[RedirectKind::Loopback],
        };
        let ways: Vec<_> = wanted
            .iter()
            .filter_map(|kind| Some((*kind, self.uri(*kind)?)))
            .collect();
        if ways.is_empty() {
            self.only(RedirectKind::Loopback)
        } else {
            Ok(ways)
        }
    }

    fn only(self, kind: RedirectKind) -> Result<Vec<(RedirectKind, String)>, SignInError> {
        match self.uri(kind) {
            Some(uri) => Ok(vec![(kind, uri)]),
            None => Err(SignInError::CallbackUnavailable(
                match kind {
                    RedirectKind::DeepLink => "links of this app are not registered on this computer",
                    RedirectKind::Loopback => "another program has its port",
                }
                .to_owned(),
            )),
        }
    }

    /// The way that is left.
    pub(super) fn other(self, than: RedirectKind) -> Option<RedirectKind> {
        let other = match than {
            RedirectKind::DeepLink => RedirectKind::Loopback,
            RedirectKind::Loopback => RedirectKind::DeepLink,
        };
        self.uri(other).map(|_| other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RedirectKind::{DeepLink, Loopback};

    fn kinds(ways: Ways, choice: Choice, registers: Registers) -> Option<Vec<RedirectKind>> {
        let ways = ways.to_try(choice, registers).ok()?;
        Some(ways.into_iter().map(|(kind, _)| kind).collect())
    }

    #[test]
    fn by_itself_a_link_is_tried_where_the_server_says_whether_it_takes_it() {
        let (both, none) = (
            Ways {
                deep_links: true,
                port: Some(7771),
            },
            Ways {
                deep_links: false,
                port: None,
            },
        );
        let (headless, no_port) = (
            Ways {
                deep_links: false,
                ..both
            },
            Ways { port: None, ..both },
        );
        let any = |ways, registers| kinds(ways, Choice::Any, registers);
        assert_eq!(any(both, Registers::ThisApp), Some(vec![DeepLink, Loopback]));
        assert_eq!(any(both, Registers::Others), Some(vec![Loopback]));
        assert_eq!(any(headless, Registers::ThisApp), Some(vec![Loopback]));
        assert_eq!(any(no_port, Registers::ThisApp), Some(vec![DeepLink]));
        assert_eq!(any(no_port, Registers::Others), None);
        assert_eq!(any(none, Registers::ThisApp), None);
        assert_eq!(
            both.uri(Loopback).as_deref(),
            Some("http://127.0.0.1:7771/mcp/oauth/callback")
        );
    }

    #[test]
    fn a_choice_is_kept_to_where_it_reaches_us() {
        let (both, headless) = (
            Ways {
                deep_links: true,
                port: Some(1),
            },
            Ways {
                deep_links: false,
                port: Some(1),
            },
        );
        let of = |ways, choice| kinds(ways, choice, Registers::ThisApp);
        assert_eq!(of(both, Choice::This(Loopback)), Some(vec![Loopback]));
        assert_eq!(of(headless, Choice::This(DeepLink)), None);
        assert_eq!(of(headless, Choice::Rather(DeepLink)), Some(vec![Loopback]));
        assert_eq!(of(both, Choice::Rather(Loopback)), Some(vec![Loopback]));
        let spoken = Choice::of(Some(Loopback), Redirect::DeepLink, Some(DeepLink));
        assert_eq!(spoken, Choice::This(Loopback));
        assert_eq!(
            Choice::of(None, Redirect::Auto, Some(Loopback)),
            Choice::Rather(Loopback)
        );
        assert_eq!((both.other(Loopback), headless.other(Loopback)), (Some(DeepLink), None));
    }
}
