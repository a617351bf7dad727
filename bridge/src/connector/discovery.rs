//! Reading all that an upstream offers: tools, resources, resource templates and prompts, each list whole and within
//! bounds that no upstream can outrun. Never decides what of it is shown to whom.

mod offers;
mod pages;

use std::{borrow::Cow, time::Duration};

use tokio::time::Instant;

pub use offers::{Argument, Items, Offers, Prompt, Rejected, Resource, Template};
pub use pages::RawList;

use super::{cause::Cause, log::Log, session::Session};
use crate::secrets::Redactor;

/// Longest wait for lists that a connector works without. Some servers ask a remote service for them; tools must not
/// wait longer for that than a person would.
const EXTRAS_TIME: Duration = Duration::from_secs(10);

/// One of the lists of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    /// The member of the result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// What its items are called in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resource templates",
            Self::Prompts => "prompts",
        }
    }
}

/// Why a list could not be read.
#[derive(Debug, Clone, PartialEq)]
pub enum ListFault {
    /// The upstream does not know the request (-32601).
    Unsupported,
    /// It answered with an error; its own words, shortened.
    Refused(String),
    /// It answered with something that holds no list.
    NoList,
    /// No answer in time; it was told to stop.
    Late,
    /// The connection broke or could not carry the request.
    Lost(Cause),
}

impl ListFault {
    /// As the reason for which a session is given up.
    fn into_cause(self, kind: ListKind) -> Cause {
        let noun = kind.noun();
        match self {
            Self::Unsupported => Cause::Protocol(format!("it refused to list its {noun} (the method is not known)")),
            Self::Refused(words) => Cause::Protocol(format!("it refused to list its {noun} ({words})")),
            Self::NoList => Cause::Protocol(format!("its list of {noun} has no list in it")),
            Self::Late => Cause::Network(format!("its list of {noun} did not arrive in time")),
            Self::Lost(cause) => cause,
        }
    }
}

/// Everything that was listed at one time, as received.
#[derive(Debug)]
pub struct Lists {
    pub tools: RawList,
    pub offers: RawOffers,
}

/// The lists besides tools, as received; `None` = could not be read this time, so that what was known stays.
#[derive(Debug, Default)]
pub struct RawOffers {
    pub resources: Option<RawList>,
    pub templates: Option<RawList>,
    pub prompts: Option<RawList>,
}

impl Lists {
    /// The lists as they may be kept and shown.
    ///
    /// # Errors
    /// `Protocol`, should a list be none any more; nothing is shown then.
    pub fn without_secrets(self, redactor: &Redactor) -> Result<Self, Cause> {
        let hidden = |list: RawList| match redactor.result(&list.text) {
            Cow::Borrowed(_) => Ok(list),
            Cow::Owned(text) => {
                let remarks = list.remarks;
                let list =
                    RawList::from_text(text).map_err(|_| Cause::Protocol("one of its lists is unreadable".into()));
                list.map(|list| RawList { remarks, ..list })
            }
        };
        let offers = self.offers;
        Ok(Self {
            tools: hidden(self.tools)?,
            offers: RawOffers {
                resources: offers.resources.map(hidden).transpose()?,
                templates: offers.templates.map(hidden).transpose()?,
                prompts: offers.prompts.map(hidden).transpose()?,
            },
        })
    }
}

/// Reads every list that the upstream advertises, all at once. What is strange about them goes to `log`.
///
/// # Errors
/// The cause, when the tools cannot be listed or the connection breaks. Another list that is refused, unreadable or
/// late is no fault of the connector.
pub async fn read_lists(session: &Session, log: &Log, deadline: Instant) -> Result<Lists, Cause> {
    let now = Instant::now();
    // Half of a short connect time, so that the tools are there within it.
    let extras_by = now + EXTRAS_TIME.min(deadline.saturating_duration_since(now) / 2);
    let (tools, resources, templates, prompts) = tokio::try_join!(
        read_tools(session, log, deadline),
        read_extra(session, log, ListKind::Resources, extras_by),
        read_extra(session, log, ListKind::Templates, extras_by),
        read_extra(session, log, ListKind::Prompts, extras_by),
    )?;
    Ok(Lists {
        tools,
        offers: RawOffers {
            resources,
            templates,
            prompts,
        },
    })
}

async fn read_tools(session: &Session, log: &Log, deadline: Instant) -> Result<RawList, Cause> {
    let kind = ListKind::Tools;
    read(session, log, kind, deadline)
        .await
        .map_err(|fault| fault.into_cause(kind))
}

async fn read_extra(session: &Session, log: &Log, kind: ListKind, deadline: Instant) -> Result<Option<RawList>, Cause> {
    let fault = match read(session, log, kind, deadline).await {
        Ok(list) => return Ok(Some(list)),
        Err(fault) => fault,
    };
    let known = match &fault {
        ListFault::Unsupported => Some(RawList::empty()),
        ListFault::Refused(_) | ListFault::NoList | ListFault::Late => None,
        ListFault::Lost(cause) if session.is_over() || is_of_the_connection(cause) => {
            return Err(fault.into_cause(kind));
        }
        ListFault::Lost(_) => None,
    };
    let noun = kind.noun();
    log.line(&format!(
        "The {noun} could not be listed: {}",
        fault.into_cause(kind).sentence()
    ));
    Ok(known)
}

/// Whether a cause concerns more than the one request.
fn is_of_the_connection(cause: &Cause) -> bool {
    match cause {
        Cause::HttpStatus { .. } | Cause::Protocol(_) => false,
        Cause::SignIn(_)
        | Cause::TokenRefused { .. }
        | Cause::UnsupportedAuth(_)
        | Cause::Keychain(_)
        | Cause::Authority(_)
        | Cause::NeedsReview { .. }
        | Cause::TrustUnknown(_)
        | Cause::Paused
        | Cause::MissingSecret(_)
        | Cause::Entry(_)
        | Cause::ProgramNotFound(_)
        | Cause::NotStarted(_)
        | Cause::Exited(_)
        | Cause::NoAnswer(_)
        | Cause::Network(_)
        | Cause::Stopped
        | Cause::GivenUp(_) => true,
    }
}

async fn read(session: &Session, log: &Log, kind: ListKind, deadline: Instant) -> Result<RawList, ListFault> {
    if !session.lists(kind) {
        return Ok(RawList::empty());
    }
    let list = pages::read_all(kind, |cursor| session.list_page(kind, cursor, deadline)).await?;
    for remark in &list.remarks {
        log.line(&format!("The {}: {remark}", kind.noun()));
    }
    Ok(list)
}
