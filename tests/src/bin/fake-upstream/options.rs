//! What the arguments may ask for.

use std::{collections::HashMap, path::PathBuf, time::Duration};

/// How the process as a whole behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Answers everything.
    Ok,
    /// Reads everything, answers nothing.
    Silent,
    /// Answers `server/discover` with an error and `initialize` never.
    NeverInitialize,
    /// Mixes a banner, blank lines, invalid UTF-8, log lines and arrays into its answers.
    Noise,
    /// Writes `--say` to stderr and exits with `--exit` before it reads anything.
    Crash,
    /// Starts a grandchild, exits at the end of its input and leaves the grandchild behind.
    Tree,
    /// Ignores SIGTERM and the end of its input, and so does its grandchild.
    Stubborn,
    /// Never reads its input.
    IgnoresStdin,
    /// Writes `--bytes` to stderr without a line end, as fast as it can, while it answers.
    StderrFlood,
    /// Owns sandboxes under `--folder`, each by one session.
    Sandbox,
    /// Answers every request with a web page as its result.
    Nonsense,
    /// Reads and answers up to its first whole tool list, then never reads again.
    Deaf,
}

/// Which protocol families it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
    Both,
}

/// What `server/discover` gets from a legacy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discover {
    Error,
    Empty,
    Close,
    Silence,
    /// A web page in place of a result.
    Html,
    /// A web page in place of a message.
    HtmlLine,
    /// An error that names no request.
    Idless,
}

/// When the upstream says by itself that its tools are others now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announce {
    OnlyWhenTrue,
    /// Before anything else is said.
    First,
    /// With every answer to `tools/list`.
    EachList,
}

/// What else is written around the answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mangle {
    Nothing,
    /// The answer a second time.
    Duplicate,
    /// First an answer to a request that nobody made.
    UnknownId,
    /// First the answer with its number written as text.
    TextId,
    /// First a result and an error in one.
    Both,
}

/// What `tools/list` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// One tool for each thing this program can do when called.
    Standard,
    /// `echo` and the tools that behave badly when called.
    Rude,
    /// Every broken shape beside one good tool.
    Bad,
    /// Members and numbers that no SDK keeps.
    UnknownMembers,
    /// Two names that differ only in a character no exposed name may hold.
    Folding,
    /// A name of 40 characters.
    LongName,
    /// Tools whose arguments are to travel in headers, one of them in a way that no client may follow.
    Headers,
    /// The standard tools and one that is described by `--say`.
    Saying,
    /// Tools with results that are large or easily lost.
    Answers,
    /// Tools that want something from the person.
    Asking,
    /// `--tools` plain tools.
    Many,
    /// `--tools` plain tools, one a page.
    Pages(Paging),
    /// What the file of `--told` says, read anew for each list, and `announce`.
    Told,
}

/// What is there besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offering {
    /// Nothing, and nothing is advertised.
    None,
    /// One resource, template and prompt for each thing this program can do.
    Standard,
    /// Broken shapes beside good ones.
    Bad,
    /// `--tools` pages of one item each.
    Pages(Paging),
    /// Advertised, but every list is an unknown method.
    Unsupported,
    /// Every list is an error.
    Failing,
    /// No list is ever answered.
    Silent,
    /// A list ends the connection.
    Dying,
    /// Prompts as the file of `--told` says, read anew for each list.
    Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paging {
    Plain,
    RepeatedCursor,
    EmptyCursor,
    FailingPage,
    SilentPage,
    /// The second page comes `--page-delay` after its request.
    SlowPage,
}

/// How the HTTP side refuses requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Status {
        status: u16,
        retry_after: Option<String>,
    },
    Html,
    Redirect(String),
    /// A JSON answer of this many bytes.
    Oversized(usize),
    /// A server-sent event whose data is no JSON, then an open stream.
    Undecodable,
    Unauthorized {
        with_header: bool,
    },
    /// A refusal with this challenge.
    Challenge {
        status: u16,
        challenge: String,
    },
    /// A 401 with two challenges, one of them no text, on a page of another kind.
    OddUnauthorized,
    /// The connection ends without an answer.
    Close,
    /// The server's half of the connection ends without an answer; it goes on listening.
    HalfClose,
    /// An answer whose headers are larger than any client takes.
    EndlessHeaders,
    /// A small body that unpacks to 64 MiB.
    GzipBomb,
    /// A stream of events that never says anything; from an old server, an answer to a message it never accepts.
    Stall,
    /// The request is carried out, but the stream of its answer ends before it.
    Unanswered,
    /// As before, but the answer can be had by going on behind the last event.
    Resumable,
    /// The request is carried out, and then this is said in place of its answer.
    CarriedOut(Afterwards),
    /// A status with an error of the protocol that names no request.
    Failing {
        status: u16,
        retry_after: Option<String>,
    },
    /// No byte of an answer; the connection stays.
    Silence,
}

/// What is said after the fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// A status of 500 whose error names no request and a session of the server's own.
    FailedSession,
    /// A success with the code of an unknown session, of a wait that ran out.
    SessionTimedOut,
}

/// What `GET` gets, where the server has a stream of its own messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Get {
    NotAllowed,
    Refused,
    Open,
    /// Ends at once, in order.
    Closes,
    /// Breaks off at once.
    Resets,
    /// Ends in order after a while in which nothing came.
    IdlesOut,
}

/// What a request with a forgotten session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forgotten {
    NotFound,
    IdlessBadRequest,
    /// A status of 400 with the code of an unknown session, for the request.
    CodedBadRequest,
    /// A success with an error of the protocol.
    Error,
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) kind: Kind,
    pub(crate) era: Era,
    pub(crate) discover: Discover,
    pub(crate) announce: Announce,
    pub(crate) mangle: Mangle,
    pub(crate) listing: Listing,
    pub(crate) offers: Offering,
    /// Where sandboxes are.
    pub(crate) folder: PathBuf,
    /// For `many` and `pages`.
    pub(crate) tools: usize,
    /// For `told`: `{"tools": […], "prompts"?: […], "instructions"?, "version"?}`.
    pub(crate) told: PathBuf,
    /// Every received line goes here, byte for byte; lines of our own start with `# `.
    pub(crate) record: Option<PathBuf>,
    /// One line for each executed call of `counter`: its `key`, or `x`.
    pub(crate) counter: Option<PathBuf>,
    /// Wait before `initialize` or `server/discover` is answered.
    pub(crate) delay: Duration,
    /// Wait before the rude list, and before the second page of `pages-slow`.
    pub(crate) page_delay: Duration,
    /// As a package runner does: this long it writes lines to stderr and answers nothing.
    pub(crate) install: Duration,
    /// How many starts, counted in the record, crash first.
    pub(crate) crash_times: usize,
    /// After its first tool list it closes its output and ends with `--exit` this much later.
    pub(crate) linger: Option<Duration>,
    pub(crate) exit: i32,
    pub(crate) say: String,
    pub(crate) bytes: usize,
    /// Serve HTTP at this port of 127.0.0.1 (0 = any) instead of stdio.
    pub(crate) http: Option<u16>,
    pub(crate) sse: bool,
    pub(crate) get: Get,
    /// It is a server of the old HTTP+SSE transport, and this is what any other POST gets.
    pub(crate) old_sse: Option<u16>,
    /// Where it wants its messages, instead of its own address.
    pub(crate) endpoint: Option<String>,
    pub(crate) refusal: Option<Refusal>,
    /// Only requests of this method are refused.
    pub(crate) refuse_method: Option<String>,
    /// How many requests are refused.
    pub(crate) refuse_times: usize,
    /// All sessions are forgotten once, after this many tool calls.
    pub(crate) forget_after: Option<usize>,
    pub(crate) forgotten: Forgotten,
    /// Only requests with this bearer token are let in; others get a 401.
    pub(crate) key: Option<String>,
}

impl Options {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.peekable();
        let kind = match arguments.next_if(|first| !first.starts_with("--")) {
            Some(word) => kind(&word)?,
            None => Kind::Ok,
        };
        let mut named = Named(HashMap::new());
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let name = name
                .strip_prefix("--")
                .ok_or_else(|| format!("stray argument {name}"))?;
            named.0.insert(name.to_owned(), value);
        }
        let options = Self {
            kind,
            era: named.word("era", Era::Legacy, |word| {
                Some(match word {
                    "legacy" => Era::Legacy,
                    "modern" => Era::Modern,
                    "both" => Era::Both,
                    _ => return None,
                })
            })?,
            discover: named.word("discover", Discover::Error, |word| {
                Some(match word {
                    "error" => Discover::Error,
                    "empty" => Discover::Empty,
                    "close" => Discover::Close,
                    "silence" => Discover::Silence,
                    "html" => Discover::Html,
                    "html-line" => Discover::HtmlLine,
                    "idless" => Discover::Idless,
                    _ => return None,
                })
            })?,
            announce: named.word("announce", Announce::OnlyWhenTrue, |word| match word {
                "first" => Some(Announce::First),
                "each-list" => Some(Announce::EachList),
                _ => None,
            })?,
            mangle: named.word("mangle", Mangle::Nothing, |word| {
                Some(match word {
                    "duplicate" => Mangle::Duplicate,
                    "unknown-id" => Mangle::UnknownId,
                    "text-id" => Mangle::TextId,
                    "both" => Mangle::Both,
                    _ => return None,
                })
            })?,
            listing: named.word("list", Listing::Standard, listing)?,
            offers: named.word("offers", Offering::None, offering)?,
            folder: named.text("folder").map(PathBuf::from).unwrap_or_default(),
            tools: named.number("tools", 3)?,
            told: named.text("told").map(PathBuf::from).unwrap_or_default(),
            record: named.text("record").map(PathBuf::from),
            counter: named.text("counter").map(PathBuf::from),
            delay: Duration::from_millis(named.number("delay", 0)?),
            page_delay: Duration::from_millis(named.number("page-delay", 0)?),
            install: Duration::from_millis(named.number("install", 0)?),
            crash_times: named.number("crash-times", 0)?,
            linger: named.optional_number("linger")?.map(Duration::from_millis),
            exit: named.number("exit", 1)?,
            say: named.text("say").unwrap_or_default(),
            bytes: named.number("bytes", 0)?,
            http: named.optional_number("http")?,
            sse: named.word("answers", false, |word| match word {
                "json" => Some(false),
                "sse" => Some(true),
                _ => None,
            })?,
            get: named.word("get", Get::NotAllowed, |word| {
                Some(match word {
                    "405" => Get::NotAllowed,
                    "400" => Get::Refused,
                    "stream" => Get::Open,
                    "closes" => Get::Closes,
                    "resets" => Get::Resets,
                    "idles-out" => Get::IdlesOut,
                    _ => return None,
                })
            })?,
            old_sse: named.optional_number("old-sse")?,
            endpoint: named.text("endpoint"),
            refusal: named.refusal()?,
            refuse_method: named.text("refuse-method"),
            refuse_times: named.number("refuse-times", usize::MAX)?,
            forget_after: named.optional_number("forget-after")?,
            forgotten: named.word("forgotten", Forgotten::NotFound, |word| match word {
                "404" => Some(Forgotten::NotFound),
                "400" => Some(Forgotten::IdlessBadRequest),
                "400-code" => Some(Forgotten::CodedBadRequest),
                "error" => Some(Forgotten::Error),
                _ => None,
            })?,
            key: named.text("key"),
        };
        match named.0.into_keys().next() {
            Some(unknown) => Err(format!("unknown option --{unknown}")),
            None => Ok(options),
        }
    }
}

fn kind(word: &str) -> Result<Kind, String> {
    Ok(match word {
        "ok" => Kind::Ok,
        "silent" => Kind::Silent,
        "never-initialize" => Kind::NeverInitialize,
        "noise" => Kind::Noise,
        "crash" => Kind::Crash,
        "tree" => Kind::Tree,
        "stubborn" => Kind::Stubborn,
        "ignores-stdin" => Kind::IgnoresStdin,
        "stderr-flood" => Kind::StderrFlood,
        "sandbox" => Kind::Sandbox,
        "nonsense" => Kind::Nonsense,
        "deaf" => Kind::Deaf,
        _ => return Err(format!("unknown kind {word}")),
    })
}

fn listing(word: &str) -> Option<Listing> {
    Some(match word {
        "standard" => Listing::Standard,
        "rude" => Listing::Rude,
        "bad" => Listing::Bad,
        "unknown-members" => Listing::UnknownMembers,
        "folding" => Listing::Folding,
        "long-name" => Listing::LongName,
        "headers" => Listing::Headers,
        "saying" => Listing::Saying,
        "answers" => Listing::Answers,
        "asking" => Listing::Asking,
        "many" => Listing::Many,
        "told" => Listing::Told,
        "pages" => Listing::Pages(Paging::Plain),
        "pages-repeated" => Listing::Pages(Paging::RepeatedCursor),
        "pages-empty" => Listing::Pages(Paging::EmptyCursor),
        "pages-failing" => Listing::Pages(Paging::FailingPage),
        "pages-silent" => Listing::Pages(Paging::SilentPage),
        "pages-slow" => Listing::Pages(Paging::SlowPage),
        _ => return None,
    })
}

fn offering(word: &str) -> Option<Offering> {
    Some(match word {
        "none" => Offering::None,
        "standard" => Offering::Standard,
        "bad" => Offering::Bad,
        "pages" => Offering::Pages(Paging::Plain),
        "pages-repeated" => Offering::Pages(Paging::RepeatedCursor),
        "pages-empty" => Offering::Pages(Paging::EmptyCursor),
        "pages-failing" => Offering::Pages(Paging::FailingPage),
        "pages-silent" => Offering::Pages(Paging::SilentPage),
        "unsupported" => Offering::Unsupported,
        "failing" => Offering::Failing,
        "silent" => Offering::Silent,
        "dying" => Offering::Dying,
        "told" => Offering::Told,
        _ => return None,
    })
}

/// The `--name value` pairs that nobody has taken yet.
struct Named(HashMap<String, String>);

impl Named {
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn word<T>(&mut self, name: &str, default: T, read: impl FnOnce(&str) -> Option<T>) -> Result<T, String> {
        match self.text(name) {
            None => Ok(default),
            Some(word) => read(&word).ok_or_else(|| format!("--{name} cannot be {word}")),
        }
    }

    fn optional_number<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        match self.text(name) {
            None => Ok(None),
            Some(word) => match word.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("--{name} needs a number, not {word}")),
            },
        }
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        Ok(self.optional_number(name)?.unwrap_or(default))
    }

    fn refusal(&mut self) -> Result<Option<Refusal>, String> {
        let retry_after = self.text("retry-after");
        let Some(word) = self.text("refuse") else {
            return Ok(None);
        };
        let (what, detail) = word.split_once('=').unwrap_or((&word, ""));
        Ok(Some(match what {
            "status" => Refusal::Status {
                status: detail.parse().map_err(|_| format!("no status: {detail}"))?,
                retry_after,
            },
            "html" => Refusal::Html,
            "redirect" => Refusal::Redirect(detail.to_owned()),
            "oversized" => Refusal::Oversized(detail.parse().map_err(|_| format!("no size: {detail}"))?),
            "undecodable" => Refusal::Undecodable,
            "401" => Refusal::Unauthorized { with_header: true },
            "challenge" => {
                let (status, challenge) = detail.split_once(' ').unwrap_or((detail, ""));
                Refusal::Challenge {
                    status: status.parse().map_err(|_| format!("no status: {status}"))?,
                    challenge: challenge.to_owned(),
                }
            }
            "401-odd" => Refusal::OddUnauthorized,
            "close" => Refusal::Close,
            "half-close" => Refusal::HalfClose,
            "endless-headers" => Refusal::EndlessHeaders,
            "gzip-bomb" => Refusal::GzipBomb,
            "stall" => Refusal::Stall,
            "unanswered" => Refusal::Unanswered,
            "resumable" => Refusal::Resumable,
            "ran-500" => Refusal::CarriedOut(Afterwards::FailedSession),
            "ran-error" => Refusal::CarriedOut(Afterwards::SessionTimedOut),
            "failing" => Refusal::Failing {
                status: detail.parse().map_err(|_| format!("no status: {detail}"))?,
                retry_after,
            },
            "silence" => Refusal::Silence,
            "401-bare" => Refusal::Unauthorized { with_header: false },
            _ => return Err(format!("--refuse cannot be {word}")),
        }))
    }
}
