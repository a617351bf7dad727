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

    /// Where the built-in files server looks: all is certain.
    fn ground(&self) -> Ground {
        Ground {
            folder: Some(self.home.join("work")),
            named: Vec::new(),
            tilde: Tilde::Home(self.home.clone()),
        }
    }

    fn place(&self, text: &str) -> Option<PathBuf> {
        let places = real_places(text, &self.ground())?;
        assert_eq!(places.len(), 1, "{text}");
        places.into_iter().next()
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

#[test]
fn what_every_process_finds_something_else_at_leads_nowhere() {
    let home = Home::new();
    symlink("/proc/self/cwd", home.home.join("notes/here")).unwrap();
    symlink("/dev/fd/0", home.home.join("notes/told")).unwrap();
    for text in [
        "/proc/self/cwd/secret/key",
        "/proc/thread-self/cwd/secret/key",
        "/proc/1/root/etc/passwd",
        "/proc/self/fd/0",
        "/proc/../etc/passwd",
        "/dev/fd/../cwd/secret/key",
        "/dev/fd/0",
        "/dev/stdin",
        "/dev/../proc/self/environ",
        "/./proc/self/environ",
        "//proc/self/environ",
        "~/notes/here/a.md",
        "~/notes/here",
        "~/notes/told",
    ] {
        assert_eq!(home.place(text), None, "{text:?}");
    }
}

#[test]
fn what_programs_take_for_something_else_than_a_path_leads_nowhere() {
    let home = Home::new();
    let notes = home.home.join("notes");
    let notes = notes.to_str().unwrap();
    for text in [
        // Addresses, whatever their letters.
        "FILE:/etc/passwd".to_owned(),
        "File:a.md".to_owned(),
        "git+ssh:a.md".to_owned(),
        format!("file:{notes}/a.md"),
        // Quotes and blanks around it are taken off by some.
        format!("\"{notes}/a.md\""),
        format!("'{notes}/a.md'"),
        format!("{notes}/a.md "),
        format!(" {notes}/a.md"),
        format!("{notes}/a.md\t"),
        format!("{notes}/a.md\u{feff}"),
        format!("{notes}/a.md\n/etc/passwd"),
        // What a shell, or a program of its kind, puts something else in place of.
        "$HOME/a.md".to_owned(),
        "${HOME}/a.md".to_owned(),
        "a$(id)".to_owned(),
        "%USERPROFILE%/a.md".to_owned(),
        "`id`".to_owned(),
        format!("{notes}/*/key"),
        format!("{notes}/[a]/key"),
        format!("{notes}/{{a,b}}"),
        // More than one.
        format!("{notes}/a.md,/etc/passwd"),
        format!("{notes}/a.md /etc/passwd"),
        format!("{notes}/a.md:/etc/passwd"),
        format!("{notes}/a.md,../secret/key"),
        format!("{notes}/a.md;~/secret/key"),
        // An option, and a file that is read for its words.
        "-r".to_owned(),
        "@a.md".to_owned(),
        format!("{notes}\\a.md"),
    ] {
        assert_eq!(home.place(&text), None, "{text:?}");
    }
    fs::create_dir_all(home.home.join("notes/[slug]")).unwrap();
    for text in [
        "~/notes/[slug]",
        "~/notes/a, b.md",
        "~/notes/100%.md",
        "~/notes/5$",
        "~/notes/a:b",
    ] {
        assert!(home.is_in_notes(text), "{text}");
    }
}

#[test]
fn a_path_is_looked_for_wherever_the_program_may_look_for_it() {
    let home = Home::new();
    fs::create_dir_all(home.home.join("else")).unwrap();
    let at = |part: &str| home.home.join(part);
    let ground = |folder: Option<&str>, tilde: Tilde| Ground {
        folder: folder.map(at),
        named: vec![at("else"), at("notes/a.md"), at("not-there")],
        tilde,
    };
    let places = |text: &str, ground: &Ground| real_places(text, ground);
    let known = ground(Some("work"), Tilde::Perhaps(home.home.clone()));
    assert_eq!(places("a", &known), Some(vec![at("work/a"), at("else/a")]));
    assert_eq!(places("/etc/hosts/..", &known), None);
    assert_eq!(places(at("secret").to_str().unwrap(), &known), Some(vec![at("secret")]));
    let names = [at("notes"), at("work/~/notes"), at("else/~/notes")];
    assert_eq!(places("~/notes", &known), Some(names.to_vec()));
    for unknown in [
        ground(None, Tilde::Unknown),
        ground(None, Tilde::Perhaps(home.home.clone())),
    ] {
        assert_eq!(places("a", &unknown), None);
        assert_eq!(places("~/notes", &unknown), None);
    }
}

#[test]
fn a_folder_that_a_person_names_may_be_written_in_any_letters() {
    let home = Home::new();
    fs::create_dir_all(home.home.join("notes/a, 'b' $c [d]")).unwrap();
    symlink("/proc/self/cwd", home.home.join("here")).unwrap();
    let found = real_folder("notes/a, 'b' $c [d]", &home.home);
    assert_eq!(found, Some(home.home.join("notes/a, 'b' $c [d]")));
    for text in ["/proc/self/cwd", "here", "", "a\0b"] {
        assert_eq!(real_folder(text, &home.home), None, "{text:?}");
    }
}
