use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use rmcp::model::ClientJsonRpcMessage;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use url::Url;

use super::{super::web::Web, *};

/// A server that lets in whoever carries `accepted`, and what it was asked: method and `Authorization`.
struct Server {
    url: Url,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `refusal`: status and headers for everybody else.
    async fn start(accepted: &'static str, refusal: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (note, refusal) = (asked.clone(), refusal.into());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let line = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("-");
                let (method, carried) = (head.split(' ').next().unwrap(), line("authorization: "));
                note.lock().unwrap().push(format!("{method} {carried}"));
                let head = match carried == accepted {
                    true => "202 Accepted\r\nContent-Type: text/event-stream",
                    false => &refusal,
                };
                let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn web(&self, credentials: Credentials) -> (Web, Arc<Denials>) {
        let denials = Arc::<Denials>::default();
        let authorization = Authorization::new(credentials, denials.clone());
        (Web::new(&self.url, authorization).unwrap(), denials)
    }
}

/// Gives `t0`, and after each refusal the next one, as long as there are some.
struct Numbered {
    given: AtomicUsize,
    last: usize,
    accepted: Arc<Mutex<Vec<String>>>,
}

fn signed_in(last: usize) -> Credentials {
    told_what_is_accepted(last).0
}

fn told_what_is_accepted(last: usize) -> (Credentials, Arc<Mutex<Vec<String>>>) {
    let accepted = Arc::<Mutex<Vec<String>>>::default();
    let tokens = Numbered {
        given: AtomicUsize::new(0),
        last,
        accepted: accepted.clone(),
    };
    (Credentials::SignedIn(Arc::new(tokens)), accepted)
}

fn numbered(number: usize) -> SecretString {
    format!("t{number}").into()
}

impl Tokens for Numbered {
    fn token(&self) -> BoxFuture<'_, Result<SecretString, Denied>> {
        Box::pin(async { Ok(numbered(self.given.load(Ordering::Relaxed))) })
    }

    fn refused<'a>(
        &'a self,
        used: &'a SecretString,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<SecretString, Denied>> {
        Box::pin(async move {
            let given = self.given.fetch_add(1, Ordering::Relaxed);
            assert_eq!(used.expose_secret(), numbered(given).expose_secret());
            match given < self.last {
                true => Ok(numbered(given + 1)),
                false => Err(Denied::SignIn(SignInNeed {
                    why: WhySignIn::Over,
                    challenge: Some(challenge.clone()),
                })),
            }
        })
    }

    fn accepted(&self, used: &SecretString) {
        self.accepted.lock().unwrap().push(used.expose_secret().to_owned());
    }
}

const BEARER: &str = "401 Unauthorized\r\nWWW-Authenticate: Bearer scope=\"a\"";

fn message() -> ClientJsonRpcMessage {
    serde_json::from_str(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap()
}

async fn say(web: &Web, server: &Server) -> Result<u16, Denied> {
    let sent = web.post(server.url.as_str(), HeaderMap::new(), &message()).await;
    sent.map(|answer| answer.status().as_u16())
        .map_err(|error| Denied::within(&error).cloned().unwrap())
}

fn need(why: WhySignIn, challenge: &str) -> Denied {
    Denied::SignIn(SignInNeed {
        why,
        challenge: Some(Challenge(challenge.to_owned())),
    })
}

fn is_told(denials: &Denials) -> bool {
    denials.0.borrow().is_some()
}

#[tokio::test]
async fn a_refused_request_goes_once_more_with_another_token_and_not_a_third_time() {
    let server = Server::start("Bearer t1", BEARER).await;
    let (credentials, accepted) = told_what_is_accepted(5);
    let (web, denials) = server.web(credentials);
    assert_eq!(say(&web, &server).await, Ok(202));
    assert_eq!(server.asked(), ["POST Bearer t0", "POST Bearer t1"]);
    assert_eq!(*accepted.lock().unwrap(), ["t1"]);
    assert_eq!(say(&web, &server).await, Ok(202), "with the token that is known by now");
    assert_eq!(server.asked(), ["POST Bearer t1"]);
    assert!(!is_told(&denials));

    let server = Server::start("Bearer t9", BEARER).await;
    let (credentials, accepted) = told_what_is_accepted(5);
    let (web, denials) = server.web(credentials);
    let over = need(WhySignIn::Over, "Bearer scope=\"a\"");
    assert_eq!(say(&web, &server).await, Err(over.clone()));
    assert_eq!(server.asked(), ["POST Bearer t0", "POST Bearer t1"]);
    assert_eq!(denials.told().await, over);
    assert_eq!(*accepted.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn streams_and_the_end_of_a_session_carry_the_token_too() {
    let server = Server::start("Bearer t1", BEARER).await;
    let (web, denials) = server.web(signed_in(1));
    assert!(web.delete(server.url.as_str(), HeaderMap::new()).await.is_err());
    assert_eq!(server.asked(), ["DELETE Bearer t0"], "an end is told once");
    assert!(!is_told(&denials), "and denies nobody anything");
    web.get_events(server.url.as_str(), HeaderMap::new()).await.unwrap();
    assert_eq!(server.asked(), ["GET Bearer t0", "GET Bearer t1"]);
    web.delete(server.url.as_str(), HeaderMap::new()).await.unwrap();
    assert_eq!(server.asked(), ["DELETE Bearer t1"]);
}

#[tokio::test]
async fn no_token_follows_a_redirect_to_another_origin() {
    let elsewhere = Server::start("-", BEARER).await;
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let server = Server::start("nobody", format!("{status}\r\nLocation: {}", elsewhere.url)).await;
        let (web, _) = server.web(signed_in(0));
        let status: u16 = status[..3].parse().unwrap();
        assert_eq!(say(&web, &server).await, Ok(status));
        assert!(web.get_events(server.url.as_str(), HeaderMap::new()).await.is_err());
        web.delete(server.url.as_str(), HeaderMap::new()).await.unwrap();
        assert_eq!(server.asked().len(), 3);
    }
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[tokio::test]
async fn what_a_refusal_means_depends_on_what_was_sent() {
    const SCOPE: &str = "403 Forbidden\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"w x\"";
    let more = WhySignIn::MoreScopes(vec!["w".to_owned(), "x".to_owned()]);
    let more = need(more, "Bearer error=\"insufficient_scope\", scope=\"w x\"");
    let twice = "401 No\r\nWWW-Authenticate: Basic realm=a\r\nWWW-Authenticate: Bearer";
    for (refusal, credentials, outcome) in [
        (
            BEARER,
            Credentials::None,
            Err(need(WhySignIn::First, "Bearer scope=\"a\"")),
        ),
        ("401 No", Credentials::None, Err(need(WhySignIn::First, ""))),
        (
            twice,
            Credentials::None,
            Err(need(WhySignIn::First, "Basic realm=a, Bearer")),
        ),
        (
            "401 No\r\nWWW-Authenticate: Negotiate",
            Credentials::None,
            Err(Denied::Scheme("Negotiate".to_owned())),
        ),
        (BEARER, Credentials::OwnKey, Err(Denied::KeyRefused(401))),
        (
            "401 No\r\nWWW-Authenticate: Basic",
            Credentials::OwnKey,
            Err(Denied::KeyRefused(401)),
        ),
        (SCOPE, signed_in(0), Err(more.clone())),
        (SCOPE, Credentials::None, Err(more)),
        (SCOPE, Credentials::OwnKey, Ok(403)),
        ("403 No", signed_in(0), Ok(403)),
        ("403 No", Credentials::None, Ok(403)),
        (
            "403 No\r\nWWW-Authenticate: Bearer",
            Credentials::None,
            Err(need(WhySignIn::First, "Bearer")),
        ),
        ("403 No\r\nWWW-Authenticate: Bearer", signed_in(0), Ok(403)),
    ] {
        let server = Server::start("nobody", refusal).await;
        let (web, denials) = server.web(credentials);
        assert_eq!(say(&web, &server).await, outcome, "{refusal}");
        assert_eq!(is_told(&denials), outcome.is_err(), "{refusal}");
        assert_eq!(server.asked().len(), 1, "{refusal}");
    }
}

#[tokio::test]
async fn a_server_without_a_stream_for_strangers_denies_its_session_nothing() {
    for (credentials, denies) in [(Credentials::None, false), (Credentials::OwnKey, true)] {
        let server = Server::start("nobody", BEARER).await;
        let (web, denials) = server.web(credentials);
        assert!(web.get_events(server.url.as_str(), HeaderMap::new()).await.is_err());
        assert_eq!(is_told(&denials), denies);
    }
}

#[tokio::test]
async fn where_the_keychain_gives_nothing_a_wish_for_a_sign_in_is_told_as_that_and_ends_the_session() {
    let more = "403 Forbidden\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"read\"";
    for refusal in [BEARER, more] {
        let server = Server::start("nobody", refusal).await;
        let (web, denials) = server.web(Credentials::Unknown(KeychainFault::Locked));
        let told = say(&web, &server).await;
        assert_eq!(told, Err(Denied::Keychain(KeychainFault::Locked)), "{refusal}");
        assert!(is_told(&denials), "{refusal}");
        let (web, denials) = server.web(Credentials::Unknown(KeychainFault::Locked));
        assert!(web.get_events(server.url.as_str(), HeaderMap::new()).await.is_err());
        assert!(!is_told(&denials), "{refusal}");
    }
}
