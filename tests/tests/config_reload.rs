//! The file is the person's: it takes effect when saved, however it is saved, and a slip never stops what runs.

use std::{
    fs,
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    save::{EDITORS, Editor},
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

/// `stays` is never changed by any save of these tests; `named` shows that a save was taken up.
struct Story {
    bridge: Daemon,
    stays: Fake,
}

impl Story {
    fn begin() -> Self {
        let home = Home::new();
        let stays = Fake::new("ok").record(&home.record("stays"));
        let text = Self::text_with(&stays, "first", []);
        home.write_config(&text);
        let bridge = Daemon::start_in(home, Setup::default());
        bridge.wait_for_tool("mcp__stays__echo");
        bridge.call_text("mcp__stays__echo", &json!({}));
        Self { bridge, stays }
    }

    fn text_with<'a>(stays: &Fake, name: &str, more: impl IntoIterator<Item = (&'a str, Value)>) -> String {
        let off = json!({"url": "http://127.0.0.1:9/mcp", "enabled": false, "name": name});
        config_text([("stays", stays.entry()), ("named", off)].into_iter().chain(more))
    }

    fn text<'a>(&self, name: &str, more: impl IntoIterator<Item = (&'a str, Value)>) -> String {
        Self::text_with(&self.stays, name, more)
    }

    fn shown_name(&self) -> String {
        self.bridge
            .server("named")
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .unwrap_or_default()
    }

    fn wait_until_taken_up(&self, name: &str) {
        eventually_equals("the name in the saved file", name.to_owned(), SOON, || {
            self.shown_name()
        });
    }

    fn assert_undisturbed(&self, what: &str) {
        assert_eq!(
            self.stays.seen().starts().len(),
            1,
            "{what}: an equal entry was started again"
        );
        assert_eq!(self.bridge.status("stays"), "connected", "{what}");
        assert_eq!(
            self.bridge.call_text("mcp__stays__echo", &json!({"w": what})),
            json!({"w": what}).to_string()
        );
    }

    fn notices(&self) -> Vec<Value> {
        let mut events =
            neuron_tests::http::Connection::open(&self.bridge.local()).events("/mcp/events", &[("last-event-id", "0")]);
        let event = events.next("config_error", |event| event.name == "config_error");
        event.data["notices"].as_array().unwrap().clone()
    }
}

#[test]
fn every_editor_s_way_of_saving_takes_effect_soon_and_disturbs_nobody() {
    let story = Story::begin();
    for editor in EDITORS {
        for round in 0..2 {
            let name = format!("{editor:?} {round}");
            let saved = Instant::now();
            editor.save(&story.bridge.home.config_file(), &story.text(&name, []));
            story.wait_until_taken_up(&name);
            assert!(
                saved.elapsed() < Duration::from_secs(3),
                "{name}: {:?}",
                saved.elapsed()
            );
        }
    }
    story.assert_undisturbed("eight saves");
}

#[test]
fn an_added_connector_comes_a_changed_one_restarts_and_a_removed_one_goes() {
    let story = Story::begin();
    let path = story.bridge.home.config_file();
    let record = story.bridge.home.record("more");
    let more = Fake::new("ok").record(&record);
    Editor::RenameOver.save(&path, &story.text("added", [("more", more.entry())]));
    story.bridge.wait_for_tool("mcp__more__argv");
    let first = more.seen().wait_for_starts(1)[0];

    let changed = Fake::new("ok").option("say", "changed").record(&record);
    Editor::InPlace.save(&path, &story.text("changed", [("more", changed.entry())]));
    story.wait_until_taken_up("changed");
    eventually("the old process is gone", SOON, || {
        (!neuron_tests::process::is_alive(first)).then_some(())
    });
    story.bridge.wait_for_tool("mcp__more__argv");
    let argv = story.bridge.call_text("mcp__more__argv", &json!({}));
    assert!(argv.contains("changed"), "{argv}");

    let second = *more.seen().starts().last().unwrap();
    Editor::RenameOver.save(&path, &story.text("removed", []));
    story.wait_until_taken_up("removed");
    eventually("its process is gone", SOON, || {
        (!neuron_tests::process::is_alive(second)).then_some(())
    });
    assert!(story.bridge.server("more").is_none());
    assert!(
        !story
            .bridge
            .tool_names()
            .iter()
            .any(|name| name.starts_with("mcp__more__"))
    );
    story
        .bridge
        .call("mcp__more__echo", &json!({}))
        .refused(404, "unknown_tool");
    story.assert_undisturbed("add, change, remove");
}

#[test]
fn what_only_describes_a_connector_changes_without_a_restart() {
    let story = Story::begin();
    let described = story
        .stays
        .clone()
        .member("name", json!("Shown"))
        .member("description", json!("What it does"))
        .member("autoApprove", json!(["echo"]))
        .member("disabledTools", json!(["die"]))
        .member("timeouts", json!({"callMs": 5000}));
    story
        .bridge
        .home
        .write_config(&Story::text_with(&described, "described", []));
    story.wait_until_taken_up("described");
    let row = story.bridge.server("stays").unwrap();
    assert_eq!(
        (&row["name"], &row["description"]),
        (&json!("Shown"), &json!("What it does"))
    );
    assert!(!story.bridge.tool_names().contains(&"mcp__stays__die".to_owned()));
    assert_eq!(
        story.bridge.get("/mcp/auto-approved").ok()["tools"],
        json!(["mcp__stays__echo"])
    );
    story.assert_undisturbed("a description");
}

#[test]
fn comments_order_and_layout_are_nobodys_business() {
    let story = Story::begin();
    let value: Value = serde_json::from_str(&story.text("commented", [])).unwrap();
    let (stays, named) = (&value["servers"]["stays"], &value["servers"]["named"]);
    let text = format!(
        "\u{feff}// mine\r\n{{ /* so */ \"servers\" : {{\r\n\t\"named\": {named},// first now\r\n\t\"stays\": {stays},\r\n}},\r\n}}\r\n"
    );
    Editor::RenameOver.save(&story.bridge.home.config_file(), &text);
    story.wait_until_taken_up("commented");
    story.assert_undisturbed("comments");
}

#[test]
fn a_hundred_saves_in_a_second_end_with_the_last_one() {
    let story = Story::begin();
    let path = story.bridge.home.config_file();
    let begin = Instant::now();
    for round in 0..100_u32 {
        let editor = if round % 2 == 0 {
            Editor::InPlace
        } else {
            Editor::RenameOver
        };
        editor.save(&path, &story.text(&format!("save {round}"), []));
        // Paced by the clock, as a hundred saves in one second are.
        while begin.elapsed() < Duration::from_millis(u64::from(round) * 10) {
            std::thread::yield_now();
        }
    }
    let last = Instant::now();
    story.wait_until_taken_up("save 99");
    assert!(
        last.elapsed() < Duration::from_secs(2),
        "{:?} after the last save",
        last.elapsed()
    );
    story.assert_undisturbed("a hundred saves");
}

#[test]
fn a_slip_keeps_what_runs_and_tells_the_line_until_it_is_mended() {
    let story = Story::begin();
    let path = story.bridge.home.config_file();
    let good = story.text("mended", []);
    let half = good.split_at(good.len() / 2).0.to_owned();
    for (what, text) in [
        ("half a file", half.as_str()),
        ("nothing", ""),
        ("blanks", " \n\n"),
        (
            "a missing comma",
            "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}\n    \"b\": {\"command\": \"y\"}\n  }\n}",
        ),
        ("a list", "[]"),
        ("servers as a list", "{\"servers\": []}"),
        ("two files", "{\"servers\": {}} {\"servers\": {}}"),
        ("single quotes", "{'servers': {}}"),
    ] {
        let mut events = neuron_tests::http::Connection::open(&story.bridge.local()).events("/mcp/events", &[]);
        Editor::InPlace.save(&path, text);
        let event = events.next(what, |event| {
            event.name == "config_error"
                && event.data["notices"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|notice| notice["level"] == "error")
        });
        let notice = event.data["notices"]
            .as_array()
            .unwrap()
            .iter()
            .find(|n| n["level"] == "error")
            .unwrap()
            .clone();
        assert!(
            notice["message"].as_str().is_some_and(|message| message.len() > 20),
            "{what}: {notice}"
        );
        if what == "a missing comma" {
            assert_eq!(notice["line"], 3, "where it is missing: {notice}");
            assert!(notice["column"].is_u64(), "{notice}");
        }
        story.assert_undisturbed(what);

        Editor::RenameOver.save(&path, &story.text(what, []));
        story.wait_until_taken_up(what);
    }
    story.assert_undisturbed("all slips mended");
}

#[test]
fn a_file_that_is_no_text_keeps_what_runs() {
    let story = Story::begin();
    let path = story.bridge.home.config_file();
    let good = story.text("utf-16", []);
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(good.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    fs::write(&path, wide).unwrap();
    let notices = story.notices();
    assert!(notices.iter().any(|notice| notice["level"] == "error"), "{notices:?}");
    story.assert_undisturbed("UTF-16");
    assert_eq!(story.shown_name(), "first");
}

#[test]
fn a_deleted_file_stops_nothing_and_its_return_is_noticed() {
    let story = Story::begin();
    let path = story.bridge.home.config_file();
    fs::remove_file(&path).unwrap();
    let notices = story.notices();
    assert!(
        notices
            .iter()
            .any(|notice| !notice["message"].as_str().unwrap().is_empty()),
        "{notices:?}"
    );
    story.assert_undisturbed("no file");
    fs::write(&path, story.text("back", [])).unwrap();
    story.wait_until_taken_up("back");
    story.assert_undisturbed("the file's return");
}

#[test]
fn a_symlinked_file_is_followed_when_edited_and_when_swapped() {
    let home = Home::new();
    let dotfiles = home.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    fs::create_dir(home.neuron()).unwrap();
    let stays = Fake::new("ok").record(&home.record("stays"));
    let (one, two) = (dotfiles.join("one.json"), dotfiles.join("two.json"));
    fs::write(&one, Story::text_with(&stays, "one", [])).unwrap();
    std::os::unix::fs::symlink(&one, home.config_file()).unwrap();
    let bridge = Daemon::start_in(home, Setup::default());
    bridge.wait_for_tool("mcp__stays__echo");
    bridge.call_text("mcp__stays__echo", &json!({}));
    let story = Story { bridge, stays };
    story.wait_until_taken_up("one");

    for editor in EDITORS {
        let name = format!("target {editor:?}");
        editor.save(&one, &story.text(&name, []));
        story.wait_until_taken_up(&name);
    }
    fs::write(&two, story.text("two", [])).unwrap();
    let beside = story.bridge.home.neuron().join("new-link");
    std::os::unix::fs::symlink(&two, &beside).unwrap();
    fs::rename(&beside, story.bridge.home.config_file()).unwrap();
    story.wait_until_taken_up("two");
    Editor::RenameOver.save(&two, &story.text("two again", []));
    story.wait_until_taken_up("two again");
    story.assert_undisturbed("a symlink");

    story
        .bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "named", "enabled": true}))
        .ok();
    assert!(
        fs::symlink_metadata(story.bridge.home.config_file())
            .unwrap()
            .is_symlink(),
        "the link stays a link"
    );
    assert!(
        fs::read_to_string(&two).unwrap().contains("\"enabled\": true"),
        "its target was written"
    );
    assert!(
        fs::read_to_string(&one).unwrap().contains("\"enabled\": false"),
        "the old target was not"
    );
}

#[test]
fn files_of_other_names_change_nothing() {
    let story = Story::begin();
    let folder = story.bridge.home.neuron();
    for name in [
        "connectors.json.backup.1",
        "connectors.json~",
        "connectors.json.bak",
        ".connectors.json.swp",
        "connectors.jsonc",
        "Connectors.json",
    ] {
        fs::write(
            folder.join(name),
            story.text("wrong file", [("wrong", Fake::new("ok").entry())]),
        )
        .unwrap();
    }
    Editor::RenameOver.save(&story.bridge.home.config_file(), &story.text("right file", []));
    story.wait_until_taken_up("right file");
    assert!(story.bridge.server("wrong").is_none());
    story.assert_undisturbed("other files");
}

#[test]
fn an_invalid_entry_is_shown_with_its_place_and_takes_nobody_along() {
    let story = Story::begin();
    let value: Value = serde_json::from_str(&story.text("with bad ones", [])).unwrap();
    let good = value["servers"].to_string();
    let good = good.trim_start_matches('{').trim_end_matches('}');
    let text = format!(
        "{{\"servers\": {{{good}}},\n\"both\": {{\"command\": \"x\", \"url\": \"http://127.0.0.1/\"}},\n\
         \"typed\": {{\"command\": \"x\", \"args\": \"y\"}},\n\"pigeon\": {{\"transport\": \"pigeon\", \"command\": \"x\"}},\n\
         \"no way\": {{\"command\": \"x\"}},\n\"neither\": {{}}\n}}}}"
    );
    Editor::InPlace.save(&story.bridge.home.config_file(), &text);
    story.wait_until_taken_up("with bad ones");
    for id in ["both", "typed", "pigeon", "no way", "neither"] {
        let row = story.bridge.server(id).unwrap_or_else(|| panic!("{id} is shown"));
        assert_eq!(row["status"], "invalid", "{row}");
        assert!(row["error"].as_str().is_some_and(|error| error.len() > 20), "{row}");
    }
    story.assert_undisturbed("bad neighbours");
}

#[test]
fn a_pasted_file_of_another_app_is_understood() {
    let fake = Fake::new("ok").entry();
    let text = json!({"mcpServers": {"pasted": {"command": fake["command"], "args": fake["args"]}}}).to_string();
    let bridge = Daemon::start(Some(&text));
    bridge.wait_for_tool("mcp__pasted__echo");
}

#[test]
fn our_own_write_is_no_edit() {
    let story = Story::begin();
    story
        .bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "named", "enabled": true}))
        .ok();
    story
        .bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "named", "enabled": false}))
        .ok();
    Editor::RenameOver.save(&story.bridge.home.config_file(), &story.text("after", []));
    story.wait_until_taken_up("after");
    story.assert_undisturbed("our own writes");
}
