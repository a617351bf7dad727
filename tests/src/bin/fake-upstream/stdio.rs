//! One message a line over stdin and stdout, and all the ways to get that wrong.

use std::{
    io::{BufRead, Write},
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Once},
    time::{Duration, Instant},
};

use serde_json::value::RawValue;

use crate::{
    options::{Announce, Kind, Mangle, Options},
    protocol::{Call, LIST_CHANGED, Message, Reply, Server},
    tools,
};

/// How long apart a package runner's lines are.
const INSTALL_LINE: Duration = Duration::from_millis(100);

/// Things on stdout that are no message.
const NOISE: [&[u8]; 12] = [
    b"Welcome to the server!\n",
    b"\n",
    b"   \n",
    b"\xff\xfe not text\n",
    b"\0\0\0\n",
    b"\xef\xbb\xbf\n",
    b"\xef\xbb\xbfReady.\n",
    b"{\"level\":\"info\",\"msg\":\"a log line\"}\n",
    b"\"just a string\"\n",
    b"[1,2]\n",
    b"{\"jsonrpc\":\"2.0\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody asked\",\"result\":{}}\n",
];

pub(crate) fn serve(options: Options) -> ExitCode {
    let server = Arc::new(Server::new(options));
    before_reading(&server);
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        server.record.line(&line);
        if server.options.kind != Kind::Silent {
            take(&server, &String::from_utf8_lossy(&line));
        }
    }
    server.record.note("end of input");
    if server.options.kind == Kind::Stubborn {
        wait_for_ever();
    }
    ExitCode::SUCCESS
}

/// What happens before the first line is read; may end the process.
fn before_reading(server: &Arc<Server>) {
    let options = &server.options;
    if server.record.earlier_starts < options.crash_times {
        crash(options);
    }
    let begin = Instant::now();
    while begin.elapsed() < options.install {
        eprintln!("npm http fetch GET 200 /a-package {} ms", begin.elapsed().as_millis());
        std::thread::sleep(INSTALL_LINE);
    }
    match options.announce {
        Announce::First => write_line(LIST_CHANGED),
        Announce::OnlyWhenTrue | Announce::EachList => {}
    }
    match options.kind {
        Kind::Ok | Kind::Silent | Kind::NeverInitialize | Kind::Nonsense | Kind::Deaf | Kind::Sandbox => {}
        Kind::Noise => make_noise(),
        Kind::Crash => crash(options),
        Kind::Tree => start_grandchild(server),
        Kind::Stubborn => {
            // SAFETY: changes only the disposition of one signal, before any thread is started.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            start_grandchild(server);
        }
        Kind::IgnoresStdin => wait_for_ever(),
        Kind::StderrFlood => {
            let server = Arc::clone(server);
            std::thread::spawn(move || flood_stderr(&server));
        }
    }
}

fn crash(options: &Options) -> ! {
    eprintln!("{}", options.say);
    std::process::exit(options.exit);
}

fn flood_stderr(server: &Server) {
    let piece = vec![b'e'; 64 * 1024];
    let mut left = server.options.bytes;
    while left > 0 {
        let now = left.min(piece.len());
        // A reader that is gone is noticed at the end of our input.
        if std::io::stderr().write_all(&piece[..now]).is_err() {
            return;
        }
        left -= now;
    }
    server.record.note("flood over");
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

/// An ignored signal stays ignored across exec, so a stubborn parent has a stubborn child.
#[expect(clippy::zombie_processes, reason = "the grandchild is there to be left behind")]
fn start_grandchild(server: &Server) {
    let child = Command::new("sleep")
        .arg("300")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("sleep starts");
    server.record.note(&format!("grandchild {}", child.id()));
}

fn take(server: &Arc<Server>, line: &str) {
    let Ok(message) = serde_json::from_str::<Message<'_>>(line) else {
        return;
    };
    let (id, method) = match (message.id, message.method) {
        (Some(id), Some(method)) => (id, method),
        (Some(id), None) => return server.asks.answered(id, line),
        (None, _) => return,
    };
    let quick = method != "tools/call"
        || message
            .params
            .and_then(|params| serde_json::from_str::<Call<'_>>(params.get()).ok())
            .is_some_and(|call| tools::is_quick(&call.name));
    if quick {
        answer(server, id, &method, message.params);
        return;
    }
    let (server, id, method) = (Arc::clone(server), id.to_owned(), method.into_owned());
    let params = message.params.map(ToOwned::to_owned);
    std::thread::spawn(move || answer(&server, &id, &method, params.as_deref()));
}

fn answer(server: &Server, id: &RawValue, method: &str, params: Option<&RawValue>) {
    let reply = server.answer("stdio", method, params, &mut |notification| write_line(&notification));
    if server.options.kind == Kind::Noise {
        make_noise();
    }
    if matches!(reply, Reply::Close) {
        std::process::exit(0);
    }
    let Some(line) = reply.render(id) else { return };
    match server.options.mangle {
        _ if method != "tools/call" => write_line(&line),
        Mangle::Nothing => write_line(&line),
        Mangle::Duplicate => {
            write_line(&line);
            write_line(&line);
        }
        Mangle::UnknownId => {
            write_line(r#"{"jsonrpc":"2.0","id":987654321,"result":{"content":[{"type":"text","text":"not yours"}]}}"#);
            write_line(&line);
        }
        Mangle::TextId => {
            let numbered = format!(r#""id":{},"#, id.get());
            write_line(&line.replacen(&numbered, &format!(r#""id":"{}","#, id.get()), 1));
            write_line(&line);
        }
        Mangle::Both => {
            let id = id.get();
            write_line(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}},"error":{{"code":1,"message":"both"}}}}"#
            ));
            write_line(&line);
        }
    }
    if method == "tools/list" {
        listed(server);
    }
}

/// What happens after the first tool list has been told.
fn listed(server: &Server) {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        let Some(linger) = server.options.linger else { return };
        if !linger.is_zero() {
            // SAFETY: closes a descriptor of our own; nothing is written to it any more.
            unsafe { libc::close(libc::STDOUT_FILENO) };
            std::thread::sleep(linger);
        }
        std::process::exit(server.options.exit);
    });
    if server.options.kind == Kind::Deaf {
        wait_for_ever();
    }
}

fn make_noise() {
    let mut out = std::io::stdout().lock();
    for noise in NOISE {
        // A reader that is gone is noticed at the end of our input.
        let _ = out.write_all(noise);
    }
    let _ = out.flush();
}

pub(crate) fn write_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let mut whole = String::with_capacity(line.len() + 1);
    whole.push_str(line);
    whole.push('\n');
    let _ = out.write_all(whole.as_bytes());
    let _ = out.flush();
}
