//! A person's app in the middle of its life, and everything that somebody could bring about in it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use neuron_tests::{
    fake::{Fake, HttpFake, Seen},
    home::{Home, config_text},
    http::{Answer, Connection},
    tray::Tray,
    wait::{SOON, eventually},
};
use serde_json::{Map, Value, json};

pub(crate) const KEY: &str = "SENTINEL-of-a-key-0001";
pub(crate) const TOKEN: &str = "SENTINEL-of-a-token-0002";
pub(crate) const READ: &str = "mcp__x__read";

/// A person's app in the middle of its life: `x` is a program and `remote` a server that they allowed, `off` is one that they
/// keep off, one rule lets anyone read `a.txt`, another keeps everyone from writing.
pub(crate) struct World {
    pub(crate) bridge: Tray,
    pub(crate) x: Seen,
    /// What `x` lists.
    pub(crate) told: PathBuf,
    pub(crate) env_file: PathBuf,
    pub(crate) remote: HttpFake,
    /// Where nothing may ever go.
    pub(crate) thief: HttpFake,
    /// What may never run.
    pub(crate) marker: Fake,
    pub(crate) servers: Map<String, Value>,
}

/// Everything that somebody could have brought about.
#[derive(Debug, PartialEq)]
pub(crate) struct Effects {
    pub(crate) marker_starts: usize,
    pub(crate) thief_requests: usize,
    /// Calls, reads and prompts that arrived.
    pub(crate) at_x: usize,
    pub(crate) at_remote: usize,
    /// Every credential that `remote` was sent.
    pub(crate) sent: BTreeSet<String>,
    /// Without what a rule tells of its use and rest.
    pub(crate) rules: Vec<Value>,
}

pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name, "description": "Works on a file.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        "annotations": {"readOnlyHint": false, "destructiveHint": true},
    })
}

pub(crate) fn tools() -> Vec<Value> {
    ["read", "write", "hidden"].map(tool).to_vec()
}

pub(crate) fn tell(told: &Path, tools: &[Value]) {
    let beside = told.with_extension("next");
    fs::write(&beside, json!({"tools": tools}).to_string()).unwrap();
    fs::rename(&beside, told).unwrap();
}

pub(crate) fn rule(effect: &str, tool: &str, conditions: Value) -> Value {
    let arguments = match conditions {
        Value::Null => json!({"which": "any"}),
        conditions => json!({"which": "each", "conditions": conditions}),
    };
    json!({
        "effect": effect, "server": "x", "kind": "tools", "patterns": [tool], "arguments": arguments,
        "caller": {"who": "anyone"}, "lasts": "kept",
    })
}

impl World {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let told = home.path().join("told.json");
        tell(&told, &tools());
        let env_file = home.path().join("x.env");
        fs::write(&env_file, "A=1\n").unwrap();
        let x = Fake::new("ok")
            .option("list", "told")
            .option("told", told.display())
            .option("offers", "standard")
            .record(&home.record("x"))
            .member("env", json!({"GIVEN": "${secret:KEY}"}))
            .member("envFile", json!(env_file))
            .member("disabledTools", json!(["hidden"]));
        let marker = Fake::new("ok").record(&home.record("marker"));
        let remote = HttpFake::start(home.path(), "remote", &[("key", TOKEN)]);
        let thief = HttpFake::start(home.path(), "thief", &[]);
        let mut contact = remote.entry();
        contact["auth"] = json!("token");
        let mut off = marker.entry();
        off["enabled"] = json!(false);
        let servers = [("x", x.entry()), ("remote", contact), ("off", off)];
        home.write_config(&config_text(servers.clone()));
        let bridge = Tray::start(home);
        let world = Self {
            bridge,
            x: x.seen(),
            told,
            env_file,
            remote,
            thief,
            marker,
            servers: servers.map(|(id, entry)| (id.to_owned(), entry)).into_iter().collect(),
        };
        for (id, name, secret) in [("x", json!("KEY"), KEY), ("remote", Value::Null, TOKEN)] {
            let mut body = json!({"id": id, "secret": secret});
            if !name.is_null() {
                body["name"] = name;
            }
            world.bridge.approve(id);
            world.bridge.owner_post("/mcp/servers/secret", &body).ok();
        }
        world.is_well();
        for rule in [
            rule("allow", "read", json!({"path": {"is": "equals", "value": "a.txt"}})),
            rule("deny", "write", Value::Null),
        ] {
            world.bridge.owner_post("/mcp/rules", &rule).ok();
        }
        world
    }

    /// Everything that the person allowed works, and nothing waits for them.
    pub(crate) fn is_well(&self) {
        for id in ["x", "remote"] {
            let mut row = Value::Null;
            let begin = Instant::now();
            let is_there = |row: &Value| {
                let status = row["status"].as_str().unwrap_or_default();
                row["tools"] != json!(0) && ["connected", "sleeping"].contains(&status)
            };
            while !is_there(&row) {
                assert!(begin.elapsed() < SOON, "{id} is not there for use: {row}");
                row = self.bridge.server(id);
            }
        }
        eventually("nothing waits", SOON, || self.bridge.waiting().is_empty().then_some(()));
    }

    pub(crate) fn write(&self, servers: &Map<String, Value>) {
        self.bridge.home.write_config(&text(servers));
    }

    /// Does something while the app is closed.
    pub(crate) fn while_closed(self, meanwhile: impl FnOnce(&Home)) -> Self {
        let (home, session) = self.bridge.close();
        meanwhile(&home);
        Self {
            bridge: Tray::start_with(home, session),
            ..self
        }
    }

    pub(crate) fn effects(&self) -> Effects {
        let requests = |seen: &Seen| {
            let methods = ["tools/call", "resources/read", "prompts/get"];
            methods.iter().map(|method| seen.messages(method).len()).sum()
        };
        let lines = self.remote.seen().lines();
        let sent = lines.iter().filter_map(|line| line.split_once(" authorization="));
        let rules = self.bridge.owner_get("/mcp/rules").ok();
        let rules = rules["rules"].as_array().expect("a list").iter();
        let members = [
            "id",
            "effect",
            "server",
            "kind",
            "patterns",
            "arguments",
            "caller",
            "bound",
            "lasts",
        ];
        Effects {
            marker_starts: self.marker.seen().starts().len(),
            thief_requests: contacts(&self.thief),
            at_x: requests(&self.x),
            at_remote: requests(self.remote.seen()),
            sent: sent.map(|(_, credential)| credential.to_owned()).collect(),
            rules: rules
                .map(|rule| members.map(|member| rule["rule"][member].clone()).into_iter().collect())
                .collect(),
        }
    }

    pub(crate) fn assert_no_effect(&self, before: &Effects, what: &str) {
        assert_eq!(&self.effects(), before, "{what}");
        assert_eq!((before.marker_starts, before.thief_requests), (0, 0), "{what}");
        let unasked = self.bridge.get("/mcp/auto-approved").ok();
        assert_eq!(unasked["tools"], json!([]), "{what}");
        let rules = unasked["rules"].as_array().expect("a list");
        assert!(rules.len() <= 1, "{what}: {unasked}");
    }

    /// Sends what may become a question, over each door; the person says no to all of them.
    pub(crate) fn is_not_let(&self, path: &str, body: &str) -> Vec<Answer> {
        let no_to_all = |answers: &mut dyn FnMut() -> bool| {
            eventually("an answer", SOON, || {
                for one in self.bridge.waiting().iter().filter(|one| one["expires_at"].is_u64()) {
                    // Whoever asked may have gone meanwhile.
                    self.bridge.answer(one["id"].as_str().expect("an id"), "deny");
                }
                answers().then_some(())
            });
        };
        let doors = self.bridge.doors();
        doors
            .iter()
            .map(|door| {
                thread::scope(|scope| {
                    let sent = scope.spawn(|| Connection::open(door).send("POST", path, &[], body.as_bytes()));
                    no_to_all(&mut || sent.is_finished());
                    let answer = sent.join().unwrap();
                    let body = answer.text();
                    assert!(answer.status >= 400, "{path} {body}");
                    answer
                })
            })
            .collect()
    }

    pub(crate) fn is_not_called(&self, name: &str, input: &Value) {
        self.is_not_let("/mcp/call", &json!({"name": name, "input": input}).to_string());
    }

    /// Answers whatever waits, as a walk-in.
    pub(crate) fn walk_ins_cannot_answer(&self, what: &str) {
        for one in self.bridge.waiting() {
            let path = format!("/mcp/approvals/{}", one["id"].as_str().expect("an id"));
            for door in self.bridge.doors() {
                for said in ["approve", "always", "until_quit"] {
                    let body = json!({"answer": said}).to_string();
                    let answer = Connection::open(&door).send("POST", &path, &[], body.as_bytes());
                    // Where the decisions are lost, none is let in without a token.
                    assert!(matches!(answer.status, 401 | 403), "{what}: {}", answer.text());
                }
            }
        }
    }
}

pub(crate) fn contacts(server: &HttpFake) -> usize {
    let seen = server.seen();
    ["POST", "GET", "DELETE"]
        .iter()
        .map(|method| seen.requests(method))
        .sum()
}

pub(crate) fn text(servers: &Map<String, Value>) -> String {
    config_text(servers.iter().map(|(id, entry)| (id.as_str(), entry.clone())))
}
