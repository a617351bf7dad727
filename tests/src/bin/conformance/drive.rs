//! Lets the running bridge meet one scenario's server: add it, sign in, call its tools, remove it.
//!
//! Whatever a person at a browser or a question would do is done here as such a person would, through the bridge's own
//! API. Prints what it came to as its last line; exits 0 when done, 1 when the bridge refused.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use neuron_tests::{browser::Browser, http::Answer};
use serde_json::{Value, json};
use url::Url;

use crate::{
    api::Api,
    arguments::{Call, calls, prompt_arguments},
};

/// The suite kills only its shell after 30 s: the driver has to end by itself before.
const LONGEST: Duration = Duration::from_secs(25);
/// How often the bridge is asked what it is doing.
const LOOK: Duration = Duration::from_millis(20);
/// The suite's own client metadata document, which nobody fetches.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// First words of the last line.
pub(crate) const OUTCOME: &str = "outcome: ";
pub(crate) const DONE: &str = "done";
pub(crate) const REFUSED: &str = "refused";

/// The bridge will not go on with this server, and says why.
#[derive(Debug)]
struct Refused(String);

/// # Panics
/// Outside of a run of the suite, or when the bridge's API is not as agreed.
pub(crate) fn run(url: &str) -> ExitCode {
    let drive = Drive::new(url);
    let late = drive.clone();
    thread::spawn(move || {
        thread::sleep(LONGEST);
        println!("not over after {LONGEST:?}: {}", late.row());
        drop(Added(&late));
        std::process::exit(2);
    });
    match drive.everything() {
        Ok(()) => {
            println!("{OUTCOME}{DONE}");
            ExitCode::SUCCESS
        }
        Err(Refused(why)) => {
            println!("{OUTCOME}{REFUSED}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A connector of the bridge for as long as this lives, however that ends: the scenario's server waits for its clients to
/// hang up.
struct Added<'a>(&'a Drive);

impl Drop for Added<'_> {
    fn drop(&mut self) {
        let answer = self.0.api.owner_post("/mcp/servers/remove", &json!({"id": self.0.id}));
        println!("removed: {}", answer.status);
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone)]
struct Drive {
    api: Api,
    id: String,
    url: String,
    scenario: String,
    context: Value,
}

impl Drive {
    fn new(url: &str) -> Self {
        let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").expect("the suite names its scenario");
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "null".to_owned());
        Self {
            api: Api::of_this_run(),
            id: format!("{}-{}", scenario.replace('/', "-"), std::process::id()),
            url: url.to_owned(),
            scenario,
            context: serde_json::from_str(&context).expect("the scenario's context is JSON"),
        }
    }

    fn everything(&self) -> Result<(), Refused> {
        let _added = Added(self);
        self.add();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| self.answer_questions(&over));
            let _over = SetOnDrop(&over);
            self.use_it()
        })
    }

    fn add(&self) {
        let mut entry = json!({"id": self.id, "url": self.url});
        let mut secrets = Vec::new();
        if self.scenario.starts_with("auth/") {
            entry["oauth"] = self.client(&mut secrets);
        }
        self.expect_ok("/mcp/servers/add", &entry);
        for (name, secret) in secrets {
            let body = json!({"id": self.id, "name": name, "secret": secret});
            self.expect_ok("/mcp/servers/secret", &body);
        }
    }

    /// What a person would enter of what they got from the server's makers.
    fn client(&self, secrets: &mut Vec<(&'static str, Value)>) -> Value {
        let mut client = json!({"clientMetadataUrl": CLIENT_METADATA});
        let given = |name: &str| Some(&self.context[name]).filter(|value| value.is_string());
        if let Some(id) = given("client_id") {
            client["clientId"] = id.clone();
        }
        if let Some(issuer) = given("issuer") {
            client["issuer"] = issuer.clone();
        }
        if let Some(secret) = given("client_secret") {
            client["clientSecret"] = json!("${secret:CLIENT_SECRET}");
            secrets.push(("CLIENT_SECRET", secret.clone()));
        }
        if let Some(key) = given("private_key_pem") {
            client["clientAuth"] = json!("private_key_jwt");
            client["privateKey"] = json!("${secret:KEY}");
            client["algorithm"] = self.context["signing_algorithm"].clone();
            secrets.push(("KEY", key.clone()));
        }
        if self.scenario.starts_with("auth/client-credentials") {
            client["grant"] = json!("client_credentials");
        }
        // That revision's servers publish no metadata in which they could say so.
        if self.scenario == "auth/2025-03-26-oauth-endpoint-fallback" {
            client["allowMissingPkce"] = json!(true);
        }
        client
    }

    fn use_it(&self) -> Result<(), Refused> {
        self.connect()?;
        let detail = self.api.get(&format!("/mcp/servers/{}", self.id)).ok();
        let tools = detail["tools"].as_array().cloned().unwrap_or_default();
        for Call { tool, input } in calls(&self.context, &tools) {
            let name = format!("mcp__{}__{tool}", self.id);
            self.ask(Api::post, "/mcp/call", &json!({"name": name, "input": input}))?;
        }
        for resource in self.listed("resources") {
            let body = json!({"server": self.id, "uri": resource["uri"]});
            self.ask(Api::owner_post, "/mcp/resources/read", &body)?;
        }
        for prompt in self.listed("prompts") {
            let body = json!({"server": self.id, "name": prompt["name"], "arguments": prompt_arguments(&prompt)});
            self.ask(Api::owner_post, "/mcp/prompts/get", &body)?;
        }
        Ok(())
    }

    fn listed(&self, what: &str) -> Vec<Value> {
        let list = self.api.owner_get(&format!("/mcp/{what}?server={}", self.id)).ok();
        list[what].as_array().cloned().unwrap_or_else(|| panic!("{list}"))
    }

    /// Waits until the connector stands, signing in as often as the bridge lets a person do it.
    fn connect(&self) -> Result<(), Refused> {
        loop {
            let row = self.row();
            let status = row["status"].as_str().expect("a connector has a status");
            match status {
                "connected" => return Ok(()),
                "sleeping" | "connecting" | "retrying" => thread::sleep(LOOK),
                // The secrets are set; the connector is about to notice.
                "needs_secret" if self.context["client_id"].is_string() => thread::sleep(LOOK),
                "needs_sign_in" => self.sign_in(&row)?,
                _ => return Err(Refused(format!("{status}: {}", row["error"]))),
            }
        }
    }

    fn sign_in(&self, before: &Value) -> Result<(), Refused> {
        let url = self.authorization_url()?;
        println!("signing in at {url}");
        let callback = format!("http://127.0.0.1:{}/mcp/oauth/callback?", self.api.port);
        let mut browser = Browser::default();
        let back = browser
            .follow(&url, &callback)
            .map_err(|page| Refused(format!("the browser stands at {}: {}", page.url, page.body)))?;
        let page = browser.get(&back);
        println!("back with {}", page.status);
        if page.status != 200 {
            return Err(Refused(format!("the callback page says {}", page.body)));
        }
        // What the sign-in sets off begins after the page is answered.
        let sequence = |row: &Value| row["connection"]["sequence"].as_u64();
        while sequence(&self.row()) == sequence(before) {
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn authorization_url(&self) -> Result<Url, Refused> {
        let mut body = json!({"id": self.id});
        loop {
            let answer = self.api.owner_post("/mcp/oauth/start", &body);
            let text = answer.json();
            if let Some(url) = text["authUrl"].as_str() {
                return Ok(Url::parse(url).expect("an address"));
            }
            match named_issuer(&text) {
                // The tick.
                Some(issuer) if text["code"] == "needs_review" && body["accept_issuer"].is_null() => {
                    println!("accepting {issuer}: {text}");
                    body["accept_issuer"] = json!(issuer);
                }
                Some(_) | None => return Err(Refused(format!("no sign-in: {text}"))),
            }
        }
    }

    /// Uses the server, signing in where that is what it takes.
    fn ask(&self, post: impl Fn(&Api, &str, &Value) -> Answer, path: &str, body: &Value) -> Result<(), Refused> {
        loop {
            let before = self.row();
            let answer = post(&self.api, path, body).json();
            println!("{path} {body}: {answer}");
            match answer["code"].as_str() {
                // The server's own no is its business.
                None | Some("tool_error" | "upstream_error") => return Ok(()),
                Some("needs_sign_in") => {
                    self.sign_in(&before)?;
                    self.connect()?;
                }
                Some(_) => return Err(Refused(format!("{path}: {answer}"))),
            }
        }
    }

    /// Says yes to whatever this connector's server asks, with what its form proposes.
    fn answer_questions(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let waiting = self.api.owner_get("/mcp/approvals").ok();
            for question in waiting["approvals"].as_array().expect("a list of questions") {
                if question["server"] == self.id.as_str() && question["state"] == "waiting" {
                    println!("asked: {question}");
                    let id = question["id"].as_str().expect("a question has an id");
                    self.expect_ok(&format!("/mcp/approvals/{id}"), &json!({"answer": "approve"}));
                }
            }
            thread::sleep(LOOK);
        }
    }

    fn row(&self) -> Value {
        self.api.get(&format!("/mcp/servers/{}", self.id)).ok()["server"].clone()
    }

    fn expect_ok(&self, path: &str, body: &Value) {
        let answer = self.api.owner_post(path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

/// The address in a refusal's sentence, as a person reads it.
fn named_issuer(refusal: &Value) -> Option<&str> {
    let mut words = refusal["error"].as_str()?.split_whitespace();
    let address = words.find(|word| word.starts_with("http"))?;
    Some(address.trim_end_matches(['.', ',', ':', ';']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_to_accept_is_read_from_the_sentence() {
        let refusal = json!({"error": "You would sign in at http://localhost:1/a, which is elsewhere. Look first."});
        assert_eq!(named_issuer(&refusal), Some("http://localhost:1/a"));
        assert_eq!(named_issuer(&json!({"error": "No."})), None);
    }
}
