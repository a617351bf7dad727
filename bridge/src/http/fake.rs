//! For tests: an [`Api`] that records what it is asked to do, a server on real sockets in front of it, and a client
//! that sends exactly the bytes it is given.

mod client;
mod running;
mod shown;

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, stream};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, mpsc};

use self::shown::{client, launch, offer, question, tool_view, tools_review};
pub(super) use self::{
    client::{Reply, get, post},
    running::{Running, home, listening},
    shown::view,
};
use super::api::{Answer, Api};
use crate::{
    bridge::{
        ApprovalAnswer, AutoApproved, CallReply, CallRequest, ClientChange, LogQuery, PairingBegun, Pending,
        PromptAnswer, PromptList, ReadAnswer, ResourceList, ResultPiece, SavedResource, SignInAsk, Terms, TrustChange,
    },
    caller::Caller,
    clients::pairing::Polled,
    config::AutoApprove,
    error::{ApiError, Code},
    event::{EventLog, Numbered},
    ids::{ConnectorId, ExposedName, ToolName},
    oauth::{Callback, Finished},
    secrets::SecretName,
    snapshot::{
        ActivityFilter, ActivityPage, ApiMode, ApiView, ApprovalView, AskerView, CallAnswer, ClientView, ConfigView,
        ConnectorDetail, ConnectorView, ExportFormat, KeptIn, KeychainView, LogPage, RejectedTool, Reviews, RuleView,
        SecretView, SignInOutcome, Snapshot, TrustView,
    },
    store::ActivityCursor,
    tools::ToolList,
    traffic::Place,
    trust::rules::{Rule, RuleDraft, RuleId},
    wishes::Wish,
};

/// Must appear nowhere but with the owner.
pub(super) const PRIVATE: &str = "PRIVATE-SENTINEL";

/// A tool that never answers by itself.
pub(super) const HANG: &str = "hang";

/// A wait for a log line that never comes.
pub(super) const HANGING_WAIT: Duration = Duration::from_millis(29_999);

/// A tool whose call panics.
pub(super) const BROKEN: &str = "broken";

/// A tool whose answer is 8 MiB.
pub(super) const HUGE: &str = "huge";

#[derive(Clone)]
pub(super) struct FakeApi {
    done: Arc<Mutex<Vec<String>>>,
    pub(super) log: Arc<EventLog>,
    /// Told when a hanging call begins and when it is dropped.
    hangs: mpsc::UnboundedSender<&'static str>,
    /// What a sign-in that comes back comes to.
    pub(super) outcome: Arc<Mutex<SignInOutcome>>,
    pub(super) deep_links: Arc<AtomicBool>,
}

impl FakeApi {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<&'static str>) {
        let (hangs, told) = mpsc::unbounded_channel();
        let api = Self {
            done: Arc::default(),
            log: Arc::default(),
            hangs,
            outcome: Arc::new(Mutex::new(SignInOutcome::SignedIn)),
            deep_links: Arc::default(),
        };
        (api, told)
    }

    /// What was asked for since the last time.
    pub(super) fn take_done(&self) -> Vec<String> {
        std::mem::take(&mut self.done.lock().unwrap())
    }

    fn did(&self, what: impl Into<String>) {
        self.done.lock().unwrap().push(what.into());
    }
}

impl Api for FakeApi {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(Snapshot {
            version: "0".into(),
            api: ApiView::Starting { port: 0 },
            config: ConfigView {
                path: String::new(),
                is_default: true,
                notices: Vec::new(),
            },
            connectors: vec![view("files"), view("other")],
            needs: BTreeMap::new(),
            keychain: KeychainView::unused(KeptIn::Keychain),
            sign_ins: Vec::new(),
            approvals: Vec::new(),
            missed: Vec::new(),
            reviews: Reviews {
                launches: vec![launch("launch-1")],
                tools: vec![tools_review()],
                ..Reviews::default()
            },
            trust: TrustView::default(),
        })
    }

    fn tools(&self) -> Arc<ToolList> {
        let offers = [("files", "read"), ("files", "write"), ("other", "read")];
        let offers = offers.map(|(connector, tool)| offer(connector, tool));
        Arc::new(ToolList::build(offers.into()))
    }

    fn events(&self, last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>) {
        self.log.subscribe(last)
    }

    fn call(&self, caller: Caller, request: CallRequest) -> impl Answer<CallAnswer> {
        struct Told(mpsc::UnboundedSender<&'static str>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.0.send("dropped");
            }
        }
        let api = self.clone();
        async move {
            let input = Value::Object(request.input).to_string();
            api.did(format!(
                "call {} {} {input} {:?}",
                caller.label(),
                request.name,
                request.timeout
            ));
            if request.name == HANG {
                let _told = Told(api.hangs.clone());
                let _ = api.hangs.send("begun");
                std::future::pending::<()>().await;
            }
            assert_ne!(request.name, BROKEN);
            if request.name == "unknown" {
                return Err(ApiError::new(Code::UnknownTool, "There is no such tool."));
            }
            Ok(CallAnswer {
                ok: true,
                content: Vec::new(),
                text: if request.name == HUGE {
                    "x".repeat(8 << 20)
                } else {
                    "done".into()
                },
                structured: None,
                error: None,
                code: None,
                server: ConnectorId::parse("files").unwrap(),
                tool: ToolName::new("read"),
                duration_ms: 1,
                truncated: false,
                result_id: None,
                warnings: Vec::new(),
            })
        }
    }

    async fn result(&self, caller: Caller, id: String, offset: u64, limit: u64) -> Result<ResultPiece, ApiError> {
        self.did(format!("result {} {id} {offset} {limit}", caller.label()));
        Ok(ResultPiece {
            text: "äb".into(),
            offset,
            total: 10,
        })
    }

    fn resources(&self, server: Option<&ConnectorId>) -> Result<ResourceList, ApiError> {
        self.did(format!("resources {server:?}"));
        Ok(ResourceList::default())
    }

    async fn read_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        _: Option<Arc<Place>>,
    ) -> Result<ReadAnswer, ApiError> {
        self.did(format!("read_resource {} {server} {uri}", caller.label()));
        Ok(ReadAnswer {
            contents: vec![json!({"type": "resource", "resource": {"uri": uri, "text": "t"}})],
            truncated: false,
            result_id: None,
            warnings: Vec::new(),
        })
    }

    async fn save_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        _: Option<Arc<Place>>,
    ) -> Result<SavedResource, ApiError> {
        self.did(format!("save_resource {} {server} {uri}", caller.label()));
        Ok(SavedResource {
            result_id: "r".into(),
            path: "/p".into(),
            bytes: 3,
        })
    }

    fn prompts(&self, server: Option<&ConnectorId>) -> Result<PromptList, ApiError> {
        self.did(format!("prompts {server:?}"));
        Ok(PromptList::default())
    }

    async fn get_prompt(
        &self,
        caller: Caller,
        server: ConnectorId,
        name: String,
        arguments: Map<String, Value>,
        _: Option<Arc<Place>>,
    ) -> Result<PromptAnswer, ApiError> {
        let arguments = Value::Object(arguments);
        self.did(format!("get_prompt {} {server} {name} {arguments}", caller.label()));
        Ok(PromptAnswer {
            description: None,
            messages: Vec::new(),
            truncated: false,
            result_id: None,
            warnings: Vec::new(),
        })
    }

    async fn connector(&self, _: Caller, id: String) -> Result<ConnectorDetail, ApiError> {
        if !matches!(id.as_str(), "files" | "other") {
            return Err(ApiError::new(
                Code::UnknownServer,
                format!("There is no connector {id:?}."),
            ));
        }
        Ok(ConnectorDetail {
            connector: view(&id),
            tools: vec![
                tool_view(&id, "read", true, true),
                tool_view(&id, "write", true, false),
                tool_view(&id, "erase", false, true),
            ],
            rejected: vec![RejectedTool {
                name: "#3".into(),
                reason: "It has no name.".into(),
            }],
            instructions: None,
            entry: PRIVATE.into(),
            secrets: vec![SecretView {
                name: Some(PRIVATE.into()),
                set: Some(true),
                withheld: false,
            }],
        })
    }

    fn clients(&self) -> Vec<ClientView> {
        self.did("clients");
        vec![client("a1")]
    }

    async fn change_client(&self, id: String, change: ClientChange) -> Result<ClientView, ApiError> {
        self.did(format!("change_client {id} {change:?}"));
        Ok(client(&id))
    }

    async fn revoke_client(&self, id: String) -> Result<(), ApiError> {
        self.did(format!("revoke_client {id}"));
        Ok(())
    }

    fn renewed(&self, caller: &Caller) -> Option<Caller> {
        Some(caller.clone())
    }

    fn api_mode(&self) -> ApiMode {
        ApiMode::Open
    }

    async fn open_pairing(&self) {
        self.did("open_pairing");
    }

    async fn close_pairing(&self) {
        self.did("close_pairing");
    }

    async fn turn_away(&self, id: String) -> Result<(), ApiError> {
        self.did(format!("turn_away {id}"));
        Ok(())
    }

    async fn ask_pairing(&self, caller: Caller, name: String) -> Result<PairingBegun, ApiError> {
        self.did(format!("ask_pairing {} {name}", caller.label()));
        Ok(PairingBegun {
            id: "p1".into(),
            code: "012345".into(),
            within: Duration::from_secs(120),
        })
    }

    async fn poll_pairing(&self, id: String) -> Polled {
        self.did(format!("poll_pairing {id}"));
        match id.as_str() {
            "paired" => Polled::Paired("ncb_a".into()),
            "denied" => Polled::Denied,
            "p1" => Polled::Waiting,
            _ => Polled::Unknown,
        }
    }

    async fn answer_pairing(&self, id: String, code: String, terms: Terms) -> Result<ClientView, ApiError> {
        self.did(format!("answer_pairing {id} {code} {terms:?}"));
        Ok(client("a1"))
    }

    fn askers(&self) -> Vec<AskerView> {
        Vec::new()
    }

    async fn set_asker(&self, path: String, script: Option<String>, on: bool) -> Result<(), ApiError> {
        self.did(format!("set_asker {path} {script:?} {on}"));
        Ok(())
    }

    fn allowed_origins(&self) -> Vec<String> {
        Vec::new()
    }

    async fn set_trust(&self, change: TrustChange) -> Result<(), ApiError> {
        self.did(format!("set_trust {change:?}"));
        Ok(())
    }

    async fn wish(&self, caller: Caller, wish: Wish) -> Result<Pending, ApiError> {
        self.did(format!("wish {} {}", caller.label(), wish.words()));
        Ok(Pending {
            approval_id: "q2".into(),
            message: "It waits.".into(),
        })
    }

    async fn reconnect_for(&self, caller: Caller, id: ConnectorId) -> Result<(ConnectorView, bool), ApiError> {
        self.did(format!("reconnect_for {} {id}", caller.label()));
        Ok((view(id.as_str()), true))
    }

    async fn turn_off_for(&self, caller: Caller, id: ConnectorId) -> Result<(), ApiError> {
        self.did(format!("turn_off_for {} {id}", caller.label()));
        Ok(())
    }

    async fn add(&self, id: ConnectorId, entry: Map<String, Value>) -> Result<ConnectorView, ApiError> {
        self.did(format!("add {id} {}", Value::Object(entry)));
        Ok(view(id.as_str()))
    }

    async fn set_enabled(&self, id: ConnectorId, enabled: bool) -> Result<(), ApiError> {
        self.did(format!("set_enabled {id} {enabled}"));
        Ok(())
    }

    async fn set_auto_approve(&self, id: ConnectorId, value: AutoApprove) -> Result<(), ApiError> {
        self.did(format!("set_auto_approve {id} {value:?}"));
        Ok(())
    }

    async fn remove(&self, id: ConnectorId) -> Result<(), ApiError> {
        self.did(format!("remove {id}"));
        Ok(())
    }

    async fn reconnect(&self, id: ConnectorId) -> Result<(ConnectorView, bool), ApiError> {
        self.did(format!("reconnect {id}"));
        Ok((view(id.as_str()), true))
    }

    async fn stop_trying(&self, id: ConnectorId) -> Result<ConnectorView, ApiError> {
        self.did(format!("stop_trying {id}"));
        Ok(view(id.as_str()))
    }

    async fn activity(
        &self,
        filter: ActivityFilter,
        cursor: ActivityCursor,
        limit: usize,
    ) -> Result<ActivityPage, ApiError> {
        self.did(format!("activity {filter:?} {cursor:?} {limit}"));
        Ok(ActivityPage {
            entries: Vec::new(),
            next: None,
        })
    }

    fn export_activity(
        &self,
        filter: ActivityFilter,
        format: ExportFormat,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        self.did(format!("export_activity {filter:?} {format:?}"));
        stream::iter([Ok(Bytes::from_static(b"a,"))])
    }

    async fn approvals(&self, caller: Caller) -> Vec<ApprovalView> {
        self.did(format!("approvals {}", caller.label()));
        vec![question("q1")]
    }

    async fn approval(&self, caller: Caller, id: String) -> Result<ApprovalView, ApiError> {
        if id != "q1" {
            return Err(ApiError::new(Code::NotFound, format!("There is no question {id:?}.")));
        }
        self.did(format!("approval {} {id}", caller.label()));
        Ok(question(&id))
    }

    async fn answer_approval(&self, id: String, answer: ApprovalAnswer) -> Result<ApprovalView, ApiError> {
        self.did(format!("answer_approval {id} {answer:?}"));
        Ok(question(&id))
    }

    async fn answer_call(&self, id: String, reply: CallReply) -> Result<ApprovalView, ApiError> {
        self.did(format!("answer_call {id} {reply:?}"));
        Ok(question(&id))
    }

    async fn draft_rule(&self, id: String) -> Result<RuleDraft, ApiError> {
        self.did(format!("draft_rule {id}"));
        Err(ApiError::bad_request("No rule is drafted here."))
    }

    async fn always_allow(&self, id: String, draft: RuleDraft) -> Result<ApprovalView, ApiError> {
        self.did(format!("always_allow {id} {draft:?}"));
        Ok(question(&id))
    }

    async fn answer_proposal(&self, id: String, yes: bool) -> Result<(), ApiError> {
        self.did(format!("answer_proposal {id} {yes}"));
        Ok(())
    }

    async fn rules(&self) -> Result<Vec<RuleView>, ApiError> {
        self.did("rules".to_owned());
        Ok(Vec::new())
    }

    async fn add_rule(&self, draft: RuleDraft) -> Result<Rule, ApiError> {
        self.did(format!("add_rule {} {:?}", draft.server, draft.patterns));
        Err(ApiError::bad_request("No rule is made here."))
    }

    async fn withdraw_rule(&self, id: RuleId) -> Result<(), ApiError> {
        self.did(format!("withdraw_rule {id}"));
        Ok(())
    }

    async fn auto_approved(&self, caller: Caller) -> AutoApproved {
        self.did(format!("auto_approved {}", caller.label()));
        AutoApproved {
            tools: vec![ExposedName::new("mcp__files__read")],
            rules: Vec::new(),
        }
    }

    async fn extend_approval(&self, id: String) -> Result<ApprovalView, ApiError> {
        self.did(format!("extend_approval {id}"));
        Ok(question(&id))
    }

    async fn approve_launches(&self, ids: Vec<String>) -> Result<(), ApiError> {
        self.did(format!("approve_launches {}", ids.join(" ")));
        Ok(())
    }

    async fn answer_asleep(&self, id: String, keep: bool) -> Result<(), ApiError> {
        self.did(format!("answer_asleep {id} {keep}"));
        Ok(())
    }

    async fn keep_blocked(&self, id: String) -> Result<(), ApiError> {
        self.did(format!("keep_blocked {id}"));
        Ok(())
    }

    async fn approve_tools(&self, server: ConnectorId, versions: Vec<(ToolName, String)>) -> Result<(), ApiError> {
        let versions: Vec<_> = versions
            .iter()
            .map(|(tool, version)| format!("{tool}={version}"))
            .collect();
        self.did(format!("approve_tools {server} {}", versions.join(" ")));
        Ok(())
    }

    async fn keep_tool_blocked(&self, server: ConnectorId, tool: ToolName, version: String) -> Result<(), ApiError> {
        self.did(format!("keep_tool_blocked {server} {tool}={version}"));
        Ok(())
    }

    async fn approve_prompt(&self, server: ConnectorId, prompt: String, version: String) -> Result<(), ApiError> {
        self.did(format!("approve_prompt {server} {prompt}={version}"));
        Ok(())
    }

    async fn keep_prompt_blocked(&self, server: ConnectorId, prompt: String, version: String) -> Result<(), ApiError> {
        self.did(format!("keep_prompt_blocked {server} {prompt}={version}"));
        Ok(())
    }

    async fn approve_instructions(&self, server: ConnectorId, version: String) -> Result<(), ApiError> {
        self.did(format!("approve_instructions {server} {version}"));
        Ok(())
    }

    async fn keep_instructions_withheld(&self, server: ConnectorId, version: String) -> Result<(), ApiError> {
        self.did(format!("keep_instructions_withheld {server} {version}"));
        Ok(())
    }

    async fn set_secret(&self, id: ConnectorId, name: Option<SecretName>, value: SecretString) -> Result<(), ApiError> {
        self.did(format!("set_secret {id} {name:?} {}", value.expose_secret()));
        Ok(())
    }

    async fn forget_secret(&self, id: ConnectorId, name: Option<SecretName>) -> Result<(), ApiError> {
        self.did(format!("forget_secret {id} {name:?}"));
        Ok(())
    }

    async fn look_at_keychain(&self) -> Result<KeychainView, ApiError> {
        self.did("look_at_keychain");
        Ok(KeychainView::unused(KeptIn::Keychain))
    }

    async fn keep_until_quit(&self) -> Result<KeychainView, ApiError> {
        self.did("keep_until_quit");
        Ok(KeychainView::unused(KeptIn::Memory))
    }

    async fn log(&self, id: ConnectorId, query: LogQuery) -> Result<LogPage, ApiError> {
        let after = query.after.map(|after| after.to_string()).unwrap_or_default();
        self.did(format!("log {id} {after} {} {:?}", query.lines, query.wait));
        if query.wait == HANGING_WAIT {
            let _ = self.hangs.send("begun");
            std::future::pending::<()>().await;
        }
        Ok(LogPage {
            lines: vec![PRIVATE.into()],
            next: "a-1".into(),
            missed: false,
        })
    }

    async fn sign_in(&self, id: ConnectorId, ask: SignInAsk) -> Result<String, ApiError> {
        self.did(format!("sign_in {id} {:?} {:?}", ask.accept_issuer, ask.redirect));
        Ok("https://sign-in.example/?state=1".into())
    }

    async fn cancel_sign_in(&self, id: ConnectorId) -> Result<(), ApiError> {
        self.did(format!("cancel_sign_in {id}"));
        Ok(())
    }

    async fn sign_out(&self, id: ConnectorId) -> Result<(), ApiError> {
        self.did(format!("sign_out {id}"));
        Ok(())
    }

    async fn finish_sign_in(&self, callback: Callback) -> Finished {
        self.did(format!("finish_sign_in {callback}"));
        Finished {
            server: None,
            outcome: *self.outcome.lock().unwrap(),
            message: PRIVATE.into(),
        }
    }

    fn deep_links(&self) -> bool {
        self.deep_links.load(Ordering::Relaxed)
    }
}
