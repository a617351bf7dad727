//! Who may change the person's file decides whether it is read.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    process::may_become_another_user,
    program,
};
use serde_json::Value;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A home whose file names one connector, with these rights.
fn with_mode(mode: u32) -> Home {
    let home = Home::new();
    home.write_config(&config_text([("fake", Fake::new("ok").entry())]));
    fs::set_permissions(home.config_file(), fs::Permissions::from_mode(mode)).unwrap();
    home
}

fn notices(bridge: &Daemon) -> Vec<Value> {
    bridge.owner_get("/mcp/servers").ok()["notices"]
        .as_array()
        .unwrap()
        .clone()
}

/// Nothing of the file is taken up, and a remark says what mends it.
fn assert_refused(bridge: &Daemon, mend: &str) {
    assert!(bridge.server("fake").is_none(), "it was read");
    assert_eq!(bridge.tool_names(), [""; 0]);
    assert_eq!(bridge.children(), [0_u32; 0]);
    let notices = notices(bridge);
    let told = |notice: &Value| {
        notice["level"] == "error" && notice["message"].as_str().is_some_and(|message| message.contains(mend))
    };
    assert!(notices.iter().any(told), "{mend}: {notices:?}");
}

#[test]
fn a_file_that_anybody_can_change_is_not_read_until_it_is_mended() {
    let bridge = Daemon::start_in(with_mode(0o646), Setup::default());
    assert_refused(&bridge, "chmod 600");
    assert_eq!(mode(&bridge.home.config_file()), 0o646, "and is left as it is");
    fs::set_permissions(bridge.home.config_file(), fs::Permissions::from_mode(0o600)).unwrap();
    bridge.wait_for_tool("mcp__fake__echo");
    assert!(notices(&bridge).is_empty(), "{:?}", notices(&bridge));
}

#[test]
fn a_file_that_becomes_anybodys_keeps_what_runs() {
    let bridge = Daemon::start_in(with_mode(0o600), Setup::default());
    bridge.wait_for_tool("mcp__fake__echo");
    fs::set_permissions(bridge.home.config_file(), fs::Permissions::from_mode(0o606)).unwrap();
    bridge.home.write_config("{\"servers\":{}}");
    neuron_tests::wait::eventually("the remark", neuron_tests::wait::SOON, || {
        notices(&bridge)
            .iter()
            .any(|notice| notice["level"] == "error")
            .then_some(())
    });
    assert!(bridge.tool_names().contains(&"mcp__fake__echo".to_owned()));
}

#[test]
fn a_file_that_the_persons_own_group_can_change_is_tightened_with_a_remark() {
    // A group that nobody else is in, as the account files say; elsewhere the group is not the person's alone.
    let private = {
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program::system(program)).args(arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let (user, group) = (run("id", &["-un"]), run("id", &["-g"]));
        let members = fs::read_to_string("/etc/group").unwrap();
        let line = members
            .lines()
            .find(|line| line.split(':').nth(2) == Some(&group))
            .unwrap()
            .to_owned();
        let listed = line.rsplit(':').next().unwrap();
        let accounts = fs::read_to_string("/etc/passwd").unwrap();
        let primary = accounts
            .lines()
            .filter(|line| line.split(':').nth(3) == Some(&group))
            .count();
        primary == 1 && (listed.is_empty() || listed == user)
    };
    let bridge = Daemon::start_in(with_mode(0o660), Setup::default());
    if !private {
        assert_refused(&bridge, "chmod 600");
        return;
    }
    bridge.wait_for_tool("mcp__fake__echo");
    assert_eq!(mode(&bridge.home.config_file()), 0o600);
    let told = notices(&bridge);
    assert!(
        told.iter()
            .any(|notice| notice["level"] != "error" && notice["message"].as_str().unwrap().contains("group")),
        "{told:?}"
    );
}

#[test]
fn a_file_of_another_user_is_not_read_even_behind_a_link() {
    if !may_become_another_user() {
        return;
    }
    for linked in [false, true] {
        let home = with_mode(0o600);
        let mut path = home.config_file();
        if linked {
            let target = home.path().join("elsewhere.json");
            fs::rename(&path, &target).unwrap();
            std::os::unix::fs::symlink(&target, &path).unwrap();
            path = target;
        }
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let bridge = Daemon::start_in(home, Setup::default());
        assert_refused(&bridge, "another user");
    }
}

#[test]
fn everything_of_ours_is_closed_to_others() {
    let bridge = Daemon::start_in(with_mode(0o600), Setup::default());
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &serde_json::json!({}));
    let mut folders = vec![bridge.home.neuron().join("connect")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(mode(&path) & 0o177, 0, "{} is for its owner only", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "lock, database, socket, api.json: {seen}");
}
