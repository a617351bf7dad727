//! Which room may know which.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use neuron_tests::program::workspace;

fn names_under(package: &str) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--package",
            package,
        ])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split(' ').next())
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn neither_the_library_nor_the_headless_program_knows_a_window() {
    for package in ["neuron-bridge", "neuron-connectd"] {
        let names = names_under(package);
        assert!(
            names.iter().any(|name| name == "tokio"),
            "{package} was not looked into: {names:?}"
        );
        for forbidden in ["tauri", "tauri-runtime", "wry", "tao", "gtk", "webkit2gtk"] {
            assert!(
                !names.iter().any(|name| name == forbidden),
                "{package} depends on {forbidden}"
            );
        }
    }
}

#[test]
fn the_black_box_tests_do_not_look_inside() {
    assert!(!names_under("neuron-tests").iter().any(|name| name == "neuron-bridge"));
}

/// Rust files below a folder, as paths from it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn of_all_rooms_only_the_loopback_api_knows_the_one_owner_of_state() {
    let root = workspace().join("bridge/src");
    // The owner's own room, the API in front of it, the list of rooms, and what writes all types down.
    let may_know = ["bridge", "bridge.rs", "http", "lib.rs", "typescript.rs"];
    let files: Vec<_> = sources(&root)
        .into_iter()
        .filter(|file| may_know.iter().all(|known| !file.starts_with(known)))
        .collect();
    assert!(files.len() > 100, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(root.join(&file)).unwrap();
        for line in text.lines() {
            let knows = line.contains("crate::bridge") || line.trim_start().starts_with("bridge::");
            assert!(!knows, "{}: {line}", file.display());
        }
    }
}

#[test]
fn every_deadline_and_bound_that_the_architecture_names_is_there() {
    let text = std::fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let place = line.strip_prefix('|')?.trim_end_matches('|').rsplit('|').next()?.trim();
        let (file, name) = place.strip_prefix('`')?.strip_suffix('`')?.split_once("` `")?;
        Some((file.to_owned(), name.to_owned()))
    });
    let mut count = 0;
    for (file, name) in rows {
        let source = std::fs::read_to_string(workspace().join("bridge/src").join(&file));
        let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
        let there = [format!("const {name}:"), format!("struct {name} ")]
            .iter()
            .any(|item| source.contains(item.as_str()));
        assert!(there, "{file} has no {name}");
        count += 1;
    }
    assert!(count > 20, "the tables were not found: {count} rows");
}

#[test]
fn every_test_that_the_security_document_names_is_there() {
    let text = std::fs::read_to_string(workspace().join("SECURITY.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("- `"));
    let mut count = 0;
    for row in rows {
        let named = row
            .strip_suffix('`')
            .and_then(|row| row.split_once("` `"))
            .unwrap_or_else(|| panic!("\"{row}\" names no file and test"));
        let (file, name) = named;
        let source = std::fs::read_to_string(workspace().join(file));
        let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
        let there = [format!("fn {name}("), format!("def {name}(")]
            .iter()
            .any(|item| source.contains(item.as_str()));
        assert!(there, "{file} has no test {name}");
        count += 1;
    }
    assert!(count > 50, "the tests were not found: {count}");
    let sections = text.split("\n### ").skip(1);
    for section in sections {
        let title = section.lines().next().unwrap_or_default();
        assert!(section.contains("\n- `"), "nothing shows \"{title}\"");
    }
}
