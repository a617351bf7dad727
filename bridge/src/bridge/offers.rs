//! What upstreams offer besides tools: listing it from what is known, reading a resource, getting a prompt.
//!
//! Lists never start anything. A read or a prompt goes the way of a call: to the session that stands or one that is opened
//! for it, once, and its upstream is told to stop when nobody waits any more.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    BridgeHandle, Caller,
    activity::Recording,
    ask::{self, Subject},
    permit::{LOOKS, Permit, Wanted},
    pins::{Looked, trust_unknown},
    results, unknown_server,
};
use crate::{
    activity::{Entry, Outcome, Recorder, WhoRecord},
    connector::{CallFault, Items, Offers, Prompt, Rejected, Resource, Session, Template, Whose},
    error::{Action, ApiError, Code},
    ids::ConnectorId,
    snapshot::ActivityWhat,
    store::{Content, ResultError, ResultId, Saved},
    tools::{Message, One, OneContent, Undecodable, one_content, shape_contents, shape_prompt},
    traffic::Place,
    trust::pins::FlaggedPrompt,
};

/// An item with the connector that offers it.
#[derive(Debug, Clone, Serialize)]
pub struct Offered<T> {
    pub server: ConnectorId,
    #[serde(flatten)]
    pub item: Arc<T>,
}

/// An item that cannot be offered, with its connector.
#[derive(Debug, Clone, Serialize)]
pub struct Rejects {
    pub server: ConnectorId,
    #[serde(flatten)]
    pub item: Rejected,
}

/// Resources and templates of the connectors that are turned on, in the order of the file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ResourceList {
    pub resources: Vec<Offered<Resource>>,
    pub templates: Vec<Offered<Template>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejects>,
}

/// Prompts of the connectors that are turned on, in the order of the file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PromptList {
    pub prompts: Vec<Offered<Prompt>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejects>,
}

/// What is at a URI.
#[derive(Debug, Clone, Serialize)]
pub struct ReadAnswer {
    /// Blocks of type `resource`, as tools embed them; `unknown` where one cannot be passed on.
    pub contents: Vec<Value>,
    /// Something is left out of `contents`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the whole can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_id: Option<String>,
    /// What looks dangerous in it, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A resource that was kept as a file.
#[derive(Debug, Clone, Serialize)]
pub struct SavedResource {
    pub result_id: String,
    /// Absolute. The file is private, stays until somebody removes it, and holds exactly the content.
    pub path: String,
    /// Its size, decoded.
    pub bytes: u64,
}

/// What a prompt became.
#[derive(Debug, Clone, Serialize)]
pub struct PromptAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub messages: Vec<Message>,
    /// Something is left out of `messages`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the whole can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_id: Option<String>,
    /// What looks dangerous in it, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl BridgeHandle {
    /// Known resources and templates, of one connector or of all. Starts nothing.
    ///
    /// # Errors
    /// `unknown_server`.
    pub fn resources(&self, server: Option<&ConnectorId>) -> Result<ResourceList, ApiError> {
        let mut list = ResourceList::default();
        for (server, offers, _) in self.offers(server)? {
            put(&server, &offers.resources, &mut list.resources, &mut list.rejected);
            put(&server, &offers.templates, &mut list.templates, &mut list.rejected);
        }
        Ok(list)
    }

    /// Known prompts, of one connector or of all. Starts nothing.
    ///
    /// # Errors
    /// `unknown_server`.
    pub fn prompts(&self, server: Option<&ConnectorId>) -> Result<PromptList, ApiError> {
        let mut list = PromptList::default();
        for (server, offers, looked) in self.offers(server)? {
            put(&server, &offers.prompts, &mut list.prompts, &mut list.rejected);
            for prompt in &*offers.flagged {
                let server = server.clone();
                match is_approved(looked.as_deref(), prompt) {
                    true => list.prompts.push(Offered {
                        server,
                        item: Arc::new(Prompt::of(prompt)),
                    }),
                    false => list.rejected.push(Rejects {
                        server,
                        item: Rejected::held(prompt),
                    }),
                }
            }
        }
        Ok(list)
    }

    /// Reads what is at exactly this URI. Dropping the future cancels the read at its upstream.
    ///
    /// # Errors
    /// `unknown_server`, `not_found`, `disabled`, `unavailable`, `needs_secret`, `needs_sign_in`, `upstream_error`,
    /// `result_too_large`, `upstream_timeout`.
    pub async fn read_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        turn: Option<Arc<Place>>,
    ) -> Result<ReadAnswer, ApiError> {
        let asked = Asked::Resource { uri };
        let raw = self.ask(&caller, &server, &asked, turn).await?;
        let (shaped, result_id) = results::shape_and_keep(&self.inner, &caller, raw, shape_contents)
            .await
            .map_err(|error| asked.unreadable(&server, &error))?;
        let warnings = results::warnings(results::texts(&shaped.contents).into()).await;
        Ok(ReadAnswer {
            contents: shaped.contents,
            truncated: shaped.truncated,
            result_id,
            warnings,
        })
    }

    /// Reads what is at exactly this URI into a private file. Dropping the future before the file is whole leaves none.
    ///
    /// # Errors
    /// As [`BridgeHandle::read_resource`]; `bad_request` where there are several contents, `upstream_error` for base64 that
    /// is none, `not_saved`.
    pub async fn save_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        turn: Option<Arc<Place>>,
    ) -> Result<SavedResource, ApiError> {
        let asked = Asked::Resource { uri };
        let raw = self.ask(&caller, &server, &asked, turn).await?;
        let store = self.inner.results.clone();
        let given_up = CancellationToken::new();
        let _until_dropped = given_up.clone().drop_guard();
        let saving = tokio::task::spawn_blocking(move || {
            let one = match one_content(&raw).map_err(SaveFault::Unreadable)? {
                OneContent::One(one) => one,
                OneContent::Several { count, uris } => return Err(SaveFault::Several { count, uris }),
            };
            let content = match &one {
                One::Text(text) => Content::Text(text),
                One::Blob(blob) => Content::Base64(blob),
            };
            let id = ResultId::draw().map_err(SaveFault::Store)?;
            let saved = store.save(&id, caller.label(), content, &given_up);
            Ok((id, saved.map_err(SaveFault::Store)?))
        });
        match saving.await {
            Ok(Ok((id, Saved { path, bytes }))) => Ok(SavedResource {
                result_id: id.as_str().to_owned(),
                path: path.display().to_string(),
                bytes,
            }),
            Ok(Err(fault)) => Err(asked.not_saved(&server, &fault)),
            Err(error) => {
                tracing::error!(%error, "saving a resource ended abnormally");
                Err(ApiError::new(
                    Code::Internal,
                    "The resource could not be saved; try again.",
                ))
            }
        }
    }

    /// Gets a prompt with exactly these arguments, whose values are texts. Dropping the future cancels it at its upstream.
    ///
    /// # Errors
    /// As [`BridgeHandle::read_resource`]; `bad_request` where the upstream does not take the arguments.
    pub async fn get_prompt(
        &self,
        caller: Caller,
        server: ConnectorId,
        name: String,
        arguments: Map<String, Value>,
        turn: Option<Arc<Place>>,
    ) -> Result<PromptAnswer, ApiError> {
        let asked = Asked::Prompt { name, arguments };
        let raw = self.ask(&caller, &server, &asked, turn).await?;
        let (shaped, result_id) = results::shape_and_keep(&self.inner, &caller, raw, shape_prompt)
            .await
            .map_err(|error| asked.unreadable(&server, &error))?;
        let blocks: Vec<_> = shaped
            .messages
            .iter()
            .flat_map(|message| message.content.clone())
            .collect();
        let warnings = results::warnings(results::texts(&blocks).into()).await;
        Ok(PromptAnswer {
            description: shaped.description,
            messages: shaped.messages,
            truncated: shaped.truncated,
            result_id,
            warnings,
        })
    }

    /// What each connector that is turned on offers, as it is known, and how that stands to what was approved.
    fn offers(&self, only: Option<&ConnectorId>) -> Result<Vec<Known>, ApiError> {
        let published = self.inner.published.load();
        let mut rows = published
            .rows
            .iter()
            .filter(|row| only.is_none_or(|only| row.entry.key == only.as_str()))
            .peekable();
        if let (Some(only), None) = (only, rows.peek()) {
            return Err(unknown_server(only.as_str()));
        }
        let running = rows
            .filter_map(|row| row.live.as_ref())
            .filter(|live| live.shows_tools());
        Ok(running
            .map(|live| (live.entry.id.clone(), live.view.offers.clone(), live.looked.clone()))
            .collect())
    }

    async fn ask(
        &self,
        caller: &Caller,
        server: &ConnectorId,
        asked: &Asked,
        turn: Option<Arc<Place>>,
    ) -> Result<String, ApiError> {
        self.seen_by(caller, server)?;
        let door = self.door(server)?;
        let recorder = self.recorder();
        let entry = Entry::new(WhoRecord::from(caller), asked.what(server, recorder));
        let mut recording = Recording::begin(recorder, entry.hiding(&door.shared.log));
        let permit = Permit {
            inner: &self.inner,
            caller,
            door: &door,
            wanted: asked.wanted(),
            arguments: asked.arguments(),
            turn,
            decided: &recording.decided,
        };
        caller.look_for_program();
        let answer = self.send(&permit, asked).await;
        recording.ended(Outcome::of_result(&answer));
        answer
    }

    async fn send(&self, permit: &Permit<'_>, asked: &Asked) -> Result<String, ApiError> {
        let door = permit.door;
        permit.not_denied(&self.inner.published.load_full()).await?;
        ask::session(door).await?;
        // The person is not asked about what is held in any case.
        asked.offered(permit).await?;
        let leave = permit.leave().await?;
        // The person may have taken their time.
        let session = ask::session(door).await?;
        let time = ask::time(door, None, self.inner.default_call_time);
        let whose = Whose {
            caller: permit.caller.label(),
            tell: &|_| {},
        };
        let before = || async move {
            permit.still(leave).await?;
            asked.offered(permit).await
        };
        ask::send(door, asked.subject(), session, before, |session| async move {
            asked.send(&session, time, whose).await
        })
        .await
    }
}

/// What one connector offers, and how that was looked at last.
type Known = (ConnectorId, Offers, Option<Arc<Looked>>);

/// Whether a prompt that something stands out about may be used all the same.
fn is_approved(looked: Option<&Looked>, prompt: &FlaggedPrompt) -> bool {
    looked.is_some_and(|looked| looked.approves(prompt))
}

fn put<T>(server: &ConnectorId, list: &Items<T>, items: &mut Vec<Offered<T>>, rejected: &mut Vec<Rejects>) {
    items.extend(list.items.iter().map(|item| Offered {
        server: server.clone(),
        item: item.clone(),
    }));
    rejected.extend(list.rejected.iter().map(|item| Rejects {
        server: server.clone(),
        item: item.clone(),
    }));
}

/// What is asked of an upstream.
enum Asked {
    Resource {
        uri: String,
    },
    Prompt {
        name: String,
        arguments: Map<String, Value>,
    },
}

/// Why a resource that was read is not in a file.
enum SaveFault {
    Unreadable(Undecodable),
    /// Only the first ones are named.
    Several {
        count: usize,
        uris: Vec<String>,
    },
    Store(ResultError),
}

impl Asked {
    async fn send(&self, session: &Session, time: Duration, whose: Whose<'_>) -> Result<String, CallFault> {
        match self {
            Self::Resource { uri } => session.read_resource(uri, time, whose).await,
            Self::Prompt { name, arguments } => session.get_prompt(name, arguments, time, whose).await,
        }
    }

    fn what(&self, server: &ConnectorId, recorder: &Recorder) -> ActivityWhat {
        let server = server.clone();
        match self {
            Self::Resource { uri } => ActivityWhat::Read {
                server,
                uri: uri.clone(),
            },
            Self::Prompt { name, arguments } => ActivityWhat::Prompt {
                server,
                name: name.clone(),
                arguments: recorder.arguments(arguments),
            },
        }
    }

    /// A prompt that is held is not asked for: what its session lists now counts, once that was looked at.
    async fn offered(&self, permit: &Permit<'_>) -> Result<(), ApiError> {
        let name = match self {
            Self::Resource { .. } => return Ok(()),
            Self::Prompt { name, .. } => name,
        };
        let shared = &permit.door.shared;
        let mut looks = 0..LOOKS;
        loop {
            let view = shared.view();
            let Some(prompt) = view.offers.flagged(name) else {
                return Ok(());
            };
            let published = permit.inner.published.load_full();
            let looked = published.looked.get(&shared.id);
            if is_approved(looked.map(AsRef::as_ref), prompt) {
                return Ok(());
            }
            if looked.is_some_and(|looked| looked.saw(&view.offers)) || looks.next().is_none() {
                if looked.is_some_and(|looked| looked.is_unknown()) {
                    return Err(trust_unknown(&shared.name()));
                }
                let held = Rejected::held(prompt).reason;
                let message = format!("{} of {}: {held}", self.shown(), shared.name());
                return Err(ApiError::new(Code::NeedsReview, message).with_action(Some(Action::Review)));
            }
            let handle = BridgeHandle {
                inner: permit.inner.clone(),
            };
            handle.settled().await;
        }
    }

    fn wanted(&self) -> Wanted {
        match self {
            Self::Resource { uri } => Wanted::Resource(uri.clone()),
            Self::Prompt { name, .. } => Wanted::Prompt(name.clone()),
        }
    }

    fn arguments(&self) -> Arc<Map<String, Value>> {
        match self {
            Self::Resource { .. } => Arc::default(),
            Self::Prompt { arguments, .. } => Arc::new(arguments.clone()),
        }
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Resource { uri } => Subject::Resource(uri),
            Self::Prompt { name, .. } => Subject::Prompt(name),
        }
    }

    fn shown(&self) -> String {
        self.subject().shown()
    }

    fn unreadable(&self, server: &ConnectorId, error: &Undecodable) -> ApiError {
        let message = format!("{server} was asked for {}. {error}", self.shown());
        ApiError::new(Code::UpstreamError, message)
    }

    fn not_saved(&self, server: &ConnectorId, fault: &SaveFault) -> ApiError {
        match fault {
            SaveFault::Unreadable(error) => self.unreadable(server, error),
            SaveFault::Several { count, uris } => {
                let named: Vec<_> = uris.iter().map(|uri| super::shown(uri)).collect();
                let more = if *count > uris.len() { ", …" } else { "" };
                ApiError::bad_request(format!(
                    "There are {count} contents in {} of {server}, and one file holds one: save each by its own URI ({}{more}), or read them without \"save\".",
                    self.shown(),
                    named.join(", "),
                ))
            }
            SaveFault::Store(ResultError::NotBase64) => {
                let message = format!("{server} sent {} in a form that is no base64.", self.shown());
                ApiError::new(Code::UpstreamError, message)
            }
            SaveFault::Store(error) => results::refusal(error, Code::NotSaved),
        }
    }
}
