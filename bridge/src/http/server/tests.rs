use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{
    super::{
        credential::{Known, NoClients},
        fake::*,
        kin::Nobody,
    },
    *,
};
use crate::{
    caller::{Pass, token::TokenHash},
    home::discover,
    snapshot::ApiMode,
};

/// Reads until the other side ends the connection.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
    // A reset ends it, too.
    let _ = read.expect("the connection is closed in time");
    String::from_utf8_lossy(&rest).into_owned()
}

const SOON: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_client_that_says_nothing_or_half_a_head_is_closed_and_others_are_served() {
    let server = Running::start_with(Limits {
        header: SOON,
        ..Limits::default()
    })
    .await;
    let mut idle = server.connect().await;
    let mut half = server.connect().await;
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut kept = server.connect().await;
    kept.write_all(get("/healthz").as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&mut kept).await.status, 200);
    assert_eq!(server.ask(get("/healthz")).await.status, 200);
    for stream in [&mut idle, &mut half, &mut kept] {
        assert_eq!(until_closed(stream).await, "");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_does_not_win_time() {
    let server = Running::start_with(Limits {
        header: SOON,
        ..Limits::default()
    })
    .await;
    let stream = server.connect().await;
    let (mut read, mut write) = stream.into_split();
    let drip = tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while write.write_all(b"G").await.is_ok() {
            tick.tick().await;
        }
    });
    let started = Instant::now();
    let _ = read.read_to_end(&mut Vec::new()).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    drip.abort();
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_answered_and_the_connection_closed() {
    let limits = Limits {
        body: SOON,
        last_words: SOON,
        ..Limits::default()
    };
    let server = Running::start_with(limits).await;
    let head = "POST /mcp/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    for start in [
        format!("{head}Content-Length: 20\r\n\r\n{{\"name\""),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\n{{\"n\r\n"),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let reply = Reply::read(&mut stream).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (408, "bad_request"));
        assert_eq!(until_closed(&mut stream).await, "");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_dropped() {
    let limits = Limits {
        write_stall: SOON,
        connections: 1,
        ..Limits::default()
    };
    let server = Running::start_with(limits).await;
    let mut stream = server.connect().await;
    let request = post("/mcp/call", &format!(r#"{{"name":"{HUGE}"}}"#));
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.readable().await.unwrap();
    let started = Instant::now();
    while server.ask(get("/healthz")).await.status != 200 {
        assert!(started.elapsed() < Duration::from_secs(10), "its place becomes free");
    }
    // What the system had buffered is left.
    assert!(until_closed(&mut stream).await.len() < 8 << 20);
    server.stop().await;
}

#[tokio::test]
async fn when_all_places_are_taken_only_a_sign_in_gets_in_and_the_local_socket_stays_open() {
    let limits = Limits {
        connections: 2,
        callback_connections: 2,
        ..Limits::default()
    };
    let server = Running::start_with(limits).await;
    let mut taken = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect().await;
        stream.write_all(get("/healthz").as_bytes()).await.unwrap();
        assert_eq!(Reply::read(&mut stream).await.status, 200);
        taken.push(stream);
    }
    let refused = server.ask(get("/healthz")).await;
    assert_eq!((refused.status, refused.refusal().as_str()), (503, "unavailable"));
    assert!(refused.head.contains("retry-after: 5\r\n"), "{}", refused.head);
    let mut callback = server.connect().await;
    callback
        .write_all(get("/mcp/oauth/callback?state=x").as_bytes())
        .await
        .unwrap();
    let answered = Reply::read(&mut callback).await;
    assert!(answered.body.contains("No sign-in waits"), "{answered:?}");
    let mut local = server.connect_local().await;
    local.write_all(get("/healthz").as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&mut local).await.status, 200);

    taken.clear();
    let started = Instant::now();
    while server.ask(get("/healthz")).await.status != 200 {
        assert!(started.elapsed() < Duration::from_secs(10), "a place becomes free");
    }
    server.stop().await;
}

#[tokio::test]
async fn one_process_gets_its_half_of_the_connections_and_others_get_the_rest() {
    let limits = Limits {
        connections: 4,
        connections_of_one: 2,
        ..Limits::default()
    };
    let server = Running::start_with(limits).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect().await;
        stream.write_all(get("/healthz").as_bytes()).await.unwrap();
        assert_eq!(Reply::read(&mut stream).await.status, 200);
        held.push(stream);
    }
    for _ in 0..4 {
        let refused = server.ask(get("/healthz")).await;
        assert_eq!((refused.status, refused.refusal().as_str()), (503, "unavailable"));
    }
    let other = tokio::process::Command::new("curl")
        .args([
            "--silent",
            "--noproxy",
            "*",
            &format!("http://{}/healthz", server.address),
        ])
        .output();
    assert_eq!(other.await.unwrap().stdout, b"{\"ok\":true}");
    held.clear();
    let started = Instant::now();
    while server.ask(get("/healthz")).await.status != 200 {
        assert!(started.elapsed() < Duration::from_secs(10), "a place becomes free");
    }
    server.stop().await;
}

/// One client, where a token is needed.
struct OneClient;

const TOKEN: &str = "ncb_a1_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_0";

impl Clients for OneClient {
    fn find(&self, id: &str) -> Option<Known> {
        (id == "a1").then(|| Known {
            hash: TokenHash::of(TOKEN),
            pass: Arc::new(Pass {
                id: "a1".to_owned(),
                name: "A".to_owned(),
                scopes: vec![crate::caller::Scope::Call],
                servers: None,
                asks_itself: false,
                label: "client:a1".to_owned(),
                paired: None,
            }),
        })
    }

    fn api_mode(&self) -> ApiMode {
        ApiMode::Token
    }

    fn is_pairing_open(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn where_programs_need_a_token_the_right_one_is_the_client_s_and_the_local_socket_stays_the_owner_s() {
    let server = Running::start_for(Limits::default(), Arc::new(OneClient)).await;
    let call = post("/mcp/call", r#"{"name":"t"}"#);
    let with = |token: &str| call.replacen("\r\n", &format!("\r\nAuthorization: Bearer {token}\r\n"), 1);
    assert_eq!(server.ask(get("/healthz")).await.status, 200);
    for refused in [get("/mcp/tools"), get("/no/such/path"), call.clone(), with("x")] {
        let reply = server.ask(&refused).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (401, "unauthorized"),
            "{refused}"
        );
        assert!(reply.head.contains("www-authenticate: bearer\r\n"));
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    assert_eq!(server.ask(with(TOKEN)).await.status, 200);
    let mut local = server.connect_local().await;
    local.write_all(call.as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&mut local).await.status, 200);
    let done = server.api.take_done();
    assert_eq!(done, ["call client:a1 t {} None", "call owner t {} None"]);
    server.stop().await;
}

#[tokio::test]
async fn one_connection_serves_many_requests_also_sent_ahead() {
    let server = Running::start().await;
    let mut stream = server.connect().await;
    stream.write_all(get("/healthz").repeat(3).as_bytes()).await.unwrap();
    stream
        .write_all(post("/mcp/call", r#"{"name":"t"}"#).as_bytes())
        .await
        .unwrap();
    for _ in 0..4 {
        assert_eq!(Reply::read(&mut stream).await.status, 200);
    }
    let chunked = "POST /mcp/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"nam\r\n7\r\ne\":\"c\"}\r\n0\r\n\r\n";
    for _ in 0..2 {
        stream.write_all(chunked.as_bytes()).await.unwrap();
        assert_eq!(Reply::read(&mut stream).await.status, 200);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_usual_client_gets_in_without_any_header_of_ours() {
    let server = Running::start().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for name in ["127.0.0.1", "localhost"] {
        let base = format!("http://{name}:{}", server.address.port());
        let tools = client.get(format!("{base}/mcp/tools")).send().await.unwrap();
        assert_eq!(tools.status(), 200);
        let called = client
            .post(format!("{base}/mcp/call"))
            .json(&serde_json::json!({"name": "t"}));
        assert_eq!(called.send().await.unwrap().status(), 200);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_fault_of_ours_is_answered_and_the_connection_goes_on() {
    let server = Running::start().await;
    let mut stream = server.connect().await;
    let broken = post("/mcp/call", &format!(r#"{{"name":"{BROKEN}"}}"#));
    stream.write_all(broken.as_bytes()).await.unwrap();
    let reply = Reply::read(&mut stream).await;
    assert_eq!((reply.status, reply.refusal().as_str()), (500, "internal"));
    stream.write_all(get("/healthz").as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&mut stream).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_running_server_can_be_found_and_a_stopped_one_leaves_nothing_behind() {
    use std::os::unix::fs::PermissionsExt;
    let server = Running::start().await;
    let lock = server.lock.clone();
    let home = lock.home();
    let api = discover(home).unwrap();
    assert_eq!((api.port, api.pid), (Some(server.address.port()), std::process::id()));
    assert_eq!(api.socket.as_deref(), Some(home.socket_path().as_path()));
    let mode = std::fs::metadata(home.socket_path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.stop().await;
    assert_eq!(discover(home), None);
    assert!(!home.socket_path().exists());
    assert!(!home.api_file().exists());
}

#[tokio::test]
async fn a_socket_left_by_a_killed_bridge_is_replaced_and_a_file_in_its_place_is_not() {
    let (_folder, lock) = home();
    let path = lock.home().socket_path();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(local::Socket::open(&lock).unwrap());
    std::fs::write(&path, "mine").unwrap();
    assert!(local::Socket::open(&lock).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[tokio::test]
async fn a_taken_port_is_told_with_its_holder_and_used_as_soon_as_it_is_free() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (_folder, lock) = home();
    let (state, mut watched) = watch::channel(ApiView::Starting { port });
    let shutdown = CancellationToken::new();
    let options = ServeOptions {
        port,
        lock: lock.clone(),
        socket_caller: Caller::Owner,
        kin: Kin::new(Nobody),
        clients: Arc::new(NoClients),
        limits: Limits::default(),
    };
    let task = tokio::spawn(serve_router(Router::new(), options, state, shutdown.clone()));
    watched.changed().await.unwrap();
    match &*watched.borrow_and_update() {
        ApiView::PortTaken { port: told, message } => {
            assert_eq!(*told, port);
            #[cfg(target_os = "linux")]
            assert!(message.contains(&std::process::id().to_string()), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let api = discover(lock.home()).unwrap();
    assert_eq!(api.port, None, "nobody may take the holder for us");
    assert_eq!(api.socket.as_deref(), Some(lock.home().socket_path().as_path()));
    drop(taken);
    assert_eq!(listening(&mut watched).await, port);
    assert_eq!(discover(lock.home()).unwrap().port, Some(port));
    shutdown.cancel();
    task.await.unwrap();
    assert!(!lock.home().api_file().exists());
}

#[tokio::test]
async fn shutting_down_does_not_wait_for_a_taken_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (_folder, lock) = home();
    let (state, mut watched) = watch::channel(ApiView::Starting { port: 0 });
    let shutdown = CancellationToken::new();
    let options = ServeOptions {
        port: taken.local_addr().unwrap().port(),
        lock,
        socket_caller: Caller::walk_in(),
        kin: Kin::new(Nobody),
        clients: Arc::new(NoClients),
        limits: Limits::default(),
    };
    let task = tokio::spawn(serve_router(Router::new(), options, state, shutdown.clone()));
    watched.changed().await.unwrap();
    shutdown.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn the_end_lets_quick_answers_out_ends_streams_and_cuts_what_hangs() {
    let limits = Limits {
        drain: SOON,
        ..Limits::default()
    };
    let mut server = Running::start_with(limits).await;
    let mut events = server.connect().await;
    events.write_all(get("/mcp/events").as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&mut events).await.status, 200);
    let mut hanging = server.connect().await;
    hanging
        .write_all(post("/mcp/call", &format!(r#"{{"name":"{HANG}"}}"#)).as_bytes())
        .await
        .unwrap();
    assert_eq!(server.hangs.recv().await, Some("begun"));
    let mut idle = server.connect().await;

    server.shutdown.cancel();
    (&mut server.task).await.unwrap();
    assert_eq!(server.hangs.recv().await, Some("dropped"));
    assert_eq!(until_closed(&mut events).await, "0\r\n\r\n");
    assert_eq!(until_closed(&mut hanging).await, "");
    assert_eq!(until_closed(&mut idle).await, "");
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn the_port_is_open_on_the_loopback_address_only() {
    let server = Running::start().await;
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], server.address.port()));
    assert!(TcpStream::connect(elsewhere).await.is_err());
    server.stop().await;
}

/// `nobody` on every usual Linux.
#[cfg(target_os = "linux")]
const NOBODY: u32 = 65534;

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_refused_on_every_request() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can connect as another user; run this test as root");
        return;
    }
    let server = Running::start().await;
    for path in ["/healthz", "/mcp/tools", "/no/such/path", "/mcp/oauth/callback?state=x"] {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3",
            server.address.port()
        );
        let client = tokio::task::spawn_blocking(move || {
            std::process::Command::new("bash")
                .arg("-c")
                .arg(script)
                .uid(NOBODY)
                .gid(NOBODY)
                .output()
        });
        let output = client.await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.starts_with("HTTP/1.1 403 "), "{path}: {text} {output:?}");
        assert!(text.contains("\"code\":\"peer_not_owner\""), "{path}: {text}");
    }
    assert_eq!(server.ask(get("/healthz")).await.status, 200);
    server.stop().await;
}

#[test]
fn other_users_cannot_take_the_person_s_places() {
    let places = Places::new(&Limits {
        connections: 1,
        callback_connections: 1,
        stranger_connections: 2,
        ..Limits::default()
    });
    let strangers: Vec<_> = std::iter::from_fn(|| places.take(Peer::Stranger)).collect();
    assert_eq!(strangers.len(), 2);
    let (_place, lane) = places.take(Peer::Owner).unwrap();
    assert_eq!(lane, Lane::Whole);
    let (_spare, lane) = places.take(Peer::Unknown).unwrap();
    assert_eq!(lane, Lane::CallbackOnly);
    assert!(places.take(Peer::Owner).is_none());
    drop(strangers);
    assert!(places.take(Peer::Stranger).is_some());
}
