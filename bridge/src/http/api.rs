//! The operations that the routes need, and nothing more.

use std::{future::Future, io, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt as _, Stream};
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::{
    bridge::{
        ApprovalAnswer, AutoApproved, BridgeHandle, CallReply, CallRequest, ClientChange, LogQuery, PairingBegun,
        Pending, PromptAnswer, PromptList, ReadAnswer, ResourceList, ResultPiece, SavedResource, SignInAsk, Terms,
        TrustChange,
    },
    caller::Caller,
    clients::pairing::Polled,
    config::AutoApprove,
    error::ApiError,
    event::Numbered,
    ids::{ConnectorId, ToolName},
    oauth::{Callback, Finished},
    secrets::SecretName,
    snapshot::{
        ActivityFilter, ActivityPage, ApiMode, ApprovalView, AskerView, CallAnswer, ClientView, ConnectorDetail,
        ConnectorView, ExportFormat, KeychainView, LogPage, RuleView, Snapshot,
    },
    store::ActivityCursor,
    tools::ToolList,
    traffic::Place,
    trust::rules::{Rule, RuleDraft, RuleId},
    wishes::Wish,
};

/// What stands behind the routes: the bridge, or a recorder in tests. Each method is [`BridgeHandle`]'s of that name.
pub(super) trait Api: Clone + Send + Sync + 'static {
    fn snapshot(&self) -> Arc<Snapshot>;
    fn tools(&self) -> Arc<ToolList>;
    fn events(&self, last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>);
    fn call(&self, caller: Caller, request: CallRequest) -> impl Answer<CallAnswer>;
    fn result(&self, caller: Caller, id: String, offset: u64, limit: u64) -> impl Answer<ResultPiece>;
    fn resources(&self, server: Option<&ConnectorId>) -> Result<ResourceList, ApiError>;
    fn read_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        turn: Option<Arc<Place>>,
    ) -> impl Answer<ReadAnswer>;
    fn save_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        turn: Option<Arc<Place>>,
    ) -> impl Answer<SavedResource>;
    fn prompts(&self, server: Option<&ConnectorId>) -> Result<PromptList, ApiError>;
    fn get_prompt(
        &self,
        caller: Caller,
        server: ConnectorId,
        name: String,
        arguments: Map<String, Value>,
        turn: Option<Arc<Place>>,
    ) -> impl Answer<PromptAnswer>;
    fn connector(&self, caller: Caller, id: String) -> impl Answer<ConnectorDetail>;
    fn clients(&self) -> Vec<ClientView>;
    fn change_client(&self, id: String, change: ClientChange) -> impl Answer<ClientView>;
    fn revoke_client(&self, id: String) -> impl Answer<()>;
    fn renewed(&self, caller: &Caller) -> Option<Caller>;
    fn api_mode(&self) -> ApiMode;
    fn open_pairing(&self) -> impl Future<Output = ()> + Send;
    fn close_pairing(&self) -> impl Future<Output = ()> + Send;
    fn turn_away(&self, id: String) -> impl Answer<()>;
    fn ask_pairing(&self, caller: Caller, name: String) -> impl Answer<PairingBegun>;
    fn poll_pairing(&self, id: String) -> impl Future<Output = Polled> + Send;
    fn answer_pairing(&self, id: String, code: String, terms: Terms) -> impl Answer<ClientView>;
    fn askers(&self) -> Vec<AskerView>;
    fn set_asker(&self, path: String, script: Option<String>, on: bool) -> impl Answer<()>;
    fn allowed_origins(&self) -> Vec<String>;
    fn set_trust(&self, change: TrustChange) -> impl Answer<()>;
    fn wish(&self, caller: Caller, wish: Wish) -> impl Answer<Pending>;
    fn reconnect_for(&self, caller: Caller, id: ConnectorId) -> impl Answer<(ConnectorView, bool)>;
    fn turn_off_for(&self, caller: Caller, id: ConnectorId) -> impl Answer<()>;
    fn add(&self, id: ConnectorId, entry: Map<String, Value>) -> impl Answer<ConnectorView>;
    fn set_enabled(&self, id: ConnectorId, enabled: bool) -> impl Answer<()>;
    fn set_auto_approve(&self, id: ConnectorId, value: AutoApprove) -> impl Answer<()>;
    fn remove(&self, id: ConnectorId) -> impl Answer<()>;
    fn reconnect(&self, id: ConnectorId) -> impl Answer<(ConnectorView, bool)>;
    fn stop_trying(&self, id: ConnectorId) -> impl Answer<ConnectorView>;
    fn log(&self, id: ConnectorId, query: LogQuery) -> impl Answer<LogPage>;
    fn activity(&self, filter: ActivityFilter, cursor: ActivityCursor, limit: usize) -> impl Answer<ActivityPage>;
    fn export_activity(
        &self,
        filter: ActivityFilter,
        format: ExportFormat,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static;
    fn approvals(&self, caller: Caller) -> impl Future<Output = Vec<ApprovalView>> + Send;
    fn approval(&self, caller: Caller, id: String) -> impl Answer<ApprovalView>;
    fn answer_approval(&self, id: String, answer: ApprovalAnswer) -> impl Answer<ApprovalView>;
    fn extend_approval(&self, id: String) -> impl Answer<ApprovalView>;
    fn answer_call(&self, id: String, reply: CallReply) -> impl Answer<ApprovalView>;
    fn draft_rule(&self, id: String) -> impl Answer<RuleDraft>;
    fn always_allow(&self, id: String, draft: RuleDraft) -> impl Answer<ApprovalView>;
    fn answer_proposal(&self, id: String, yes: bool) -> impl Answer<()>;
    fn rules(&self) -> impl Answer<Vec<RuleView>>;
    fn add_rule(&self, draft: RuleDraft) -> impl Answer<Rule>;
    fn withdraw_rule(&self, id: RuleId) -> impl Answer<()>;
    fn auto_approved(&self, caller: Caller) -> impl Future<Output = AutoApproved> + Send;
    fn approve_launches(&self, ids: Vec<String>) -> impl Answer<()>;
    /// As [`BridgeHandle::answer_asleep`].
    fn answer_asleep(&self, id: String, keep: bool) -> impl Answer<()>;
    fn keep_blocked(&self, id: String) -> impl Answer<()>;
    fn approve_tools(&self, server: ConnectorId, versions: Vec<(ToolName, String)>) -> impl Answer<()>;
    fn keep_tool_blocked(&self, server: ConnectorId, tool: ToolName, version: String) -> impl Answer<()>;
    fn approve_prompt(&self, server: ConnectorId, prompt: String, version: String) -> impl Answer<()>;
    fn keep_prompt_blocked(&self, server: ConnectorId, prompt: String, version: String) -> impl Answer<()>;
    fn approve_instructions(&self, server: ConnectorId, version: String) -> impl Answer<()>;
    fn keep_instructions_withheld(&self, server: ConnectorId, version: String) -> impl Answer<()>;
    fn sign_in(&self, id: ConnectorId, ask: SignInAsk) -> impl Answer<String>;
    fn cancel_sign_in(&self, id: ConnectorId) -> impl Answer<()>;
    fn sign_out(&self, id: ConnectorId) -> impl Answer<()>;
    fn finish_sign_in(&self, callback: Callback) -> impl Future<Output = Finished> + Send;
    fn deep_links(&self) -> bool;
    fn set_secret(&self, id: ConnectorId, name: Option<SecretName>, value: SecretString) -> impl Answer<()>;
    fn forget_secret(&self, id: ConnectorId, name: Option<SecretName>) -> impl Answer<()>;
    fn look_at_keychain(&self) -> impl Answer<KeychainView>;
    fn keep_until_quit(&self) -> impl Answer<KeychainView>;
}

/// What an operation comes to. Dropping it gives the operation up.
pub(super) trait Answer<T>: Future<Output = Result<T, ApiError>> + Send {}

impl<T, F: Future<Output = Result<T, ApiError>> + Send> Answer<T> for F {}

impl Api for BridgeHandle {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot()
    }

    fn tools(&self) -> Arc<ToolList> {
        self.tools()
    }

    fn events(&self, last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>) {
        self.events(last)
    }

    fn call(&self, caller: Caller, request: CallRequest) -> impl Answer<CallAnswer> {
        self.call(caller, request)
    }

    fn result(&self, caller: Caller, id: String, offset: u64, limit: u64) -> impl Answer<ResultPiece> {
        self.result(caller, id, offset, limit)
    }

    fn resources(&self, server: Option<&ConnectorId>) -> Result<ResourceList, ApiError> {
        self.resources(server)
    }

    fn read_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        turn: Option<Arc<Place>>,
    ) -> impl Answer<ReadAnswer> {
        self.read_resource(caller, server, uri, turn)
    }

    fn save_resource(
        &self,
        caller: Caller,
        server: ConnectorId,
        uri: String,
        turn: Option<Arc<Place>>,
    ) -> impl Answer<SavedResource> {
        self.save_resource(caller, server, uri, turn)
    }

    fn prompts(&self, server: Option<&ConnectorId>) -> Result<PromptList, ApiError> {
        self.prompts(server)
    }

    fn get_prompt(
        &self,
        caller: Caller,
        server: ConnectorId,
        name: String,
        arguments: Map<String, Value>,
        turn: Option<Arc<Place>>,
    ) -> impl Answer<PromptAnswer> {
        self.get_prompt(caller, server, name, arguments, turn)
    }

    fn connector(&self, caller: Caller, id: String) -> impl Answer<ConnectorDetail> {
        self.connector(caller, id)
    }

    fn clients(&self) -> Vec<ClientView> {
        self.clients()
    }

    fn change_client(&self, id: String, change: ClientChange) -> impl Answer<ClientView> {
        self.change_client(id, change)
    }

    fn revoke_client(&self, id: String) -> impl Answer<()> {
        self.revoke_client(id)
    }

    fn renewed(&self, caller: &Caller) -> Option<Caller> {
        self.renewed(caller)
    }

    fn api_mode(&self) -> ApiMode {
        self.api_mode()
    }

    fn open_pairing(&self) -> impl Future<Output = ()> + Send {
        self.open_pairing()
    }

    fn close_pairing(&self) -> impl Future<Output = ()> + Send {
        self.close_pairing()
    }

    fn turn_away(&self, id: String) -> impl Answer<()> {
        self.turn_away(id)
    }

    fn ask_pairing(&self, caller: Caller, name: String) -> impl Answer<PairingBegun> {
        self.ask_pairing(caller, name)
    }

    fn poll_pairing(&self, id: String) -> impl Future<Output = Polled> + Send {
        self.poll_pairing(id)
    }

    fn answer_pairing(&self, id: String, code: String, terms: Terms) -> impl Answer<ClientView> {
        self.answer_pairing(id, code, terms)
    }

    fn askers(&self) -> Vec<AskerView> {
        self.askers()
    }

    fn set_asker(&self, path: String, script: Option<String>, on: bool) -> impl Answer<()> {
        self.set_asker(path, script, on)
    }

    fn allowed_origins(&self) -> Vec<String> {
        self.allowed_origins()
    }

    fn set_trust(&self, change: TrustChange) -> impl Answer<()> {
        self.set_trust(change)
    }

    fn wish(&self, caller: Caller, wish: Wish) -> impl Answer<Pending> {
        self.wish(caller, wish)
    }

    fn reconnect_for(&self, caller: Caller, id: ConnectorId) -> impl Answer<(ConnectorView, bool)> {
        self.reconnect_for(caller, id)
    }

    fn turn_off_for(&self, caller: Caller, id: ConnectorId) -> impl Answer<()> {
        self.turn_off_for(caller, id)
    }

    fn add(&self, id: ConnectorId, entry: Map<String, Value>) -> impl Answer<ConnectorView> {
        self.add(id, entry)
    }

    fn set_enabled(&self, id: ConnectorId, enabled: bool) -> impl Answer<()> {
        self.set_enabled(id, enabled)
    }

    fn set_auto_approve(&self, id: ConnectorId, value: AutoApprove) -> impl Answer<()> {
        self.set_auto_approve(id, value)
    }

    fn remove(&self, id: ConnectorId) -> impl Answer<()> {
        self.remove(id)
    }

    fn reconnect(&self, id: ConnectorId) -> impl Answer<(ConnectorView, bool)> {
        self.reconnect(id)
    }

    fn stop_trying(&self, id: ConnectorId) -> impl Answer<ConnectorView> {
        self.stop_trying(id)
    }

    fn log(&self, id: ConnectorId, query: LogQuery) -> impl Answer<LogPage> {
        self.log(id, query)
    }

    fn activity(&self, filter: ActivityFilter, cursor: ActivityCursor, limit: usize) -> impl Answer<ActivityPage> {
        self.activity(filter, cursor, limit)
    }

    fn export_activity(
        &self,
        filter: ActivityFilter,
        format: ExportFormat,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        self.export_activity(filter, format)
    }

    fn approvals(&self, caller: Caller) -> impl Future<Output = Vec<ApprovalView>> + Send {
        self.approvals(caller)
    }

    fn approval(&self, caller: Caller, id: String) -> impl Answer<ApprovalView> {
        self.approval(caller, id)
    }

    fn answer_approval(&self, id: String, answer: ApprovalAnswer) -> impl Answer<ApprovalView> {
        self.answer_approval(id, answer)
    }

    fn extend_approval(&self, id: String) -> impl Answer<ApprovalView> {
        self.extend_approval(id)
    }

    fn answer_call(&self, id: String, reply: CallReply) -> impl Answer<ApprovalView> {
        self.answer_call(id, reply)
    }

    fn draft_rule(&self, id: String) -> impl Answer<RuleDraft> {
        self.draft_rule(id)
    }

    fn always_allow(&self, id: String, draft: RuleDraft) -> impl Answer<ApprovalView> {
        self.always_allow(id, draft)
    }

    fn answer_proposal(&self, id: String, yes: bool) -> impl Answer<()> {
        self.answer_proposal(id, yes)
    }

    fn rules(&self) -> impl Answer<Vec<RuleView>> {
        self.rules()
    }

    fn add_rule(&self, draft: RuleDraft) -> impl Answer<Rule> {
        self.add_rule(draft)
    }

    fn withdraw_rule(&self, id: RuleId) -> impl Answer<()> {
        self.withdraw_rule(id)
    }

    fn auto_approved(&self, caller: Caller) -> impl Future<Output = AutoApproved> + Send {
        self.auto_approved(caller)
    }

    fn approve_launches(&self, ids: Vec<String>) -> impl Answer<()> {
        self.approve_launches(ids, Vec::new())
    }

    fn answer_asleep(&self, id: String, keep: bool) -> impl Answer<()> {
        self.answer_asleep(id, keep)
    }

    fn keep_blocked(&self, id: String) -> impl Answer<()> {
        self.keep_blocked(id)
    }

    fn approve_tools(&self, server: ConnectorId, versions: Vec<(ToolName, String)>) -> impl Answer<()> {
        self.approve_tools(server, versions)
    }

    fn keep_tool_blocked(&self, server: ConnectorId, tool: ToolName, version: String) -> impl Answer<()> {
        self.keep_tool_blocked(server, tool, version)
    }

    fn approve_prompt(&self, server: ConnectorId, prompt: String, version: String) -> impl Answer<()> {
        self.approve_prompt(server, prompt, version)
    }

    fn keep_prompt_blocked(&self, server: ConnectorId, prompt: String, version: String) -> impl Answer<()> {
        self.keep_prompt_blocked(server, prompt, version)
    }

    fn approve_instructions(&self, server: ConnectorId, version: String) -> impl Answer<()> {
        self.approve_instructions(server, version)
    }

    fn keep_instructions_withheld(&self, server: ConnectorId, version: String) -> impl Answer<()> {
        self.keep_instructions_withheld(server, version)
    }

    fn sign_in(&self, id: ConnectorId, ask: SignInAsk) -> impl Answer<String> {
        self.sign_in(id, ask)
    }

    fn cancel_sign_in(&self, id: ConnectorId) -> impl Answer<()> {
        self.cancel_sign_in(id)
    }

    fn sign_out(&self, id: ConnectorId) -> impl Answer<()> {
        self.sign_out(id)
    }

    fn finish_sign_in(&self, callback: Callback) -> impl Future<Output = Finished> + Send {
        self.finish_sign_in(callback)
    }

    fn deep_links(&self) -> bool {
        self.deep_links()
    }

    fn set_secret(&self, id: ConnectorId, name: Option<SecretName>, value: SecretString) -> impl Answer<()> {
        self.set_secret(id, name, value)
    }

    fn forget_secret(&self, id: ConnectorId, name: Option<SecretName>) -> impl Answer<()> {
        self.forget_secret(id, name)
    }

    fn look_at_keychain(&self) -> impl Answer<KeychainView> {
        self.look_at_keychain().map(Ok)
    }

    fn keep_until_quit(&self) -> impl Answer<KeychainView> {
        self.keep_until_quit().map(Ok)
    }
}
