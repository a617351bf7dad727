//! A call's way: name → tool → connector's session → upstream → shaped result.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{CallRequest, Caller, Inner, results};
use crate::{
    config::MAX_CALL_MS,
    connector::{CallFault, Cause, Door, Session, Step, Tell, transport::BROKEN_ANSWER},
    error::{Action, ApiError, Code},
    event::Event,
    ids::{ExposedName, ToolName},
    snapshot::CallAnswer,
    tools::{Found, Shaped, Undecodable, shape},
};

struct Target {
    door: Door,
    exposed: ExposedName,
    tool: ToolName,
}

pub(super) async fn run(inner: &Arc<Inner>, caller: Caller, request: CallRequest) -> Result<CallAnswer, ApiError> {
    let target = find(inner, &request.name)?;
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
    };
    let tell = |step: Step| {
        inner.events.publish(Event::CallProgress {
            call: number,
            server: target.door.shared.id.clone(),
            tool: target.exposed.clone(),
            caller: caller.label().to_owned(),
            progress: step.progress,
            total: step.total,
            message: step.message,
        });
    };
    let answer = send(inner, &caller, &target, request, begun, &tell).await;
    let answer = answer.map_err(|error| ApiError {
        message: target.door.shared.log.redactor().sentence(&error.message).into_owned(),
        ..error
    });
    finish.outcome = Some(match &answer {
        Ok(answer) => (answer.ok, answer.code.clone()),
        Err(error) => (false, Some(error.code.name().to_owned())),
    });
    answer
}

/// Tells of the end of a call even when its caller is gone and the future is dropped.
struct Finish<'a> {
    inner: &'a Inner,
    target: &'a Target,
    caller: &'static str,
    number: u64,
    begun: Instant,
    outcome: Option<(bool, Option<String>)>,
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

fn find(inner: &Inner, name: &str) -> Result<Target, ApiError> {
    let published = inner.published.load();
    let (server, tool, exposed, hidden) = match published.tools.find(name) {
        Some(Found::Listed(tool)) => (&tool.server, &tool.tool.name, &tool.exposed, false),
        Some(Found::Hidden(route)) => (&route.server, &route.tool, &route.exposed, true),
        None => return Err(unknown_tool(inner, name)),
    };
    let Some(door) = published.doors.get(server) else {
        return Err(ApiError::new(
            Code::Unavailable,
            format!("{server} is being started; try again."),
        ));
    };
    let shown = door.shared.name();
    if !door.shared.entry().enabled {
        return Err(ApiError::new(Code::Disabled, format!("{shown} is turned off.")).with_action(Some(Action::Enable)));
    }
    if hidden {
        return Err(ApiError::new(
            Code::Disabled,
            format!("The tool {tool} of {shown} is turned off (\"disabledTools\" of {server} in connectors.json)."),
        ));
    }
    Ok(Target {
        door: door.clone(),
        exposed: exposed.clone(),
        tool: tool.clone(),
    })
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

async fn send(
    inner: &Arc<Inner>,
    caller: &Caller,
    target: &Target,
    request: CallRequest,
    begun: Instant,
    tell: &Tell<'_>,
) -> Result<CallAnswer, ApiError> {
    let shared = &target.door.shared;
    shared.mark_used();
    let session = target.door.acquire().await?;
    let session = still_listed(inner, target, session)?;
    let time = request
        .timeout
        .or(shared.entry().timeouts.call)
        .unwrap_or(inner.default_call_time)
        .min(Duration::from_millis(MAX_CALL_MS));
    let tool = target.tool.as_str();
    let mut outcome = session.call(tool, request.input.clone(), time, tell).await;
    if matches!(outcome, Err(CallFault::NotSent)) {
        // The session ended before the call reached it, so one more session may take it.
        let session = target.door.acquire().await?;
        outcome = session.call(tool, request.input, time, tell).await;
    }
    shared.mark_used();
    match outcome {
        Ok(raw) => answer(inner, caller, target, raw, begun).await,
        Err(fault) => Err(refusal(target, fault)),
    }
}

/// A first connection may find that the tool is gone.
fn still_listed(inner: &Inner, target: &Target, session: Arc<Session>) -> Result<Arc<Session>, ApiError> {
    let known = target.door.shared.view();
    if known.tools.tools.iter().any(|tool| tool.name == target.tool) {
        return Ok(session);
    }
    Err(unknown_tool(inner, target.exposed.as_str()))
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
    Ok(finished(target, result, result_id, millis(begun.elapsed())))
}

fn finished(target: &Target, shaped: Shaped, result_id: Option<String>, duration_ms: u64) -> CallAnswer {
    CallAnswer {
        ok: shaped.ok,
        content: shaped.content,
        text: shaped.text,
        structured: shaped.structured,
        code: (!shaped.ok).then(|| "tool_error".to_owned()),
        error: shaped.error,
        server: target.door.shared.id.clone(),
        tool: target.tool.clone(),
        duration_ms,
        truncated: shaped.truncated,
        result_id,
    }
}

fn refusal(target: &Target, fault: CallFault) -> ApiError {
    let (server, tool) = (&target.door.shared.id, &target.tool);
    match fault {
        CallFault::Refused {
            code: BROKEN_ANSWER,
            words,
        } => ApiError::new(
            Code::UpstreamError,
            format!("{server} ran {tool}, but its answer is of no use: {words}"),
        ),
        CallFault::Refused { words, .. } => {
            ApiError::new(Code::UpstreamError, format!("{server} refused to run {tool}: {words}"))
        }
        CallFault::TooLarge => ApiError::new(
            Code::ResultTooLarge,
            format!("The result of {tool} is larger than 16 MiB and was dropped; ask for less of it."),
        ),
        CallFault::TimedOut(time) => ApiError::new(
            Code::UpstreamTimeout,
            format!(
                "{tool} of {server} had no result after {} s and was told to stop.",
                time.as_secs_f32()
            ),
        ),
        CallFault::NotSent => ApiError::new(Code::Unavailable, format!("{server} ended just now; try again.")),
        CallFault::Lost(cause) => {
            let code = match cause.code() {
                Code::Unavailable => Code::UpstreamError,
                other => other,
            };
            let message = if matches!(cause, Cause::SignIn | Cause::HttpStatus { .. }) {
                format!("{server} did not run {tool}. {}", cause.sentence())
            } else {
                format!(
                    "{server} was lost while {tool} ran; it may or may not have done it. {}",
                    cause.sentence()
                )
            };
            ApiError::new(code, message)
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
