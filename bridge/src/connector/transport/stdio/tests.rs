use std::{collections::BTreeMap, fs, pin::pin};

use proptest::prelude::*;
use rmcp::{
    ClientServiceExt as _, Peer, ServiceError,
    model::{ClientJsonRpcMessage, ProtocolVersion, ServerResult},
    service::ClientLifecycleMode,
};
use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream, duplex};

use super::*;
use crate::connector::{
    log::LogWriter,
    process::{Command, Ended, How, Spawner},
    transport::{BROKEN_ANSWER, Counts, FRAME_TOO_LARGE, carrier::raw_of, inbox::MAX_NOISE},
};

/// A transport whose other ends the test holds.
struct Wire {
    transport: StdioTransport<DuplexStream>,
    stdin: DuplexStream,
    stdout: Option<DuplexStream>,
    closing: CancellationToken,
    stats: Arc<TransportStats>,
    log: Log,
    _home: tempfile::TempDir,
}

impl Wire {
    fn new(buffer: usize) -> Self {
        let (ours_in, stdin) = duplex(buffer);
        let (stdout, ours_out) = duplex(1 << 20);
        let (log, home) = log();
        let closing = CancellationToken::new();
        let (transport, stats) = StdioTransport::new(ours_in, ours_out, &closing, log.clone());
        Self {
            transport,
            stdin,
            stdout: Some(stdout),
            closing,
            stats,
            log,
            _home: home,
        }
    }

    /// Requests with the ids 1 to `n`.
    async fn with_calls(n: i64) -> Self {
        let mut wire = Self::new(1 << 20);
        for id in 1..=n {
            wire.ask(id, "tools/call", r#"{"name":"x"}"#).await;
        }
        wire
    }

    async fn ask(&mut self, id: i64, method: &str, params: &str) {
        self.transport.send(request(id, method, params)).await.unwrap();
    }

    /// What the transport makes of an output, until it ends.
    async fn answers(&mut self, output: impl AsRef<[u8]>) -> Vec<String> {
        let mut stdout = self.stdout.take().unwrap();
        let write = async {
            stdout.write_all(output.as_ref()).await.unwrap();
            drop(stdout);
        };
        let read = async {
            let mut seen = Vec::new();
            while let Some(message) = self.transport.receive().await {
                seen.push(describe(message));
            }
            seen
        };
        tokio::join!(write, read).1
    }

    fn logged(&self) -> Vec<String> {
        self.log.tail(20).iter().map(|line| line.text.to_string()).collect()
    }
}

fn log() -> (Log, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let log = writer.open(home.path().join("x.log"), crate::secrets::Redactor::default());
    (log, home)
}

fn request(id: i64, method: &str, params: &str) -> ClientJsonRpcMessage {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    serde_json::from_str(&text).unwrap()
}

fn ok(id: impl std::fmt::Display, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
}

/// `id=result`, `id!code`, or `>method`.
fn describe(message: ServerJsonRpcMessage) -> String {
    match message {
        ServerJsonRpcMessage::Response(response) => {
            format!("{}={}", response.id, raw_of(response.result).unwrap())
        }
        ServerJsonRpcMessage::Error(error) => format!("{}!{}", error.id.unwrap(), error.error.code.0),
        call => {
            let call = serde_json::to_value(call).unwrap();
            format!(">{}", call["method"].as_str().unwrap())
        }
    }
}

#[tokio::test]
async fn noise_of_every_kind_is_logged_counted_and_never_answered() {
    let mut wire = Wire::with_calls(2).await;
    let mut output = b"Starting\xe2\x80\xa6\n\xff\xfe\n\n   \r\n\0\0\n{\"level\":\"info\"}\n[1]\n\xef\xbb\xbf".to_vec();
    output.extend_from_slice(ok(1, r#"{"a":1.10}"#).as_bytes());
    output.extend_from_slice(b"\0{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"t\":\"\xff\"}}\0\r\nbye");
    assert_eq!(wire.answers(output).await, ["1={\"a\":1.10}", "2={\"t\":\"\u{fffd}\"}"]);
    let counts = wire.stats.counts();
    assert_eq!(
        counts,
        Counts {
            noise: 5,
            ..Counts::default()
        }
    );
    assert_eq!(
        wire.logged(),
        [
            "[stdout] Starting…",
            "[stdout] \u{fffd}\u{fffd}",
            "[stdout] {\"level\":\"info\"}",
            "[stdout] 1",
            "[stdout] bye"
        ]
    );
    assert_eq!(wire.stats.close_cause(), Some(CloseCause::Ended));
    wire.transport.close().await.unwrap();
    let mut sent = String::new();
    wire.stdin.read_to_string(&mut sent).await.unwrap();
    assert_eq!(sent.lines().count(), 2, "only our two requests: {sent}");
}

#[tokio::test]
async fn an_answer_reaches_its_call_however_its_id_is_spelt_and_only_once() {
    let mut wire = Wire::with_calls(3).await;
    let output = [
        ok("\"1\"", "1"),
        ok(1, "2"),
        ok(99, "3"),
        ok("\"x\"", "4"),
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"error\":{\"code\":1,\"message\":\"m\"}}\n".to_owned(),
        format!(
            "[{},{}]\n",
            ok(2, "5").trim(),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
        ),
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-7,\"message\":\"no\"}}\n".to_owned(),
    ]
    .concat();
    assert_eq!(
        wire.answers(output).await,
        ["1=1", "2=5", ">notifications/tools/list_changed", "3!-7"]
    );
    let expected = Counts {
        stray: 3,
        ambiguous: 1,
        ..Counts::default()
    };
    assert_eq!(wire.stats.counts(), expected);
}

#[tokio::test]
async fn an_error_without_an_id_is_the_only_waiting_calls_or_nobodys() {
    const ERROR: &str = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what?\"}}\n";
    let mut wire = Wire::with_calls(1).await;
    wire.ask(5, "subscriptions/listen", r#"{"notifications":{}}"#).await;
    assert_eq!(wire.answers(ERROR.repeat(2)).await, ["1!-32700"]);
    assert_eq!(wire.stats.counts().unaddressed, 1);
    let mut wire = Wire::with_calls(2).await;
    assert_eq!(wire.answers(ERROR.to_owned() + &ok(2, "{}")).await, ["2={}"]);
    assert_eq!(
        (wire.stats.counts().unaddressed, wire.logged()),
        (1, vec!["[stdout] what?".to_owned()])
    );
}

#[tokio::test]
async fn an_answer_too_long_fails_its_own_call_wherever_its_id_stands() {
    let filler = "y".repeat(MAX_FRAME);
    let head = format!("{{\"id\":2,\"jsonrpc\":\"2.0\",\"result\":\"{filler}\"}}\n");
    let tail = format!("{{\"result\":\"{filler}\",\"id\":\"3\",\"jsonrpc\":\"2.0\"}}\n");
    let hidden = format!(
        "{{\"result\":\"{filler}\",\"id\":1,\"extra\":\"{}\"}}\n",
        "z".repeat(5_000)
    );
    let call = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{filler}\"}}\n");
    let noise = format!("{filler}{filler}\n");
    let output = [&head, &call, &noise, &tail, &hidden, &ok(4, "{}")]
        .map(String::as_str)
        .concat();
    let mut wire = Wire::with_calls(4).await;
    assert_eq!(wire.answers(output).await, ["2!-32098", "3!-32098", "1!-32098", "4={}"]);
    let expected = Counts {
        oversized: 5,
        noise: 1,
        ..Counts::default()
    };
    assert_eq!(wire.stats.counts(), expected);
}

#[tokio::test]
async fn a_broken_answer_fails_its_own_call_at_once() {
    let mut wire = Wire::with_calls(2).await;
    let output = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"text\":\"a raw\nline end\"}}\n".to_owned() + &ok(1, "{}");
    assert_eq!(
        wire.answers(output).await,
        [format!("2!{BROKEN_ANSWER}"), "1={}".to_owned()]
    );
    assert_eq!(
        wire.stats.counts(),
        Counts {
            broken: 1,
            noise: 1,
            ..Counts::default()
        }
    );
}

#[tokio::test]
async fn noise_without_a_line_end_is_given_up_after_64_mebibytes() {
    let mut wire = Wire::with_calls(1).await;
    let mut stdout = wire.stdout.take().unwrap();
    let write = async move {
        let piece = vec![b'y'; 1 << 20];
        while stdout.write_all(&piece).await.is_ok() {}
    };
    let writing = tokio::spawn(write);
    assert!(wire.transport.receive().await.is_none());
    let Some(CloseCause::Flood { bytes }) = wire.stats.close_cause() else {
        panic!("{:?}", wire.stats.close_cause())
    };
    assert!((MAX_NOISE..MAX_NOISE + (1 << 20)).contains(&bytes));
    drop(wire);
    writing.await.unwrap();
}

#[tokio::test]
async fn a_late_answer_to_the_abandoned_probe_does_not_disturb_the_handshake() {
    let mut wire = Wire::new(1 << 20);
    wire.ask(0, "server/discover", "{}").await;
    let initialize = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    wire.ask(1, "initialize", initialize).await;
    let output = "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32601,\"message\":\"late\"}}\n".to_owned()
        + "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"m\"}}\n";
    assert_eq!(wire.answers(output).await, ["1!-1"]);
    assert_eq!(wire.stats.counts().stray, 1);
}

#[tokio::test]
async fn the_answer_to_a_cancelled_call_is_dropped_and_counted() {
    let mut wire = Wire::with_calls(2).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    wire.transport
        .send(serde_json::from_str(cancel).unwrap())
        .await
        .unwrap();
    assert_eq!(wire.answers(ok(1, "{}") + &ok(2, "{}")).await, ["2={}"]);
    assert_eq!(wire.stats.counts().stray, 1);
}

#[tokio::test]
async fn dropped_send_futures_lose_and_mix_nothing() {
    let mut wire = Wire::new(7);
    let big = "b".repeat(10_000);
    for id in 0..20 {
        let mut sending = pin!(
            wire.transport
                .send(request(id, "tools/call", &format!(r#"{{"name":"{big}"}}"#)))
        );
        let _ = futures::poll!(&mut sending);
    }
    let mut lines = BufReader::new(wire.stdin).lines();
    for id in 0..20 {
        let line: serde_json::Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(
            (&line["id"], &line["params"]["name"]),
            (&id.into(), &big.as_str().into())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_never_reads_ends_the_connection_with_that_cause() {
    let mut wire = Wire::new(16);
    let first = wire
        .transport
        .send(request(1, "tools/call", r#"{"name":"aaaaaaaaaaaaaaa"}"#));
    let second = wire.transport.send(request(2, "tools/call", r#"{"name":"b"}"#));
    let begin = Instant::now();
    let (first, second, end) = tokio::join!(first, second, wire.transport.receive());
    assert!(matches!(first, Err(StdioError::NotReading)), "{first:?}");
    assert!(matches!(second, Err(StdioError::Closed)), "{second:?}");
    assert!(end.is_none());
    assert_eq!(
        wire.stats.close_cause().unwrap().to_string(),
        "the program did not read its input for 10 s"
    );
    assert!(begin.elapsed() < WRITE_DEADLINE + 2 * LAST_WORDS);
    let later = wire.transport.send(request(3, "tools/call", r#"{"name":"c"}"#)).await;
    assert!(matches!(later, Err(StdioError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_no_dead_one() {
    let mut wire = Wire::new(8);
    let sending = tokio::spawn(wire.transport.send(request(1, "tools/call", r#"{"name":"x"}"#)));
    let mut read = Vec::new();
    while !read.ends_with(b"\n") {
        tokio::time::advance(WRITE_DEADLINE / 2).await;
        wire.stdin.read_buf(&mut read).await.unwrap();
    }
    sending.await.unwrap().unwrap();
    assert_eq!(wire.stats.close_cause(), None);
}

#[tokio::test(start_paused = true)]
async fn too_much_waiting_to_be_read_refuses_more() {
    let mut wire = Wire::new(1);
    let mut queued = Vec::new();
    let refused = loop {
        let mut sending = Box::pin(
            wire.transport
                .send(request(queued.len() as i64, "tools/call", r#"{"name":"x"}"#)),
        );
        match futures::poll!(&mut sending) {
            std::task::Poll::Ready(result) => break result,
            std::task::Poll::Pending => queued.push(sending),
        }
    };
    assert!(matches!(refused, Err(StdioError::Backlog)));
    assert!((QUEUED_MESSAGES..QUEUED_MESSAGES + 2).contains(&queued.len()));
}

#[tokio::test(start_paused = true)]
async fn last_words_are_read_after_the_input_broke() {
    let mut wire = Wire::with_calls(1).await;
    drop(wire.stdin);
    assert!(
        wire.transport
            .send(request(2, "tools/call", r#"{"name":"x"}"#))
            .await
            .is_err()
    );
    let mut stdout = wire.stdout.take().unwrap();
    stdout.write_all(ok(1, "{}").as_bytes()).await.unwrap();
    assert_eq!(describe(wire.transport.receive().await.unwrap()), "1={}");
    assert!(wire.transport.receive().await.is_none());
    assert!(matches!(wire.stats.close_cause(), Some(CloseCause::Write(_))));
}

#[tokio::test]
async fn a_stop_of_the_child_closes_its_input() {
    let mut wire = Wire::with_calls(1).await;
    wire.closing.cancel();
    let mut sent = Vec::new();
    wire.stdin.read_to_end(&mut sent).await.unwrap();
    assert!(sent.ends_with(b"\n"));
    assert_eq!(
        wire.answers(ok(1, "{}")).await,
        ["1={}"],
        "its output is read to the end"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn however_the_output_is_cut_the_same_answers_arrive(
        order in Just((1_i64..=8).collect::<Vec<_>>()).prop_shuffle(),
        between in prop::collection::vec(prop::sample::select(vec!["", "\n", "noise\n", "{\"a\":1}\n", "\u{feff}", "é\r\n"]), 8),
        sizes in prop::collection::vec(1_usize..40, 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(async {
            let mut wire = Wire::with_calls(8).await;
            let output: String = order.iter().zip(&between).map(|(id, before)| format!("{before}{}", ok(id, "{\"é\":1.10}"))).collect();
            let mut stdout = wire.stdout.take().unwrap();
            let write = async move {
                let mut rest = output.as_bytes();
                for size in sizes.iter().cycle() {
                    let (chunk, later) = rest.split_at((*size).min(rest.len()));
                    stdout.write_all(chunk).await.unwrap();
                    rest = later;
                    if rest.is_empty() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let read = async {
                let mut seen = Vec::new();
                loop {
                    // Dropped after one poll as often as not, as the SDK's loop does.
                    let mut receiving = Box::pin(wire.transport.receive());
                    match futures::poll!(&mut receiving) {
                        std::task::Poll::Ready(Some(message)) => seen.push(describe(message)),
                        std::task::Poll::Ready(None) => break seen,
                        std::task::Poll::Pending => {
                            drop(receiving);
                            tokio::task::yield_now().await;
                        }
                    }
                }
            };
            tokio::join!(write, read).1
        });
        let expected: Vec<_> = order.iter().map(|id| format!("{id}={{\"é\":1.10}}")).collect();
        prop_assert_eq!(seen, expected);
    }
}

/// A legacy upstream with every bad habit.
const UPSTREAM: &str = r#"
import json, sys
def out(text): sys.stdout.write(text + "\n"); sys.stdout.flush()
print("Starting…", flush=True)
for line in sys.stdin:
    m = json.loads(line); id = m.get("id"); method = m.get("method")
    def ok(result): out('{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, result))
    if method == "initialize":
        ok('{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}')
    elif method == "tools/list":
        ok('{"tools":[{"name":"good","inputSchema":{"type":"object","multipleOf":1.10},"execution":{"taskSupport":"no"}},{"name":"bad","annotations":{"readOnlyHint":"yes"}}],"nextCursor":"more"}')
    elif method == "tools/call":
        name = m["params"]["name"]
        if name == "huge":
            sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' % id)
            for _ in range(100): sys.stdout.write("x" * 1000000)
            out('"}]}}')
        elif name == "crash":
            print("missing API_KEY", file=sys.stderr); sys.exit(3)
        else:
            ok('{"content":[],"n":1.10,"n2":123456789012345678901234567890}')
    elif id is not None:
        out('{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}' % id)
"#;

async fn ask(peer: &Peer<RoleClient>, method: &str, params: &str) -> Result<ServerResult, ServiceError> {
    let ClientJsonRpcMessage::Request(request) = request(0, method, params) else {
        panic!("{method}")
    };
    peer.send_request(request.request).await
}

async fn ask_raw(peer: &Peer<RoleClient>, method: &str, params: &str) -> String {
    raw_of(ask(peer, method, params).await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_sdk_speaks_to_a_real_program_and_raw_results_come_through() {
    let (log, home) = log();
    fs::write(home.path().join("server.py"), UPSTREAM).unwrap();
    let spawner = Spawner::start(home.path(), home.path().join("children.json")).unwrap();
    let ours = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME");
    let mut child = spawner
        .spawn(Command {
            program: "/usr/bin/env".into(),
            args: ["python3", "server.py"].map(Into::into).into(),
            env: ours
                .chain([("PYTHONIOENCODING".into(), "utf-8".into())])
                .collect::<BTreeMap<_, _>>(),
            cwd: home.path().into(),
        })
        .await
        .unwrap();
    let io = child.take_io().unwrap();
    let drain = tokio::spawn({
        let log = log.clone();
        async move { log.drain(io.stderr).await }
    });
    let (transport, stats) = StdioTransport::new(io.stdin, io.stdout, &child.closing(), log.clone());
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let service = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    assert_eq!(service.peer_info().unwrap().server_info.as_ref().unwrap().name, "fake");
    assert_eq!(stats.counts().noise, 1);

    let list = ask(&service, "tools/list", "{}").await.unwrap();
    let ServerResult::ListToolsResult(typed) = &list else {
        panic!("{list:?}")
    };
    assert_eq!((typed.tools.len(), typed.next_cursor.as_deref()), (1, Some("more")));
    assert_eq!(
        raw_of(list).unwrap(),
        r#"{"tools":[{"name":"good","inputSchema":{"type":"object","multipleOf":1.10},"execution":{"taskSupport":"no"}},{"name":"bad","annotations":{"readOnlyHint":"yes"}}],"nextCursor":"more"}"#
    );
    let answer = r#"{"content":[],"n":1.10,"n2":123456789012345678901234567890}"#;
    let (huge, other) = tokio::join!(
        ask(&service, "tools/call", r#"{"name":"huge"}"#),
        ask_raw(&service, "tools/call", r#"{"name":"small"}"#)
    );
    let Err(ServiceError::McpError(error)) = huge else {
        panic!("{huge:?}")
    };
    assert_eq!((error.code.0, other.as_str()), (FRAME_TOO_LARGE, answer));
    assert_eq!(ask_raw(&service, "tools/call", r#"{"name":"small"}"#).await, answer);

    let crash = ask(&service, "tools/call", r#"{"name":"crash"}"#).await;
    assert!(matches!(crash, Err(ServiceError::TransportClosed)), "{crash:?}");
    assert_eq!(stats.close_cause(), Some(CloseCause::Ended));
    assert_eq!(child.exited().await, Ended::Code(3));
    drain.await.unwrap();
    assert_eq!(log.tail(1)[0].text.as_ref(), "missing API_KEY");
    let exit = child.stop().await;
    assert_eq!((exit.ended, exit.how), (Some(Ended::Code(3)), How::ByItself));
    service.cancel().await.unwrap();
}
