//! Signing in at authorization servers that people really run, and with the browser that they use.

use neuron_tests::{
    browser::{Browser, Page},
    chromium,
    daemon::{Daemon, Setup},
    home::{Home, config_text},
    upstream::{Guarded, GuardedServer},
};
use serde_json::{Value, json};
use url::Url;

fn behind(server: &GuardedServer) -> Daemon {
    let home = Home::new();
    home.write_config(&config_text([("guarded", server.entry())]));
    let setup = Setup {
        arguments: vec!["--secrets".to_owned(), "memory".to_owned()],
        ..Setup::default()
    };
    let bridge = Daemon::start_in(home, setup);
    bridge.wait_for_status("guarded", "needs_sign_in");
    bridge
}

/// The page that a click on "Sign in" opens.
fn sign_in_page(bridge: &Daemon) -> Url {
    let answer = bridge.owner_post("/mcp/oauth/start", &json!({"id": "guarded"})).ok();
    let url = answer["authUrl"].as_str().unwrap_or_else(|| panic!("{answer}"));
    Url::parse(url).unwrap()
}

fn callback(bridge: &Daemon) -> String {
    format!("http://127.0.0.1:{}/mcp/oauth/callback", bridge.port)
}

/// Signs in at pages that ask, `at_page` being what a person does at each.
fn signed_in(bridge: &Daemon, mut at_page: impl FnMut(&mut Browser, Page) -> Page) {
    let mut browser = Browser::default();
    let end = callback(bridge);
    let mut way = browser.follow(&sign_in_page(bridge), &end);
    let back = loop {
        match way {
            Ok(back) => break back,
            Err(page) => {
                let next = at_page(&mut browser, *page);
                way = browser.follow_from(next, &end);
            }
        }
    };
    let page = browser.get(&back);
    assert_eq!(page.status, 200, "{}", page.body);
    is_signed_in(bridge);
}

fn no_pages(_: &mut Browser, page: Page) -> Page {
    panic!("a page that asks: {page:?}");
}

fn is_signed_in(bridge: &Daemon) {
    let row = bridge.wait_for_status("guarded", "connected");
    assert_eq!(row["auth"]["state"], "signed-in", "{row}");
}

fn whoami(bridge: &Daemon) -> Value {
    let claims = bridge.call_text("mcp__guarded__whoami", &json!({}));
    serde_json::from_str(&claims).unwrap()
}

#[test]
fn the_official_sdks_example_lets_in_whoever_signs_in_for_exactly_its_address() {
    let server = GuardedServer::start(Guarded::SdkExample);
    let bridge = behind(&server);
    signed_in(&bridge, no_pages);
    let greeting = bridge.call_text("mcp__guarded__greet", &json!({"name": "Ada"}));
    assert_eq!(greeting, "Hello, Ada!");
    bridge.terminate();
}

#[test]
fn a_provider_with_pages_of_its_own_signs_tokens_for_the_one_server() {
    let server = GuardedServer::start(Guarded::OidcProvider);
    let bridge = behind(&server);
    let mut asked = Vec::new();
    signed_in(&bridge, |browser, page| {
        let form = page.form();
        let prompt = form.fields.iter().find(|(name, _)| name == "prompt");
        let prompt = prompt.map(|(_, prompt)| prompt.clone()).unwrap_or_default();
        asked.push(prompt.clone());
        let filled: &[_] = match prompt.as_str() {
            "login" => &[("login", "ada"), ("password", "lovelace")],
            _ => &[],
        };
        browser.submit(&form, filled)
    });
    assert_eq!(asked, ["login", "consent"]);
    let claims = whoami(&bridge);
    assert_eq!(
        (&claims["sub"], &claims["aud"], &claims["iss"]),
        (&json!("ada"), &json!(server.url()), &json!(server.issuer())),
        "{claims}"
    );
    bridge.terminate();
}

#[test]
fn a_provider_that_registers_nobody_is_told_with_the_exact_address_to_register_and_then_signed_in_to() {
    let server = GuardedServer::start(Guarded::OidcOnly);
    let bridge = behind(&server);
    let answer = bridge.owner_post("/mcp/oauth/start", &json!({"id": "guarded"}));
    let sentence = answer.refused(409, "needs_secret");
    assert!(
        sentence.contains(&server.issuer()) && sentence.contains(&callback(&bridge)),
        "{sentence}"
    );

    let mut entry = server.entry();
    entry["oauth"] = json!({"clientId": "registered-by-hand", "issuer": server.issuer()});
    let remove = bridge.owner_post("/mcp/servers/remove", &json!({"id": "guarded"}));
    assert_eq!(remove.status, 200, "{}", remove.text());
    entry["id"] = json!("guarded");
    assert_eq!(bridge.owner_post("/mcp/servers/add", &entry).status, 200);
    bridge.wait_for_status("guarded", "needs_sign_in");
    signed_in(&bridge, no_pages);
    let claims = whoami(&bridge);
    assert_eq!(
        (&claims["sub"], &claims["aud"]),
        (&json!("johndoe"), &json!(server.url())),
        "{claims}"
    );
    bridge.terminate();
}

#[test]
fn a_real_browser_comes_back_to_a_page_that_says_it_is_done() {
    let server = GuardedServer::start(Guarded::SdkExample);
    let bridge = behind(&server);
    let page = chromium::open(sign_in_page(&bridge).as_str());
    let said = "<h1>You are signed in</h1>\n<p>You can close this page and go back to Neuron Connect.</p>";
    assert!(page.contains(said), "{page}");
    is_signed_in(&bridge);
    bridge.terminate();
}
