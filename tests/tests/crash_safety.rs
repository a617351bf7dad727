//! A kill at any instant leaves the old file or the new one, whole.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::{Daemon, Setup},
    home::Home,
    http::Connection,
};
use rustix::process::Signal;
use serde_json::json;

/// How many writes are driven, over all kills.
const WRITES: usize = 300;

#[test]
fn three_hundred_writes_under_kills_leave_an_old_or_a_new_file() {
    // A long file, so that a write that is no rename would be seen half done.
    let filler = "x".repeat(2000);
    let entry =
        |id: usize| format!("    \"s{id}\": {{ \"url\": \"http://127.0.0.1:9/\", \"enabled\": false }}, // {filler}\n");
    let off: String = (0..20).map(entry).collect();
    let off = format!(
        "{{\n  \"servers\": {{\n    \"a\": {{ \"url\": \"http://127.0.0.1:9/\", \"enabled\": false }},\n{off}  }}\n}}\n"
    );
    let on = off.replacen("false", "true", 1);
    let mut home = Home::new();
    home.write_config(&off);

    let writes = AtomicUsize::new(0);
    let (mut kills, mut seen_on, mut seen_off) = (0_u32, 0, 0);
    while writes.load(Ordering::SeqCst) < WRITES {
        let bridge = Daemon::start_in(home, Setup::default());
        let address = bridge.local();
        let begun = writes.load(Ordering::SeqCst);
        let (writes, target) = (&writes, begun + 10);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let Ok(mut connection) = Connection::try_open(&address) else {
                    return;
                };
                for round in 0.. {
                    let body = json!({"id": "a", "enabled": round % 2 == 0}).to_string();
                    match connection.try_send("POST", "/mcp/servers/toggle", &[], body.as_bytes()) {
                        Ok(answer) => assert_eq!(answer.status, 200, "{}", answer.text()),
                        Err(_) => return,
                    };
                    writes.fetch_add(1, Ordering::SeqCst);
                }
            });
            // In the midst of a write, each time at another place of it.
            let deadline = Instant::now() + Duration::from_secs(30);
            while writes.load(Ordering::SeqCst) < target {
                assert!(Instant::now() < deadline, "no write in 30 s: {}", bridge.log());
                std::hint::spin_loop();
            }
            let at = Instant::now();
            while at.elapsed() < Duration::from_micros(u64::from(kills % 20) * 150) {
                std::hint::spin_loop();
            }
            bridge.signal(Signal::KILL);
        });
        home = bridge.kill9();
        kills += 1;

        let text = home.config();
        assert!(
            text == off || text == on,
            "after kill {kills}: {} of {} bytes: {text:.200}",
            text.len(),
            off.len()
        );
        if text == on {
            seen_on += 1
        } else {
            seen_off += 1
        }
        let left: Vec<_> = fs::read_dir(home.neuron())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !matches!(name.as_str(), "connectors.json" | "connectors.json.bak" | "connect"))
            .collect();
        assert!(
            left.len() <= 2,
            "what a kill leaves is swept at a later start: {left:?}"
        );
    }
    assert!(kills >= 10, "{kills} kills");
    assert!(seen_on + seen_off == kills);

    let bridge = Daemon::start_in(home, Setup::default());
    assert!(["disabled", "connecting", "retrying", "error"].contains(&bridge.status("a").as_str()));
}
