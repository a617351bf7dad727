//! What it costs a call that it is looked at: the gate, a token, the decision, the tool's fingerprint, its entry in activity.
//!
//! The same functions in the order of a call's way, without the sockets and the upstream between them. Where the way awaits
//! something, this does not: what it awaits is there already.

use std::{hint::black_box, path::PathBuf, sync::Arc, time::Instant};

use neuron_bridge::{
    activity::{Entry, Keep, Outcome, Recorder, WhoRecord},
    caller::{
        Caller,
        token::{PREFIX, Presented, SECRET_LENGTH, TokenHash},
    },
    http::gate::{self, Door},
    snapshot::ActivityWhat,
    store::Store,
    trust::{
        Fingerprint,
        decision::{self, Call, Subject, View},
        rules::Who,
    },
};
use neuron_tests::home::Home;

use crate::{
    decide,
    report::{Budget, Line},
};

const CALLS: usize = 100_000;
/// Calls after which the writing thread is waited for, so that none is dropped.
const AT_ONCE: usize = 4_000;
const PORT: u16 = 8787;

pub(crate) fn measure() -> Vec<Line> {
    let mut took = calls();
    took.sort_by(f64::total_cmp);
    let line = |what, of_100: usize, budget| Line {
        what,
        measured: took[CALLS / 100 * of_100],
        unit: "µs",
        budget,
    };
    vec![
        line(
            "gate, token, decision, fingerprint, activity of a call, p50",
            50,
            Budget::None,
        ),
        line("the same, p99", 99, Budget::AtMost(30.0)),
    ]
}

/// Microseconds of each call, with a thousand rules of one connector with five thousand tools, and activity written meanwhile.
fn calls() -> Vec<f64> {
    let home = Home::new();
    let store = Arc::new(Store::open(home.path().join("activity.db")).expect("a database"));
    let recorder = Recorder::start(store, Keep::default(), |_| {}).expect("a thread that writes");
    let view = decide::mixed(1);
    let token = format!("{PREFIX}bench_{}", "s".repeat(SECRET_LENGTH));
    let raw = format!(
        "POST /mcp/call HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 81\r\n\r\n"
    );
    let head = head(&raw);
    let one = One {
        view: &view,
        recorder: &recorder,
        head: &head,
        raw: raw.as_bytes(),
        token: &token,
        known: TokenHash::of(&token),
    };
    (0..CALLS)
        .map(|number| {
            if number.is_multiple_of(AT_ONCE) {
                assert!(
                    recorder.flush(std::time::Duration::from_secs(30)),
                    "activity is written"
                );
            }
            let begin = Instant::now();
            one.call(black_box(number));
            begin.elapsed().as_secs_f64() * 1_000_000.0
        })
        .collect()
}

struct One<'a> {
    view: &'a View,
    recorder: &'a Recorder,
    head: &'a http::request::Parts,
    raw: &'a [u8],
    token: &'a str,
    known: TokenHash,
}

impl One<'_> {
    fn call(&self, number: usize) {
        gate::check(self.head, self.raw, Door::Port(PORT), &[]).expect("a head as curl sends it");
        let shown = Presented::parse(self.token).expect("a token's form");
        assert!(shown.hash.matches(&self.known), "the right token");

        let (server, tool, program) = (
            decide::server(0),
            decide::tool(number * 31 % decide::TOOLS),
            decide::program(1),
        );
        let arguments = decide::arguments();
        let call = Call {
            who: Who::WalkIn(Some(&program)),
            server: &server,
            subject: Subject::Tool(&tool),
            arguments: &arguments,
            resolve: &|_| None::<Vec<PathBuf>>,
        };
        let fingerprint = || -> Option<Fingerprint> { self.view.tool(&server, &tool)?.fingerprint() };
        black_box(decision::refusal(&call, self.view, 1));
        black_box(decision::needs_program(&call, self.view));
        let decided = fingerprint();
        black_box(decision::decision(&call, self.view, 1));
        black_box(decision::refusal(&call, self.view, 1));
        assert_eq!(fingerprint(), decided, "as it was decided on");

        let what = ActivityWhat::Call {
            server: server.clone(),
            tool: tool.clone(),
            arguments: self.recorder.arguments(&arguments),
        };
        let entry = Entry::new(WhoRecord::from(&Caller::walk_in()), what);
        self.recorder.record(entry.ended(Outcome::Ok));
    }
}

/// As the server's parser leaves it.
fn head(raw: &str) -> http::request::Parts {
    let mut lines = raw.lines();
    let mut words = lines.next().expect("a request line").split(' ');
    let mut request = http::Request::builder()
        .method(words.next().expect("a method"))
        .uri(words.next().expect("a path"));
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        request = request.header(name, value);
    }
    request.body(()).expect("a request").into_parts().0
}
