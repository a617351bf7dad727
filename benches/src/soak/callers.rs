//! Callers that call at a steady pace, and what they accept as an answer.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::Daemon,
    http::{Address, Answer, Connection},
};
use serde_json::{Value, json};

use super::{
    CALLERS, Tally,
    chance::Chance,
    upstreams::{IDS, tool},
};

/// All callers together make this many calls a second.
const CALLS_A_SECOND: u64 = 20;

/// With this little success the mischief hides what is to be seen.
pub(super) const LEAST_SUCCESS: f64 = 0.7;

/// Refusals that a killed, edited or disabled upstream explains.
const EXPLAINED: [&str; 6] = [
    "unknown_tool",
    "disabled",
    "unavailable",
    "upstream_error",
    "upstream_timeout",
    "rate_limited",
];

/// A connection that broke off, which nothing here explains; more of them would say the same.
const MOST_TOLD: usize = 20;

/// Calls until it is over. Each call has a key of its own.
pub(super) fn call_until(over: &AtomicBool, address: &Address, caller: u64, mut chance: Chance, tally: &Mutex<Tally>) {
    let pace = Duration::from_millis(1000 * CALLERS / CALLS_A_SECOND);
    let mut connection = Connection::open(address);
    let mut due = Instant::now();
    for number in 0_u64.. {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let id = chance.one_of(IDS);
        let key = format!("{id}-{caller}-{number}");
        let body = body(id, &key, chance.below(150));
        let answer = connection.try_send("POST", "/mcp/call", &[], body.to_string().as_bytes());
        if answer.is_err() {
            connection = Connection::open(address);
        }
        note(tally, id, key, answer);
        due += pace;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// One call of our own, outside the tally.
pub(super) fn one_call(bridge: &Daemon, id: &str) -> Answer {
    bridge.post("/mcp/call", &body(id, &format!("everything-is-quiet-{id}"), 0))
}

fn body(id: &str, key: &str, ms: u64) -> Value {
    let input = match id {
        "everything" => json!({"message": key}),
        _ => json!({"key": key, "ms": ms}),
    };
    json!({"name": tool(id), "input": input, "timeout_ms": 10_000})
}

fn note(tally: &Mutex<Tally>, id: &str, key: String, answer: Result<Answer, String>) {
    let mut tally = tally.lock().expect("no holder panics");
    tally.calls += 1;
    let fault = match answer {
        Err(fault) => Some(format!("The call {key} had no answer: {fault}.")),
        Ok(answer) => match verdict(id, &key, &answer) {
            Ok(None) => {
                tally.ok.push(key);
                None
            }
            Ok(Some(code)) => {
                *tally.errors.entry(code).or_default() += 1;
                None
            }
            Err(fault) => Some(fault),
        },
    };
    if let Some(fault) = fault.filter(|_| tally.broken.len() < MOST_TOLD) {
        tally.broken.push(fault);
    }
}

/// Nothing for the right result, the code of a refusal that has one.
fn verdict(id: &str, key: &str, answer: &Answer) -> Result<Option<String>, String> {
    let body: Value = serde_json::from_slice(&answer.body)
        .map_err(|fault| format!("The call {key} was answered with no JSON: {fault}."))?;
    if answer.status == 200 && body["ok"] == true {
        let wanted = match id {
            "everything" => format!("Echo: {key}"),
            _ => key.to_owned(),
        };
        return match body["text"] == wanted.as_str() {
            true => Ok(None),
            false => Err(format!("The call {key} got another one's answer: {body}.")),
        };
    }
    let code = body["code"].as_str().unwrap_or_default();
    let said = body["error"].as_str().unwrap_or_default();
    match EXPLAINED.contains(&code) && !said.is_empty() {
        true => Ok(Some(code.to_owned())),
        false => Err(format!(
            "The call {key} was refused in an unexpected way: {} {body}.",
            answer.status
        )),
    }
}
