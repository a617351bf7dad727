//! How the lists are read: whole or not at all, and never at the cost of the tools.

use std::time::{Duration, Instant};

use neuron_tests::{
    daemon::Daemon,
    fake::Fake,
    home::Home,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

use super::{read, recorded, standard, texts, uris};

#[test]
fn every_page_of_every_list_is_read_and_cursors_that_lead_nowhere_end() {
    for (paging, count, asked) in [("pages", 7, 7), ("pages-repeated", 2, 2), ("pages-empty", 2, 2)] {
        let (bridge, fake) = recorded(Fake::new("ok").option("offers", paging).option("tools", 7));
        let list = bridge.owner_get("/mcp/resources").ok();
        let prompts = bridge.owner_get("/mcp/prompts").ok();
        let items = |list: &Value| {
            let known = list.as_array().unwrap().len();
            known + usize::from(paging == "pages-empty")
        };
        // The empty cursor leads to the first page again, whose item is the same one.
        let counts = [&list["resources"], &list["templates"], &prompts["prompts"]].map(items);
        assert_eq!(counts, [count; 3], "{paging}: {list}");
        for method in ["resources/list", "resources/templates/list", "prompts/list"] {
            assert_eq!(fake.seen().messages(method).len(), asked, "{paging} {method}");
        }
    }
}

#[test]
fn lists_that_fail_are_no_fault_of_the_connector() {
    for offers in ["unsupported", "failing", "pages-failing"] {
        let (bridge, _) = recorded(Fake::new("ok").option("offers", offers));
        assert_eq!(bridge.status("fake"), "connected", "{offers}");
        assert_eq!(
            bridge.owner_get("/mcp/resources").ok(),
            json!({"resources": [], "templates": []}),
            "{offers}: a list is complete or it is none"
        );
        assert_eq!(
            bridge.owner_get("/mcp/prompts").ok(),
            json!({"prompts": []}),
            "{offers}"
        );
        let log = bridge.owner_get("/mcp/servers/fake/log").text();
        assert!(log.contains("The resources could not be listed"), "{offers}: {log}");
        assert_eq!(bridge.call_text("mcp__fake__echo", &json!({})), "{}");
    }
}

#[test]
fn lists_that_never_come_hold_the_tools_up_for_a_bounded_time() {
    let fake = Fake::new("ok").option("offers", "silent");
    let home = Home::new();
    let fake = fake
        .record(&home.record("fake"))
        .member("timeouts", json!({"connectMs": 4000}));
    let begun = Instant::now();
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(bridge.status("fake"), "connected");
    fake.seen().wait_for("notifications/cancelled", 3);
    let lists: Vec<_> = fake
        .seen()
        .lines()
        .into_iter()
        .filter(|line| line.contains("/list\"") || line.contains("notifications/cancelled"))
        .collect();
    let cancelled = lists.iter().position(|line| line.contains("cancelled")).unwrap();
    assert_eq!(cancelled, 4, "all four lists were asked for at once: {lists:?}");
}

#[test]
fn a_connection_that_breaks_at_a_list_is_a_fault() {
    let fake = Fake::new("ok").option("offers", "dying");
    let bridge = Daemon::serving(Home::new(), [("fake", fake.entry())]);
    let row = eventually("a failed attempt", SOON, || {
        bridge
            .server("fake")
            .filter(|row| matches!(row["status"].as_str(), Some("retrying" | "error")))
    });
    assert!(row["error"].as_str().is_some_and(|error| error.len() > 10), "{row}");
}

#[test]
fn one_bad_item_takes_no_neighbour_along_and_its_reason_is_kept() {
    let (bridge, _) = recorded(Fake::new("ok").option("offers", "bad"));
    let list = bridge.owner_get("/mcp/resources").ok();
    assert_eq!(
        list["resources"],
        json!([
            {"server": "fake", "uri": "fake://good", "name": "fake://good"},
            {"server": "fake", "uri": "fake://odd", "name": "fake://odd"},
        ])
    );
    assert_eq!(
        texts(&list["rejected"], "name"),
        ["#1", "#2", "#3", "#4", "fake://good"]
    );
    let prompts = bridge.owner_get("/mcp/prompts").ok();
    assert_eq!(texts(&prompts["prompts"], "name"), ["good"]);
    assert_eq!(texts(&prompts["rejected"], "name"), ["#2", "#3"]);
    let log = bridge.owner_get("/mcp/servers/fake/log").text();
    assert!(log.contains("more than once"), "{log}");
}

#[test]
fn a_burst_of_changes_is_read_once_or_twice_and_everybody_sees_it() {
    let (bridge, fake) = standard();
    assert_eq!(uris(&bridge).len(), 3);
    assert_eq!(read(&bridge, "fake://grow").status, 200);
    eventually_equals("the new resource", true, SOON, || {
        uris(&bridge).contains(&"fake://grown".to_owned())
    });
    eventually_equals("the new prompt", true, SOON, || {
        texts(&bridge.owner_get("/mcp/prompts").ok()["prompts"], "name").contains(&"grown".to_owned())
    });
    let asked = fake.seen().messages("resources/list").len();
    assert!((2..=4).contains(&asked), "200 notifications led to {asked} lists");
    let bridge = bridge.restart();
    assert!(
        uris(&bridge).contains(&"fake://grown".to_owned()),
        "the change was saved"
    );
}
