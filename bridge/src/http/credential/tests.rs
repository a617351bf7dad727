use super::*;

const RIGHT: &str = "ncb_a1_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_0";

/// One client.
struct One {
    mode: ApiMode,
    pairing: bool,
}

impl Clients for One {
    fn find(&self, id: &str) -> Option<Known> {
        (id == "a1").then(|| Known {
            hash: TokenHash::of(RIGHT),
            pass: Arc::new(Pass {
                id: "a1".to_owned(),
                name: "A".to_owned(),
                scopes: Vec::new(),
                servers: None,
                asks_itself: false,
                label: "client:a1".to_owned(),
                paired: None,
            }),
        })
    }

    fn api_mode(&self) -> ApiMode {
        self.mode
    }

    fn is_pairing_open(&self) -> bool {
        self.pairing
    }
}

fn credentials(mode: ApiMode, pairing: bool) -> Credentials {
    Credentials::new(Arc::new(One { mode, pairing }))
}

fn head(method: &str, path: &str, authorization: &[&str]) -> Parts {
    let mut request = http::Request::builder().method(method).uri(path);
    for value in authorization {
        request = request.header("authorization", *value);
    }
    request.body(()).unwrap().into_parts().0
}

const PORT: Door = Door::Port(7771);

/// 200 = as the caller it came in as, 201 = as the client.
fn status(credentials: &Credentials, head: &Parts, door: Door) -> u16 {
    match credentials.check(head, door, &Caller::walk_in(), Instant::now()) {
        Ok(Caller::WalkIn(_)) => 200,
        Ok(Caller::Client { .. }) => 201,
        Ok(Caller::Owner) => 202,
        Err(refusal) => refusal.code.status(),
    }
}

#[test]
fn a_token_must_be_right_wherever_it_is_sent_but_with_the_callback() {
    let right = format!("Bearer {RIGHT}");
    let flipped = format!("Bearer {}1", &RIGHT[..RIGHT.len() - 1]);
    let lower = format!("bearer {RIGHT}");
    let other = format!("Bearer {}", RIGHT.replace("a1", "b2"));
    for (authorization, expected) in [
        (&[][..], 200),
        (&[right.as_str()][..], 201),
        (&[&lower], 201),
        (&[&flipped], 401),
        (&[&other], 401),
        (&[&right, &right], 401),
        (&[&right, "Basic x"], 401),
        (&[RIGHT], 401),
        (&["Bearer"], 401),
        (&["Bearer "], 401),
        (&[""], 401),
        (&["Basic dTpw"], 401),
        (&["Bearer x, Bearer y"], 401),
    ] {
        for mode in [ApiMode::Open, ApiMode::Token] {
            let all = credentials(mode, false);
            for (method, path) in [("GET", "/healthz"), ("GET", "/no/such/path"), ("POST", "/mcp/call")] {
                let expected = match (expected, mode, path) {
                    (200, ApiMode::Token, "/mcp/call" | "/no/such/path") => 401,
                    _ => expected,
                };
                let head = head(method, path, authorization);
                assert_eq!(
                    status(&all, &head, PORT),
                    expected,
                    "{mode:?} {method} {path} {authorization:?}"
                );
            }
            let callback = head("GET", "/mcp/oauth/callback?state=x", authorization);
            assert_eq!(status(&all, &callback, PORT), 200, "{authorization:?}");
        }
    }
    let query = head("GET", &format!("/mcp/tools?token={RIGHT}&access_token={RIGHT}"), &[]);
    assert_eq!(status(&credentials(ApiMode::Token, false), &query, PORT), 401);
}

#[test]
fn where_programs_need_a_token_only_this_needs_none() {
    for (door, method, path, pairing, expected) in [
        (PORT, "GET", "/healthz", false, 200),
        (PORT, "HEAD", "/healthz", false, 200),
        (PORT, "POST", "/healthz", false, 401),
        (PORT, "GET", "/healthz/", false, 401),
        (PORT, "GET", "/mcp/oauth/callback", false, 200),
        (PORT, "HEAD", "/mcp/oauth/callback", false, 401),
        (PORT, "GET", "/mcp/tools", true, 401),
        (PORT, "POST", PAIR_PATH, false, 401),
        (PORT, "POST", PAIR_PATH, true, 200),
        (PORT, "GET", PAIR_PATH, true, 401),
        (PORT, "POST", "/mcp/clients", true, 401),
        (Door::Socket, "GET", "/mcp/tools", false, 200),
        (Door::Socket, "HEAD", "/mcp/servers", false, 200),
        (Door::Socket, "POST", "/mcp/call", false, 401),
        (Door::Socket, "POST", PAIR_PATH, true, 200),
    ] {
        let all = credentials(ApiMode::Token, pairing);
        assert_eq!(
            status(&all, &head(method, path, &[]), door),
            expected,
            "{door:?} {method} {path}"
        );
    }
    let owner = credentials(ApiMode::Token, false).check(
        &head("POST", "/mcp/call", &[]),
        Door::Socket,
        &Caller::Owner,
        Instant::now(),
    );
    assert!(matches!(owner, Ok(Caller::Owner)), "{owner:?}");
}

#[test]
fn wrong_tokens_are_put_off_after_twenty_in_a_minute_and_right_ones_never() {
    let all = credentials(ApiMode::Open, false);
    let wrong = head("GET", "/healthz", &["Basic x"]);
    let right = head("GET", "/healthz", &[&format!("Bearer {RIGHT}")]);
    let begin = Instant::now();
    let try_at =
        |head: &Parts, seconds| all.check(head, PORT, &Caller::walk_in(), begin + Duration::from_secs(seconds));
    for _ in 0..MOST_WRONG {
        assert_eq!(try_at(&wrong, 0).unwrap_err().code, Code::Unauthorized);
    }
    for _ in 0..1000 {
        let refusal = try_at(&wrong, 20).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.retry_after),
            (Code::RateLimited, Some(Duration::from_secs(40)))
        );
        assert!(matches!(try_at(&right, 20), Ok(Caller::Client { .. })));
        assert!(matches!(
            try_at(&head("GET", "/healthz", &[]), 20),
            Ok(Caller::WalkIn(_))
        ));
    }
    assert_eq!(try_at(&wrong, 60).unwrap_err().code, Code::Unauthorized);
}

/// Nobody knows who has a token.
struct Unknown;

impl Clients for Unknown {
    fn find(&self, _: &str) -> Option<Known> {
        None
    }

    fn api_mode(&self) -> ApiMode {
        ApiMode::Open
    }

    fn are_known(&self) -> bool {
        false
    }

    fn is_pairing_open(&self) -> bool {
        false
    }
}

#[test]
fn while_nobody_knows_who_has_a_token_no_token_is_called_wrong() {
    let credentials = Credentials::new(Arc::new(Unknown));
    let head = head("GET", "/mcp/tools", &[&format!("Bearer {RIGHT}")]);
    for _ in 0..=MOST_WRONG {
        assert_eq!(status(&credentials, &head, PORT), 503);
    }
}
