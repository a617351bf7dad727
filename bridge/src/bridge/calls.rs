//! A call's way: name → tool → connector's session → upstream → shaped result.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    CallRequest, Caller, Inner, Published,
    activity::{DecidedBy, Recording},
    ask::{self, Subject},
    permit::{Permit, Wanted},
    pins,
    publish::RowLive,
    results,
};
use crate::{
    activity::{Entry, Outcome, WhoRecord},
    connector::{Door, Step, Tell, Whose, unavailable},
    error::{ApiError, Code},
    event::Event,
    ids::{ConnectorId, ExposedName, ToolName},
    snapshot::{ActivityWhat, CallAnswer},
    tools::{Found, Route, Shaped, Undecodable, Unlisted, shape},
};

/// The code of a call whose tool says that it failed.
const TOOL_ERROR: &str = "tool_error";
/// How many tools are named at most that a name could have meant.
const MOST_MEANT: usize = 8;

struct Target {
    door: Door,
    exposed: ExposedName,
    tool: ToolName,
    /// Why it is hidden.
    hidden: Option<Unlisted>,
}

pub(super) async fn run(inner: &Arc<Inner>, caller: Caller, request: CallRequest) -> Result<CallAnswer, ApiError> {
    let target = found(inner, &caller, &request.name).await;
    let target = target.map_err(|unfound| unfound.told(inner, &caller, &request))?;
    let number = inner.calls.fetch_add(1, Ordering::Relaxed) + 1;
    let begun = Instant::now();
    inner.events.publish(Event::CallStarted {
        call: number,
        server: target.door.shared.id.clone(),
        tool: target.exposed.clone(),
        caller: caller.label().to_owned(),
    });
    let mut finish = Finish {
        inner,
        target: &target,
        caller: caller.label(),
        number,
        begun,
        outcome: None,
        recording: Recording::begin(
            &inner.world.activity,
            entry(inner, &caller, &request, &target.door.shared.id, &target.tool).hiding(&target.door.shared.log),
        ),
    };
    let redactor = target.door.shared.log.redactor();
    let tell = |step: Step| {
        inner.events.publish(Event::CallProgress {
            call: number,
            server: target.door.shared.id.clone(),
            tool: target.exposed.clone(),
            caller: caller.label().to_owned(),
            progress: step.progress,
            total: step.total,
            message: step.message.map(|words| redactor.sentence(&words).into_owned()),
        });
    };
    caller.look_for_program();
    let decided = &finish.recording.decided;
    let answer = send(inner, &caller, &target, request, begun, &tell, decided).await;
    let answer = answer.map_err(|error| ask::unsaid(&target.door, error));
    finish.outcome = Some(match &answer {
        Ok(answer) => (answer.ok, answer.code.clone()),
        Err(error) => (false, Some(error.code.name().to_owned())),
    });
    finish
        .recording
        .warned(answer.as_ref().is_ok_and(|answer| !answer.warnings.is_empty()));
    finish.recording.ended(match &answer {
        Ok(answer) if answer.ok => Outcome::Ok,
        Ok(_) => Outcome::Failed(TOOL_ERROR),
        Err(error) => Outcome::of(error.code),
    });
    answer
}

/// Tells of the end of a call even when its caller is gone and the future is dropped.
struct Finish<'a> {
    inner: &'a Inner,
    target: &'a Target,
    caller: &'a str,
    number: u64,
    begun: Instant,
    outcome: Option<(bool, Option<String>)>,
    recording: Recording<'a>,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let (ok, code) = self.outcome.take().unwrap_or((false, Some("cancelled".to_owned())));
        self.inner.events.publish(Event::CallFinished {
            call: self.number,
            server: self.target.door.shared.id.clone(),
            tool: self.target.exposed.clone(),
            caller: self.caller.to_owned(),
            ok,
            code,
            duration_ms: millis(self.begun.elapsed()),
        });
    }
}

/// Whether a name can be of a tool of this connector.
fn may_be_of(name: &str, server: &str) -> bool {
    let exposed: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    [server, &exposed]
        .iter()
        .any(|server| name.starts_with(&format!("mcp__{server}__")))
}

/// A name that can only be of a connector whose tools are not shown: which they are is not known yet.
fn withheld(published: &Published, caller: &Caller, name: &str) -> Option<ApiError> {
    let shared = published.doors.values().map(|door| &door.shared);
    let of_it = shared.filter(|shared| {
        caller.sees(shared.id.as_str()) && shared.entry().enabled && may_be_of(name, shared.id.as_str())
    });
    of_it
        .into_iter()
        .find_map(|shared| Some(unavailable(&shared.name(), shared.view().machine.withheld()?)))
}

/// A call that reaches no connector; with the tool that it names, where there is one.
struct Unfound {
    error: ApiError,
    named: Option<(ConnectorId, ToolName)>,
}

impl Unfound {
    fn told(self, inner: &Inner, caller: &Caller, request: &CallRequest) -> ApiError {
        if let Some((server, tool)) = &self.named {
            let entry = entry(inner, caller, request, server, tool);
            inner.world.activity.record(entry.ended(Outcome::of(self.error.code)));
        }
        self.error
    }
}

fn entry(inner: &Inner, caller: &Caller, request: &CallRequest, server: &ConnectorId, tool: &ToolName) -> Entry {
    let what = ActivityWhat::Call {
        server: server.clone(),
        tool: tool.clone(),
        arguments: inner.world.activity.arguments(&request.input),
    };
    Entry::new(WhoRecord::from(caller), what)
}

/// What may be called by this name; a tool whose connector's list is being looked at is waited for.
async fn found(inner: &Inner, caller: &Caller, name: &str) -> Result<Target, Unfound> {
    let found = find(inner, caller, name);
    let may_come = found.as_ref().map_or(true, |target| target.hidden.is_some());
    let is_looked_at = || {
        let published = inner.published.load();
        let mut live = published.rows.iter().filter_map(|row| row.live.as_ref());
        let is_open = |live: &RowLive| {
            let door = published.doors.get(&live.entry.id);
            door.is_some_and(|door| live.is_looked_at(&door.shared.view()))
        };
        live.any(|live| may_be_of(name, live.entry.id.as_str()) && is_open(live))
    };
    if !(may_come && is_looked_at()) {
        return found;
    }
    inner.settled().await;
    find(inner, caller, name)
}

fn find(inner: &Inner, caller: &Caller, name: &str) -> Result<Target, Unfound> {
    let published = inner.published.load();
    let (server, tool, exposed, hidden) = match published.tools.find(name) {
        Some(Found::Listed(tool)) => (&tool.server, &tool.tool.name, &tool.exposed, None),
        Some(Found::Hidden(route, why)) => (route.server(), route.tool(), &route.exposed, Some(why)),
        Some(Found::Several(routes)) => {
            return Err(Unfound {
                error: ambiguous(caller, name, &routes),
                named: None,
            });
        }
        None => {
            return Err(Unfound {
                error: withheld(&published, caller, name).unwrap_or_else(|| unknown_tool_of(inner, caller, name)),
                named: None,
            });
        }
    };
    if !caller.sees(server.as_str()) {
        return Err(Unfound {
            error: unknown_tool_of(inner, caller, name),
            named: None,
        });
    }
    let refused = |error| Unfound {
        error,
        named: Some((server.clone(), tool.clone())),
    };
    let Some(door) = published.doors.get(server) else {
        return Err(refused(ApiError::new(
            Code::Unavailable,
            format!("{server} is being started; try again."),
        )));
    };
    let shown = door.shared.name();
    if !door.shared.entry().enabled {
        return Err(refused(ApiError::turned_off(&shown)));
    }
    if let Some(cause) = door.shared.view().machine.withheld() {
        return Err(refused(unavailable(&shown, cause)));
    }
    Ok(Target {
        door: door.clone(),
        exposed: exposed.clone(),
        tool: tool.clone(),
        hidden,
    })
}

/// A name that several tools could have meant, with those that the caller may know of.
fn ambiguous(caller: &Caller, name: &str, routes: &[&Route]) -> ApiError {
    let shown = super::shown(name);
    let names: Vec<&str> = routes
        .iter()
        .filter(|route| caller.sees(route.server().as_str()))
        .map(|route| route.exposed.as_str())
        .take(MOST_MEANT)
        .collect();
    let hint = match names.as_slice() {
        [] => "GET /mcp/tools lists them.".to_owned(),
        [only] => format!("Did you mean {only}?"),
        [first @ .., last] => format!("It could be {} or {last}: call one of these.", first.join(", ")),
    };
    ApiError::new(Code::UnknownTool, format!("There is no tool \"{shown}\". {hint}"))
}

/// One that sees some connectors is told nothing of the others' tools.
fn unknown_tool_of(inner: &Inner, caller: &Caller, name: &str) -> ApiError {
    let sees_all = match caller {
        Caller::Owner | Caller::WalkIn(_) => true,
        Caller::Client { pass, .. } => pass.servers.is_none(),
    };
    match sees_all {
        true => unknown_tool(inner, name),
        false => ApiError::new(
            Code::UnknownTool,
            format!(
                "There is no tool \"{}\". GET /mcp/tools lists them.",
                super::shown(name)
            ),
        ),
    }
}

fn unknown_tool(inner: &Inner, name: &str) -> ApiError {
    let shown = super::shown(name);
    let published = inner.published.load();
    let hint = match published.tools.did_you_mean(name) {
        Some(near) => format!(" Did you mean {near}?"),
        None => " GET /mcp/tools lists them.".to_owned(),
    };
    ApiError::new(Code::UnknownTool, format!("There is no tool \"{shown}\".{hint}"))
}

/// Deny rule, tool state, connecting, the decision, the hand-over.
async fn send(
    inner: &Arc<Inner>,
    caller: &Caller,
    target: &Target,
    request: CallRequest,
    begun: Instant,
    tell: &Tell<'_>,
    decided: &DecidedBy,
) -> Result<CallAnswer, ApiError> {
    let door = &target.door;
    let input = Arc::new(request.input);
    let permit = Permit {
        inner,
        caller,
        door,
        wanted: Wanted::Tool {
            name: target.tool.clone(),
            exposed: target.exposed.clone(),
        },
        arguments: input.clone(),
        turn: request.turn,
        decided,
    };
    permit.not_denied(&inner.published.load_full()).await?;
    if let Some(why) = target.hidden {
        return Err(pins::refusal(why, &door.shared.id, &door.shared.name(), &target.tool));
    }
    ask::session(door).await?;
    let leave = permit.leave().await?;
    // The person may have taken their time.
    let session = ask::session(door).await?;
    let time = ask::time(door, request.timeout, inner.default_call_time);
    let tool = target.tool.as_str();
    let whose = Whose {
        caller: caller.label(),
        tell,
    };
    let before = || permit.still(leave);
    let raw = ask::send(door, Subject::Tool(&target.tool), session, before, |session| {
        let input = &input;
        async move { session.call(tool, input, time, whose).await }
    })
    .await?;
    answer(inner, caller, target, raw, begun).await
}

async fn answer(
    inner: &Arc<Inner>,
    caller: &Caller,
    target: &Target,
    raw: String,
    begun: Instant,
) -> Result<CallAnswer, ApiError> {
    let unreadable = |error: Undecodable| {
        let name = &target.door.shared.id;
        ApiError::new(
            Code::UpstreamError,
            format!("{name} was asked for {}. {error}", target.tool),
        )
    };
    let (result, result_id) = results::shape_and_keep(inner, caller, raw, shape)
        .await
        .map_err(unreadable)?;
    let warnings = results::warnings((&*result.text).into()).await;
    Ok(CallAnswer {
        warnings,
        ..finished(target, result, result_id, millis(begun.elapsed()))
    })
}

fn finished(target: &Target, shaped: Shaped, result_id: Option<String>, duration_ms: u64) -> CallAnswer {
    CallAnswer {
        ok: shaped.ok,
        content: shaped.content,
        text: shaped.text,
        structured: shaped.structured,
        code: (!shaped.ok).then(|| TOOL_ERROR.to_owned()),
        error: shaped.error,
        server: target.door.shared.id.clone(),
        tool: target.tool.clone(),
        duration_ms,
        truncated: shaped.truncated,
        result_id,
        warnings: Vec::new(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
