//! A click changes what it names, and every other byte of the person's file stays.

use neuron_tests::{
    daemon::{Daemon, Setup},
    home::Home,
    wait::{SOON, eventually_equals},
};
use serde_json::json;

/// Each holds a connector `a` that is off; `FALSE` marks the word that turning it on changes. Where there is none,
/// the connector is on and its `enabled` is to be put in.
const LAYOUTS: [(&str, &str); 19] = [
    (
        "two blanks",
        "{\n  \"servers\": {\n    \"a\": {\n      \"url\": \"http://127.0.0.1:9/mcp\",\n      \"enabled\": FALSE\n    }\n  }\n}\n",
    ),
    (
        "four blanks",
        "{\n    \"servers\": {\n        \"a\": {\n            \"enabled\": FALSE,\n            \"url\": \"http://127.0.0.1:9/mcp\"\n        }\n    }\n}\n",
    ),
    (
        "tabs",
        "{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"url\": \"http://127.0.0.1:9/mcp\",\n\t\t\t\"enabled\": FALSE\n\t\t}\n\t}\n}\n",
    ),
    (
        "one line",
        "{ \"servers\": { \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"enabled\": FALSE } } }\n",
    ),
    (
        "no blank at all",
        "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/mcp\",\"enabled\":FALSE}}}",
    ),
    (
        "a byte order mark",
        "\u{feff}{\n  \"servers\": {\n    \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"enabled\": FALSE }\n  }\n}\n",
    ),
    (
        "no last line end",
        "{\n  \"servers\": {\n    \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"enabled\": FALSE }\n  }\n}",
    ),
    (
        "many last line ends",
        "\n\n{\n  \"servers\": {\n    \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"enabled\": FALSE }\n  }\n}\n\n\n",
    ),
    (
        "trailing commas",
        "{\n  \"servers\": {\n    \"a\": {\n      \"url\": \"http://127.0.0.1:9/mcp\",\n      \"enabled\": FALSE,\n    },\n  },\n}\n",
    ),
    (
        "line comments",
        "// top\n{\n  // before\n  \"servers\": { // beside\n    // of a\n    \"a\": {\n      \"url\": \"http://127.0.0.1:9/mcp\", // where\n      // whether\n      \"enabled\": FALSE // off for now\n      // after the last\n    }\n    // after a\n  }\n  // end\n}\n// below\n",
    ),
    (
        "block comments",
        "/* top */{/*1*/\"servers\"/*2*/:/*3*/{/*4*/\"a\"/*5*/:/*6*/{/*7*/\"url\":\"http://127.0.0.1:9/mcp\"/*8*/,/*9*/\"enabled\"/*10*/:/*11*/FALSE/*12*/}/*13*/}/*14*/}/* \"enabled\": true */\n",
    ),
    (
        "texts that look like comments",
        "{\n  \"servers\": {\n    \"a\": {\n      \"description\": \"// no /* comment */ \\\" } , \\\\\",\n      \"url\": \"http://127.0.0.1:9/mcp//x\",\n      \"enabled\": FALSE\n    }\n  }\n}\n",
    ),
    (
        "another app's key",
        "{\n  \"mcpServers\": {\n    \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"enabled\": FALSE }\n  }\n}\n",
    ),
    (
        "foreign keys around",
        "{\n  \"$schema\": \"x\", \"enabled\": true,\n  \"servers\": {\n    \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"mine\": {\"enabled\": true}, \"enabled\": FALSE }\n  },\n  \"theme\" : [ 1,2 , 3 ]\n}\n",
    ),
    (
        "odd spacing",
        "{\n\"servers\" :{\n  \"a\"  :   {   \"enabled\"   :   FALSE   ,\n\n\n \"url\":\"http://127.0.0.1:9/mcp\"   }\n}   }   \n",
    ),
    (
        "neighbours",
        "{\n  \"servers\": {\n    \"z\": { \"url\": \"http://127.0.0.1:9/z\", \"enabled\": false },\n    \"a\": { \"url\": \"http://127.0.0.1:9/mcp\", \"enabled\": FALSE },\n    \"aa\": { \"url\": \"http://127.0.0.1:9/aa\", \"enabled\": false }\n  }\n}\n",
    ),
    (
        "braces on their own lines",
        "{\n  \"servers\":\n  {\n    \"a\":\n    {\n      \"url\": \"http://127.0.0.1:9/mcp\"\n      , \"enabled\": FALSE\n    }\n  }\n}\n",
    ),
    (
        "an escaped key",
        "{\n  \"servers\": {\n    \"\\u0061\": { \"url\": \"http://127.0.0.1:9/mcp\", \"\\u0065nabled\": FALSE }\n  }\n}\n",
    ),
    (
        "no such member",
        "{\n  // mine\n  \"servers\": {\n    \"a\": {\n      \"url\": \"http://127.0.0.1:9/mcp\" // where\n    }, // and\n  }\n}\n",
    ),
];

/// Every layout with both kinds of line ends.
fn layouts() -> impl Iterator<Item = (String, String)> {
    LAYOUTS.iter().flat_map(|(name, text)| {
        [
            ((*name).to_owned(), (*text).to_owned()),
            (format!("{name}, CRLF"), text.replace('\n', "\r\n")),
        ]
    })
}

fn start(text: &str) -> Daemon {
    let home = Home::new();
    home.write_config(text);
    Daemon::start_in(home, Setup::default())
}

/// Whether all of `old` is in `new`, in its order.
fn is_contained(old: &str, new: &str) -> bool {
    let mut rest = new.chars();
    old.chars().all(|wanted| rest.any(|found| found == wanted))
}

fn assert_line_ends(name: &str, text: &str) {
    if name.ends_with("CRLF") {
        assert_eq!(
            text.matches('\n').count(),
            text.matches("\r\n").count(),
            "{name}: a lone line feed in {text:?}"
        );
    } else {
        assert!(!text.contains('\r'), "{name}: a carriage return in {text:?}");
    }
}

#[test]
fn turning_a_connector_on_and_off_changes_one_word_in_any_layout() {
    for (name, layout) in layouts() {
        let (off, on) = (layout.replace("FALSE", "false"), layout.replace("FALSE", "true"));
        let bridge = start(&off);
        let toggle = |enabled: bool| {
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": "a", "enabled": enabled}))
                .ok()
        };
        if layout.contains("FALSE") {
            assert_eq!(bridge.status("a"), "disabled", "{name}");
            toggle(true);
            assert_eq!(bridge.home.config(), on, "{name}");
            assert_ne!(bridge.status("a"), "disabled", "{name}");
            toggle(true);
            assert_eq!(bridge.home.config(), on, "{name}: asked twice");
            toggle(false);
            assert_eq!(bridge.home.config(), off, "{name}");
        } else {
            toggle(false);
            let text = bridge.home.config();
            assert!(
                is_contained(&off, &text) && text.contains("\"enabled\""),
                "{name}: {text}"
            );
            assert!(text.len() < off.len() + 40, "{name}: one member is put in: {text}");
            assert_line_ends(&name, &text);
        }
        assert_eq!(bridge.status("a"), "disabled", "{name}");
    }
}

#[test]
fn adding_and_removing_a_connector_leaves_the_rest_as_it_was_in_any_layout() {
    for (name, layout) in layouts() {
        let before = layout.replace("FALSE", "false");
        let bridge = start(&before);
        let add = json!({"id": "new-one", "command": "true", "args": ["a \"b\" \\ ü"], "enabled": false});
        bridge.owner_post("/mcp/servers/add", &add).ok();
        let added = bridge.home.config();
        assert!(is_contained(&before, &added), "{name}:\n{before}\n{added}");
        assert_eq!(added.starts_with('\u{feff}'), before.starts_with('\u{feff}'), "{name}");
        assert_line_ends(&name, &added);
        assert_eq!(trailing_blanks(&added), trailing_blanks(&before), "{name}: {added:?}");
        assert_eq!(bridge.status("new-one"), "disabled", "{name}");

        // The next start reads the same.
        let bridge = bridge.restart();
        assert_eq!(bridge.status("new-one"), "disabled", "{name}: {added}");
        assert_eq!(bridge.home.config(), added, "{name}: reading writes nothing");

        bridge.owner_post("/mcp/servers/remove", &json!({"id": "new-one"})).ok();
        let removed = bridge.home.config();
        assert!(!removed.contains("new-one"), "{name}: {removed}");
        assert!(
            is_contained(&without_blanks(&removed), &without_blanks(&added)),
            "{name}: {removed}"
        );
        for comment in comments(&before) {
            assert!(removed.contains(comment), "{name}: {comment} is lost in {removed}");
        }
        assert!(
            bridge.server("new-one").is_none() && bridge.server("a").is_some(),
            "{name}: {removed}"
        );
    }
}

fn trailing_blanks(text: &str) -> &str {
    &text[text.trim_end().len()..]
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The comments of the layouts, which hold no text that looks like one, but for the layout that is about that.
fn comments(text: &str) -> Vec<&str> {
    if text.contains("no /* comment */") {
        return Vec::new();
    }
    let lines = text
        .lines()
        .filter_map(|line| line.split_once("// ").map(|(_, comment)| comment));
    let blocks = text
        .match_indices("/*")
        .filter_map(|(at, _)| text[at..].split_inclusive("*/").next());
    lines.chain(blocks).collect()
}

#[test]
fn removing_the_only_connector_leaves_a_readable_file() {
    for (name, layout) in layouts() {
        let bridge = start(&layout.replace("FALSE", "false"));
        bridge.owner_post("/mcp/servers/remove", &json!({"id": "a"})).ok();
        assert!(bridge.server("a").is_none(), "{name}");
        let text = bridge.home.config();
        assert_line_ends(&name, &text);
        let bridge = bridge.restart();
        assert!(bridge.server("a").is_none(), "{name}: {text}");
        let rows = bridge.owner_get("/mcp/servers").ok()["servers"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(rows, if layout.contains("\"aa\"") { 2 } else { 0 }, "{name}: {text}");
    }
}

#[test]
fn the_version_before_is_kept_beside_it() {
    let before = "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":false}}} // v1\n";
    let bridge = start(before);
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "a", "enabled": true}))
        .ok();
    let backup = bridge.home.neuron().join("connectors.json.bak");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), before);
}

#[test]
fn a_click_never_writes_over_a_file_that_cannot_be_read() {
    let good = "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":false}}}\n";
    let bridge = start(good);
    let mut events = neuron_tests::http::Connection::open(&bridge.local()).events("/mcp/events", &[]);
    let torn = "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":false}, // I am still typ";
    bridge.home.write_config(torn);
    events.next("the slip", |event| event.name == "config_error");
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "a", "enabled": true}))
        .refused(507, "not_saved");
    bridge
        .owner_post("/mcp/servers/add", &json!({"id": "b", "command": "true"}))
        .refused(507, "not_saved");
    assert_eq!(bridge.home.config(), torn);
    assert_eq!(bridge.status("a"), "disabled", "what cannot be saved is not done");
    assert!(bridge.server("b").is_none());
}

#[test]
fn a_click_right_after_a_save_keeps_what_was_saved() {
    let bridge = start("{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":false}}}\n");
    // Within the time in which the watcher still waits for the editor to be done.
    bridge.home.write_config(
        "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":false,\"name\":\"New name\"}}} // just saved\n",
    );
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "a", "enabled": true}))
        .ok();
    assert_eq!(
        bridge.home.config(),
        "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":true,\"name\":\"New name\"}}} // just saved\n"
    );
    eventually_equals("the saved name", "New name".to_owned(), SOON, || {
        bridge
            .server("a")
            .and_then(|row| row["name"].as_str().map(ToOwned::to_owned))
            .unwrap_or_default()
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_told_and_nothing_changes() {
    let before = "{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:9/\",\"enabled\":false}}}\n";
    let bridge = start(before);
    // Where the backup and every temporary file would go, for root too: a folder of that name cannot be written over.
    std::fs::create_dir_all(bridge.home.neuron().join("connectors.json.bak/occupied")).unwrap();
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "a", "enabled": true}))
        .refused(507, "not_saved");
    assert_eq!(bridge.home.config(), before);
    assert_eq!(bridge.status("a"), "disabled");
}
