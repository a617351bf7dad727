//! Ways through the database.

use std::fs;

use neuron_tests::home::Home;
use serde_json::json;

use crate::world::{Effects, READ, World, rule};

const DATABASE: [&str; 3] = ["state.db", "state.db-wal", "state.db-shm"];

fn database(home: &Home) -> Vec<Option<Vec<u8>>> {
    let folder = home.neuron().join("connect");
    DATABASE.iter().map(|name| fs::read(folder.join(name)).ok()).collect()
}

fn put_back(home: &Home, database: &[Option<Vec<u8>>]) {
    for (name, bytes) in DATABASE.iter().zip(database) {
        let path = home.neuron().join("connect").join(name);
        match bytes {
            Some(bytes) => fs::write(path, bytes).unwrap(),
            None => drop(fs::remove_file(path)),
        }
    }
}

#[test]
fn nothing_done_to_the_database_allows_anything() {
    let mut world = World::start();
    let mut older = Vec::new();
    world = world.while_closed(|home| older = database(home));
    world.is_well();
    world
        .bridge
        .owner_post(
            "/mcp/rules",
            &rule("deny", "read", json!({"path": {"is": "equals", "value": "b.txt"}})),
        )
        .ok();
    let before = world.effects();
    let review = "FROM trust WHERE kind = 'review' AND key LIKE '%remote%'";
    let swapped = format!(
        "UPDATE trust SET body = (SELECT body {review}), mac = (SELECT mac {review}) \
         WHERE kind = 'review' AND key NOT LIKE '%remote%'"
    );
    let ways: [(&str, Option<&str>); 9] = [
        ("an older copy of it", None),
        ("without any decision", Some("DELETE FROM trust")),
        (
            "with its tables made anew",
            Some("DELETE FROM trust; DELETE FROM trust_head"),
        ),
        (
            "without what denies",
            Some("DELETE FROM trust WHERE kind = 'rule' AND body LIKE '%deny%'"),
        ),
        (
            "with a rule that allows more",
            Some("UPDATE trust SET body = replace(body, '\"read\"', '\"*\"') WHERE kind = 'rule'"),
        ),
        (
            "with what was allowed changed",
            Some("UPDATE trust SET body = body || ' ' WHERE kind = 'review'"),
        ),
        ("with one decision in the place of another", Some(&swapped)),
        (
            "with a decision of another's code",
            Some("INSERT OR REPLACE INTO trust SELECT 'setting', 'walk_in', '\"allow\"', mac FROM trust LIMIT 1"),
        ),
        (
            "with another generation",
            Some("UPDATE trust_head SET generation = generation + 1"),
        ),
    ];
    let mut present = Vec::new();
    for (what, sql) in ways {
        world = world.while_closed(|home| {
            present = database(home);
            match sql {
                Some(sql) => home.change_database(sql),
                None => put_back(home, &older),
            }
        });
        asks_for_everything(&world, &before, what);
        world = world.while_closed(|home| put_back(home, &present));
        world.is_well();
    }
    world = world.while_closed(|home| put_back(home, &[None, None, None]));
    asks_for_everything(&world, &before, "none at all");
    // And the person's yes holds again.
    for id in ["x", "remote"] {
        world.bridge.approve(id);
        world.bridge.wait_for_status(id, "connected");
    }
    world.bridge.close();
}

/// Nothing that was allowed is.
fn asks_for_everything(world: &World, before: &Effects, what: &str) {
    for id in ["x", "remote"] {
        world.bridge.wait_for_status(id, "needs_review");
    }
    world.walk_ins_cannot_answer(what);
    world.bridge.get("/mcp/tools").refused(401, "unauthorized");
    for path in ["a.txt", "b.txt"] {
        world.is_not_called(READ, &json!({"path": path}));
    }
    let rules = world.bridge.owner_get("/mcp/rules").ok();
    assert_eq!(rules["rules"], json!([]), "{what}");
    let now = world.effects();
    let unchanged = Effects {
        rules: before.rules.clone(),
        ..now
    };
    assert_eq!(&unchanged, before, "{what}");
}
