use std::{fs, os::unix::fs::symlink};

use super::*;

/// `home/notes` is the folder of the rule, `home/work` where the connector runs.
struct Home {
    _kept: tempfile::TempDir,
    home: PathBuf,
}

impl Home {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let home = kept.path().canonicalize().unwrap();
        for folder in ["notes/old", "notes-too", "work", "secret"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["notes/a.md", "notes-too/a.md", "secret/key"] {
            fs::write(home.join(file), "x").unwrap();
        }
        Self { _kept: kept, home }
    }

    fn place(&self, text: &str) -> Option<PathBuf> {
        real_place(text, &self.home.join("work"), &self.home)
    }

    fn is_in_notes(&self, text: &str) -> bool {
        self.place(text)
            .is_some_and(|place| is_inside(&place, &self.home.join("notes")))
    }
}

#[test]
fn paths_in_the_folder_are_in_it_however_they_are_written() {
    let home = Home::new();
    let absolute = home.home.join("notes/a.md");
    for text in [
        absolute.to_str().unwrap(),
        "~/notes/a.md",
        "~//notes/a.md",
        "~/notes",
        "../notes/a.md",
        "./../notes/./a.md",
        "~/notes/not/yet/there.md",
        "~/notes/old/../a.md",
    ] {
        assert!(home.is_in_notes(text), "{text}");
    }
}

#[test]
fn paths_that_lead_out_of_the_folder_are_not_in_it() {
    let home = Home::new();
    for text in [
        "~/notes-too/a.md",
        "~/notes/../secret/key",
        "~/notes/old/../../secret/key",
        "notes/a.md",
        "~",
        "/",
        "/etc/passwd",
        "a.md",
    ] {
        assert!(home.place(text).is_some(), "{text}");
        assert!(!home.is_in_notes(text), "{text}");
    }
}

#[test]
fn links_are_followed_before_anything_is_compared() {
    let home = Home::new();
    symlink(home.home.join("secret"), home.home.join("notes/way-out")).unwrap();
    symlink(home.home.join("notes"), home.home.join("way-in")).unwrap();
    assert!(!home.is_in_notes("~/notes/way-out/key"));
    assert!(!home.is_in_notes("~/notes/way-out/not-there-yet"));
    assert!(!home.is_in_notes("~/notes/way-out"));
    assert!(home.is_in_notes("~/way-in/a.md"));
}

#[test]
fn what_programs_read_in_two_ways_leads_nowhere() {
    let home = Home::new();
    symlink(home.home.join("secret"), home.home.join("notes/way-out")).unwrap();
    symlink(home.home.join("nowhere"), home.home.join("notes/dangling")).unwrap();
    for text in [
        // Struck out first it is in the folder, with the link followed first it is beside `secret`.
        "~/notes/way-out/../a.md",
        "~/notes/dangling",
        "~/notes/dangling/x",
        "~/notes/missing/../a.md",
        "~/notes/a.md/x",
        "~somebody/notes/a.md",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "https://example.com/a.md",
        "~/notes/a\0.md",
        "",
    ] {
        assert_eq!(home.place(text), None, "{text:?}");
    }
}

#[test]
fn only_whole_parts_of_a_path_count_and_only_absolute_ones() {
    for (place, folder, expected) in [
        ("/a/b", "/a", true),
        ("/a", "/a", true),
        ("/ab", "/a", false),
        ("/", "/a", false),
        ("a/b", "a", false),
        ("/a", "a", false),
        ("/a", "", false),
    ] {
        assert_eq!(
            is_inside(Path::new(place), Path::new(folder)),
            expected,
            "{place} in {folder}"
        );
    }
}
